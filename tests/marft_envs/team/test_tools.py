"""Tools: validation, the format of calls, their effect on an episode, and the calculator."""

import time

import pytest

import marft_envs
from marft_envs import Role, Team, Tool
from marft_envs.task import PublicProblem
from marft_envs.team.tools import CALCULATOR, calculate, find_call
from tests.marft_envs.team.say_yes import call, game


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (("", "adds", {}, int), ValueError, "Tool name='': expected a non-empty string"),
        (("add", None, {}, int), TypeError, "Tool description=None: got NoneType, expected a string"),
        (("add", "adds", {"": "string"}, int), ValueError, "Tool parameter='': expected a non-empty string"),
        (("add", "adds", {"x": "path"}, int), ValueError, r"parameters \{'x': 'path'\}: expected types string"),
        (
            ("add", "adds", {"a": "number", "b": "number"}, lambda a, c: a + c),
            TypeError,
            r"Tool function=<lambda>: takes \(a, c\), expected a function of the keywords \(a, b\)",
        ),
        (("add", "adds", {}, "add"), TypeError, "Tool function='add': got str, expected a function"),
    ],
)
def test_invalid_tools_are_named_in_the_error(fields, error, message):
    with pytest.raises(error, match=message):
        Tool(*fields)


def test_the_agent_reads_the_result_of_a_call_and_acts_again():
    g = game({"a_0": Role("Count.", tools=("calculator",)), "b_0": Role(answers=True)})
    assert g.observe("a_0")["messages"][0]["content"].splitlines() == [
        "Count.",
        "",
        'To call a tool, write <tool_call>{"name": ..., "arguments": {...}}</tool_call>. You then read the result and '
        "act again. Your tools:",
        "- calculator(expression: string): returns the exact value of an expression with numbers, + - * / and "
        "parentheses",
    ]
    g.step("Let me see. " + call("6*7"))
    assert g.agent_selection == "a_0"
    assert [m["content"] for m in g.observe("a_0")["messages"]][-1] == "42"
    assert [m["name"] for m in g.observe("a_0")["messages"]][-2:] == ["a_0", "tool"]
    assert [m["name"] for m in g.observe("b_0")["messages"]] == ["task"]
    g.step("It is 42.")
    assert g.agent_selection == "b_0"
    assert [m["content"] for m in g.observe("b_0")["messages"]][-1] == "It is 42."
    assert [t.kind for t in g.transcript] == ["call", "result", "say"]


def test_a_tool_can_read_the_problem_as_its_agent_sees_it():
    """Neither the gold nor the private part of another agent."""
    seen = []

    def look(problem, word):
        seen.append(problem)
        return f"{word} in {problem.prompt}"

    tool = Tool("look", "looks", {"word": "string"}, look)
    assert tool.reads_problem and not CALCULATOR.reads_problem
    team = Team({"a_0": Role(tools=(tool,)), "b_0": Role(answers=True)})
    env = marft_envs.math_v0.env(dataset="relay", team=team)
    env.reset(seed=0)
    problem = env.unwrapped.problem
    assert set(problem.private) == {"a_0", "b_0"}
    env.step('<tool_call>{"name": "look", "arguments": {"word": "sum"}}</tool_call>')
    assert seen == [PublicProblem(problem.index, problem.prompt, {"a_0": problem.private["a_0"]})]
    assert env.observe("a_0")["messages"][-1]["content"] == f"sum in {problem.prompt}"


def test_an_argument_named_problem_is_the_agents_own():
    tool = Tool("echo", "returns the text", {"problem": "string"}, lambda problem: problem)
    assert not tool.reads_problem
    g = game({"a_0": Role(tools=(tool,)), "b_0": Role(answers=True)})
    g.step('<tool_call>{"name": "echo", "arguments": {"problem": "mine"}}</tool_call>')
    assert g.transcript[-1].text == "mine"


def test_lone_surrogates_in_a_result_are_replaced():
    """JSON can represent a lone surrogate, but UTF-8 and tokenizers cannot."""
    echo = Tool("echo", "returns the text", {"text": "string"}, lambda text: text)
    g = game({"a_0": Role(tools=(echo,)), "b_0": Role(answers=True)})
    g.step('<tool_call>{"name": "echo", "arguments": {"text": "\\ud800!"}}</tool_call>')
    assert g.transcript[-1].text == "?!"
    assert g.observation_space("a_0").contains(g.observe("a_0")) and g.state_space.contains(g.state())


def test_tool_calls_are_limited():
    g = game({"a_0": Role(tools=("calculator",), max_tool_calls=1), "b_0": Role()})
    g.step(call("1+1"))
    g.step(call("2+2"))  # beyond max_tool_calls, the reply is the action
    assert g.agent_selection == "b_0" and g.transcript[-1].kind == "say"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("nonsense", "error: write the call as JSON: "),
        ('{"name": "saw", "arguments": {}}', "error: there is no tool 'saw'. Your tools are: calculator"),
        (
            '{"name": "calculator", "arguments": {"x": 1}}',
            "error: call calculator with exactly these arguments: calculator(expression: string)",
        ),
        (
            '{"name": "calculator", "arguments": {"expression": 3}}',
            "error: the argument expression of calculator must be of type string",
        ),
        ('{"name": "calculator", "arguments": {"expression": "1/0"}}', "error: division by zero"),
        ("[1]", "error: write the call as JSON: "),
    ],
)
def test_the_agent_reads_why_a_call_is_invalid(body, result):
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
def test_find_call_returns_the_first_closed_call(text, body):
    assert find_call(text) == body


def test_find_call_takes_linear_time():
    started = time.process_time()
    assert find_call("<tool_call>" * 5_000) is None
    assert time.process_time() - started < 1


def test_a_failing_tool_truncates_the_episode():
    def broken(path):
        raise OSError("disk full")

    g = game({"a_0": Role(tools=(Tool("read", "reads", {"path": "string"}, broken),)), "b_0": Role(answers=True)})
    g.step('<tool_call>{"name": "read", "arguments": {"path": "x"}}</tool_call>')
    assert g.over and all(g.truncations.values()) and g.outcome is None
    assert g.infos["b_0"]["not_graded"] == "a_0: tool read: OSError: disk full"


def test_after_a_fault_only_the_caller_sees_its_earlier_calls():
    def broken():
        raise OSError("disk full")

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
def test_calculator_is_exact(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression", ["2**9**9", "__import__('os')", "9" * 100, "(" * 150, "1 if 1 else 2", "", "x", "1e400", "True"]
)
def test_calculator_rejects(expression):
    with pytest.raises(ValueError):
        calculate(expression)
