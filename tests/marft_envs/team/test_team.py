"""Roles and teams: files, limits, choices, tools, stop rules, rewards that look at them."""

import time

import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.coding.teams import TEAMS as CODING
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.game.reward import StepDiscounted
from marft_envs.mathematics.teams import TEAMS
from marft_envs.team.stop_rules import Agreement, Word
from marft_envs.team.tools import CALCULATOR, Tool, calculate, find_call


class Yes(Task):
    name, size = "yes", 1

    def problem(self, index):
        return Problem(index, "Say yes.", "yes")

    def grade(self, answer, problem):
        if not answer:
            return Verdict.no_answer("empty")
        return Verdict.correct() if answer == "yes" else Verdict.wrong("no")


def call(expression):
    return f'<tool_call>{{"name": "calculator", "arguments": {{"expression": "{expression}"}}}}</tool_call>'


def game(roles, dependency="chain", stop=None, **keywords):
    made = FlexMG(Yes(), Team(roles, dependency, stop), **keywords)
    made.reset(seed=0)
    return made


@pytest.mark.parametrize(
    ("name", "make"), [*TEAMS.items(), *CODING.items()], ids=[*TEAMS, *(f"coding-{name}" for name in CODING)]
)
def test_ready_made_teams_survive_a_file(name, make):
    team = make()
    assert Team.from_yaml(team.to_yaml()) == team
    assert team.answering == (team.agents if name.startswith("panel") else team.order[-1:])
    if name.endswith("anonymous"):
        assert all(not role.profile for role in team.roles.values())
        assert list(team.agents) == [f"agent_{i}" for i in range(len(team.agents))]


def test_a_team_file_with_everything(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text(
        "roles:\n  solver_0: Solve it.\n  checker_0: {instructions: Check., choices: ['yes', 'no']}\n"
        "  writer_0: {answers: true, tools: [calculator], max_tool_calls: 2, reply_prefix: 'So:'}\n"
        "dependency: {rounds: [chain, full]}\nstop: {agreement: [solver_0, checker_0]}\n"
    )
    team = Team.from_yaml(path)
    assert team.roles["solver_0"] == Role("Solve it.")
    assert team.roles["checker_0"].choices == ("yes", "no")
    assert team.roles["writer_0"].tools == (CALCULATOR,)
    assert team.answering == ("writer_0",)
    assert team.stop_rule == Agreement(("solver_0", "checker_0"))
    again = Team.from_yaml(team.to_yaml())
    assert again.to_yaml() == team.to_yaml() and again.roles == team.roles


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roles: [a_0]", "expected a mapping with 'roles'"),
        ("roles: {a_0: {}}\nrounds: 2", r"keys \['rounds'\]: expected roles, dependency, stop"),
        ("roles: {a_0: {instrutions: x}}", "role of a_0: got .*expected its instructions, or some of instructions"),
        ("roles: {a: x}", "agent name 'a': expected a word, an underscore and a number"),
        ("roles: {a_0: {choices: [a], choices: [b]}}", "team file: the key 'choices' occurs twice"),
        ("roles: {a_0: {tools: [[saw]]}}", r"tool \['saw'\]: expected one of calculator"),
        ("roles: {a_0: {tools: [saw]}}", "tool 'saw': expected one of calculator"),
        ("roles: {a_0: x}\nstop: {word: [b_0, DONE]}", r"stop names \['b_0'\]"),
        ("roles: {a_0: x}\nstop: {wrd: 1}", "stop=.*expected"),
        ("roles: {a_0: {max_chars: 0}}", "max_chars=0: expected at least 1"),
        ("roles: {a_0: x", "team file: "),
        ("roles: {a_0: x, b_0: y, a_0: z}", "team file: the key 'a_0' occurs twice"),
        ("roles: {a_0: x}\nstop: {word: [a_0, '']}", "Word word='': expected a non-empty string"),
        ("roles: {a_0: x}\nstop: {word: 3}", r"stop=\{'word': 3\}: expected .*'agreement'"),
        ("roles: {a_0: x}\nstop: {word: ab}", r"stop=\{'word': 'ab'\}: expected"),
        ("roles: {a_0: x}\nstop: {agreement: a_0}", r"stop=\{'agreement': 'a_0'\}: expected"),
        ("roles: {a_0: x}\nstop: {agreement: 3}", r"stop=\{'agreement': 3\}: expected"),
        ("roles: {a_0: x, b_0: y}\nstop: {agreement: [a_0, a_0]}", r"agreement of \['a_0', 'a_0'\]: .* no name twice"),
    ],
)
def test_wrong_team_files_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        Team.from_yaml(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instructions": None}, "Role instructions=None: expected a text"),
        ({"reply_prefix": 3}, "Role reply_prefix=3: expected a text"),
        ({"max_chars": "9"}, "Role max_chars='9': got str, expected int"),
        ({"answers": "no"}, "Role answers='no': got str, expected True or False"),
        ({"choices": None}, "Role choices=None: expected several in a list or tuple"),
        ({"choices": "yes"}, "Role choices='yes': expected several in a list or tuple"),
        ({"choices": ("yes", 1)}, r"Role choices=\('yes', 1\): expected texts"),
        ({"tools": "calculator"}, "Role tools='calculator': expected several in a list or tuple"),
    ],
)
def test_fields_of_another_type_are_named(fields, message):
    with pytest.raises(TypeError, match=message):
        Role(**fields)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Role(tools=("calculater",)), ValueError, r"'calculater': .* \(did you mean 'calculator'\?\)"),
        (lambda: Word("a_0", ""), ValueError, "Word word='': expected a non-empty string"),
        (lambda: Word("a_0", "\t"), ValueError, r"Word word='\\t': expected a non-empty string"),
        (
            lambda: Word("a_0", True),
            TypeError,
            "Word word=True: got bool, expected a non-empty string",
        ),  # "yes" in YAML
        (lambda: Word("", "DONE"), ValueError, "Word agent='': expected a non-empty string"),
        (lambda: Agreement(("a_0", "a_0")), ValueError, r"agreement of \['a_0', 'a_0'\]: expected .* no name twice"),
        (lambda: Agreement("a_0"), TypeError, "Agreement agents='a_0': expected several agents in a list or tuple"),
        (lambda: Tool("", "adds", {}, int), ValueError, "Tool name='': expected a non-empty string"),
        (lambda: Tool("add", None, {}, int), TypeError, "Tool description=None: got NoneType, expected a text"),
        (
            lambda: Tool("add", "adds", {"": "string"}, int),
            ValueError,
            "Tool parameter='': expected a non-empty string",
        ),
        (
            lambda: Role(choices=("yes", "no", "yes")),
            ValueError,
            r"Role choices=.*: expected none twice, got \['yes'\]",
        ),
        (lambda: Role(choices=("yes",), max_chars=2), ValueError, "Role choices=.*: .* at most max_chars=2 characters"),
        (
            lambda: Role(tools=("calculator", CALCULATOR)),
            ValueError,
            r"Role tools=\['calculator', 'calculator'\]: expected no name twice",
        ),
    ],
)
def test_words_and_names_that_mean_nothing_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Team({"a_0": Role()}, stop=lambda turns: True),
            r"stop=<lambda>: takes \(turns\), expected a function of "
            r"\(turns, task\)",
        ),
        (lambda: Team({"a_0": Role()}, stop=Word), "stop=Word: got the class, expected an instance of it"),
        (
            lambda: FlexMG(Yes(), Team({"a_0": Role()}), reward=lambda: {"a_0": 1.0}),
            r"reward=<lambda>: takes \(\), expected a function of \(outcome\)",
        ),
        (lambda: FlexMG(Yes(), Team({"a_0": Role()}), reward=StepDiscounted), "reward=StepDiscounted: got the class"),
        (
            lambda: Tool("add", "adds", {"a": "number", "b": "number"}, lambda a, c: a + c),
            r"Tool function=<lambda>: takes "
            r"\(a, c\), expected a function of the keywords \(a, b\)",
        ),
        (lambda: Tool("add", "adds", {}, "add"), "Tool function='add': got str, expected a function"),
    ],
)
def test_functions_of_other_arguments_are_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_agreement_takes_a_list_too():
    assert Agreement(["a_0", "b_0"]) == Agreement(("a_0", "b_0"))


@pytest.mark.parametrize("roles", [["a_0"], "a_0", None, Role()])
def test_roles_that_are_no_mapping_are_named(roles):
    with pytest.raises(TypeError, match=r"team roles=.*: expected a mapping from agent to Role"):
        Team(roles)


def test_a_team_file_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"team file 'nowhere\.yaml': not found"):
        Team.from_yaml("nowhere.yaml")


def test_what_no_file_can_hold_says_so():
    roles = {"a_0": Role(), "b_0": Role()}
    with pytest.raises(ValueError, match="D is decided by a function"):
        Team(roles, Orchestrated("a_0")).to_yaml()
    with pytest.raises(ValueError, match="stop is a function"):
        Team(roles, stop=lambda turns, task: True).to_yaml()
    with pytest.raises(ValueError, match="expected a team with a fixed D"):
        Team(roles, Orchestrated("a_0")).anonymous()


def test_agreement_ends_the_game_early():
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5, reward=StepDiscounted(0.5))
    for text in ("no", "yes", "yes", " yes "):
        g.step(text)
    assert g.over and g.round == 1
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5)
    for text in ("", "", "", ""):  # saying nothing is no agreement
        g.step(text)
    assert not g.over
    with pytest.raises(ValueError, match="at least two agents"):
        Agreement(("a_0",))


def test_agreement_compares_answers_not_words():
    env = marft_envs.math_v0.env(team=TEAMS["duo"]().with_stop(Agreement(("reasoner_0", "actor_0"))), rounds=4)
    env.reset(seed=0)
    env.step("I find \\boxed{0.5}")
    env.step("Yes: the answer is \\boxed{0.5}.")
    assert env.unwrapped.over and env.unwrapped.round == 0


def test_agreement_never_looks_at_the_gold():
    """Two agents that agree on a wrong answer stop, too."""
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5)
    g.step("wrong")
    g.step("wrong")
    assert g.over and g.outcome.score == 0.0


def test_a_roles_word_ends_the_game_after_its_round():
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, stop=Word("a_0", "DONE"), rounds=5, reward=StepDiscounted(0.5))
    for text in ("DONEX", "DONE is b's word, which does not count", "I am DONE.", "yes"):
        assert not g.over
        g.step(text)
    assert g.over and g.outcome.rounds == 2
    assert set(g.rewards.values()) == {0.5}
    with pytest.raises(ValueError, match=r"gamma=2: expected a number in \[0, 1\]"):
        StepDiscounted(2)


def test_format_bonus_is_paid_and_reported_apart():
    for text, bonus in (("wrong", 0.1), ("yes", 0.1), ("", None)):
        g = game({"a_0": Role(), "b_0": Role(answers=True)}, format_bonus=0.1)
        g.step("x")
        g.step(text)
        score = float(text == "yes")
        assert g.outcome.score == score == g.rewards["a_0"]
        assert g.rewards["b_0"] == pytest.approx(score + (bonus or 0))
        assert g.infos["b_0"].get("format_bonus") == bonus and "format_bonus" not in g.infos["a_0"]


def test_own_spaces_and_limits():
    roles = {"a_0": Role(max_chars=4), "b_0": Role(choices=("yes", "no")), "c_0": Role(max_observed_chars=3)}
    g = game(roles, "full")
    assert g.action_space("a_0") != g.action_space("b_0")
    assert g.action_space("b_0").contains("yes") and not g.action_space("b_0").contains("maybe")
    assert g.action_space("b_0").sample() in ("yes", "no")
    assert g.observation_space("a_0") != g.observation_space("c_0")
    g.step("abcdef")
    g.step("maybe")
    assert g.infos["b_0"]["outside_space"] == "maybe"
    assert [m["content"] for m in g.observe("c_0")["messages"]][-2:] == ["bcd", "ybe"]


def test_every_observation_is_in_its_space_however_tight_the_limits():
    """The problem is cut to its newest characters, and that is flagged; instructions are never cut."""
    tight = Role("A long instruction.", max_observed_chars=4, reply_prefix="A long beginning:", max_chars=100_000_000)
    g = game({"a_0": tight, "b_0": Role("B", max_observed_chars=4), "c_0": Role()}, "full")
    assert [m["content"] for m in g.observe("a_0")["messages"]] == ["A long instruction.", "yes."]
    assert g.infos == {"a_0": {"problem_clipped": 8}, "b_0": {"problem_clipped": 8}, "c_0": {}}
    g.step("x" * 11_000_000)
    for agent in ("a_0", "b_0"):
        assert g.observation_space(agent).contains(g.observe(agent))
    assert g.state_space.contains(g.state())
    assert g.observation_space("b_0").spaces["reply_prefix"].max_length == 4


def test_a_tool_call_is_answered_and_the_agent_acts_again():
    g = game({"a_0": Role("Count.", tools=("calculator",)), "b_0": Role(answers=True)})
    assert "calculator(expression: string)" in g.observe("a_0")["messages"][0]["content"]
    g.step("Let me see. " + call("6*7"))
    assert g.agent_selection == "a_0"
    assert [m["content"] for m in g.observe("a_0")["messages"]][-1] == "42"
    assert [m["name"] for m in g.observe("a_0")["messages"]][-2:] == ["a_0", "tool"]
    assert [m["name"] for m in g.observe("b_0")["messages"]] == ["task"]
    g.step("It is 42.")
    assert g.agent_selection == "b_0"
    assert [m["content"] for m in g.observe("b_0")["messages"]][-1] == "It is 42."
    assert [t.kind for t in g.transcript] == ["call", "result", "say"]


def test_what_a_tool_says_back_can_be_read():
    """JSON has a way to write a lone surrogate, which no tokenizer can hold."""
    echo = Tool("echo", "says it again", {"text": "string"}, lambda text: text)
    g = game({"a_0": Role(tools=(echo,)), "b_0": Role(answers=True)})
    g.step('<tool_call>{"name": "echo", "arguments": {"text": "\\ud800!"}}</tool_call>')
    assert g.transcript[-1].text == "?!"
    assert g.observation_space("a_0").contains(g.observe("a_0")) and g.state_space.contains(g.state())


def test_tool_calls_are_limited():
    g = game({"a_0": Role(tools=("calculator",), max_tool_calls=1), "b_0": Role()})
    g.step(call("1+1"))
    g.step(call("2+2"))  # no calls left: this is the action
    assert g.agent_selection == "b_0" and g.transcript[-1].kind == "say"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("nonsense", "error: a call is written"),
        ('{"name": "saw", "arguments": {}}', "error: there is no tool 'saw'; there are calculator"),
        ('{"name": "calculator", "arguments": {"x": 1}}', "error: calculator takes the arguments"),
        ('{"name": "calculator", "arguments": {"expression": 3}}', "error: calculator: expression must be of type str"),
        ('{"name": "calculator", "arguments": {"expression": "1/0"}}', "error: division by zero"),
        ("[1]", "error: a call is written"),
    ],
)
def test_wrong_calls_are_told_to_the_agent(body, result):
    g = game({"a_0": Role(tools=(CALCULATOR,)), "b_0": Role()})
    g.step(f"<tool_call>{body}</tool_call>")
    assert g.transcript[-1].text.startswith(result)
    assert g.agent_selection == "a_0"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("</tool_call> <tool_call>a\n<tool_call>b</tool_call> <tool_call>c</tool_call>", "a\n<tool_call>b"),
        ("<tool_call></tool_call>", ""),
        ("</tool_call><tool_call>a", None),
        ("no call", None),
    ],
)
def test_the_first_closed_call_counts(text, body):
    assert find_call(text) == body


def test_calls_are_found_in_linear_time():
    started = time.process_time()
    assert find_call("<tool_call>" * 5_000) is None
    assert time.process_time() - started < 1


def test_a_tool_that_breaks_is_a_fault_not_a_wrong_answer():
    def broken(path):
        raise OSError("disk gone")

    g = game({"a_0": Role(tools=(Tool("read", "reads", {"path": "string"}, broken),)), "b_0": Role(answers=True)})
    g.step('<tool_call>{"name": "read", "arguments": {"path": "x"}}</tool_call>')
    assert g.over and all(g.truncations.values()) and g.outcome is None
    assert g.infos["b_0"]["not_graded"] == "a_0: tool read: OSError: disk gone"
    with pytest.raises(ValueError, match=r"parameters \{'x': 'path'\}: expected types string"):
        Tool("t", "", {"x": "path"}, broken)


def test_after_a_fault_its_caller_alone_sees_the_calls_before():
    def broken():
        raise OSError("disk gone")

    tools = (CALCULATOR, Tool("read", "reads", {}, broken))
    g = game({"a_0": Role(), "b_0": Role(tools=tools, answers=True)}, dependency="none")
    g.step("mine")
    g.step(call("6*7"))
    before = {agent: g.observe(agent) for agent in g.possible_agents}
    g.step('<tool_call>{"name": "read", "arguments": {}}</tool_call>')
    assert g.over and g.agent_selection == "a_0"
    assert {agent: g.observe(agent) for agent in g.possible_agents} == before
    assert [m["name"] for m in before["a_0"]["messages"]] == ["task"]
    assert [m["content"] for m in before["b_0"]["messages"]][-1] == "42"


@pytest.mark.parametrize(
    ("expression", "value"), [("2 + 3*4", "14"), ("-(1/3) + 1", "2/3"), ("0.1 + 0.2", "3/10"), ("1e3", "1000")]
)
def test_calculator(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression", ["2**9**9", "__import__('os')", "9" * 100, "(" * 150, "1 if 1 else 2", "", "x", "1e400", "True"]
)
def test_calculator_refuses(expression):
    with pytest.raises(ValueError):
        calculate(expression)


def test_an_outside_limit_truncates():
    g = game({"a_0": Role(), "b_0": Role(answers=True)}, rounds=3, max_turns=3)
    for _ in range(3):
        g.step("yes")
    assert g.over and all(g.truncations.values()) and not any(g.terminations.values())
    assert g.infos["a_0"]["truncated"] == "max_turns=3" and set(g.rewards.values()) == {0.0}
    assert g.outcome is None and g.observe("a_0")["messages"]
    g = game({"a_0": Role(), "b_0": Role(answers=True)}, max_turns=2)
    g.step("x")
    g.step("yes")
    assert g.outcome.score == 1.0  # the limit is reached together with the end: graded
    g.truncate("too late")
    assert all(g.terminations.values())
