"""The game: turns, visibility, rewards, ends, faults, and what PettingZoo's own tests say."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, seed_test

import marft_envs
from marft_envs import Dependency, FlexMG, Outcome, Problem, Role, Task, Team, Verdict
from marft_envs.game.order_enforcing import ResetNeeded

ABC = ("a_0", "b_0", "c_0")


class Echo(Task):
    """Right is the word "yes"; "crash" crashes the grader; each agent has a secret of its own."""

    name, size = "echo", 3

    def __init__(self, gold="yes"):
        self.gold = gold

    def problem(self, index):
        return Problem(index, f"Question {index}", self.gold, {a: f"secret of {a}" for a in ABC}, {"note": "gold: yes"})

    def grade(self, answer, problem):
        if answer == "crash":
            raise OSError("disk full")
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("not the word")


def team(dependency="chain", **roles):
    return Team({a: roles.get(a, Role(f"You are {a}.")) for a in ABC}, dependency)


def test_without_edges_what_is_read_in_turn_is_what_is_read_at_once():
    """D = 0: the chain of turns is a simultaneous game; with a chain it is not."""
    for dependency, simultaneous in (("none", True), ("chain", False)):
        env = FlexMG(Echo(), team(dependency))
        env.reset(seed=0)
        at_once = [(agent, env.observe(agent)) for agent in ABC]
        seen = play(env, dict.fromkeys(ABC, "yes"))
        assert (seen == at_once) == simultaneous and [agent for agent, _ in seen] == list(ABC)


def play(env, texts, **reset):
    """All turns; returns (agent, observation) as seen. texts: agent to text, or a function of (agent, turn)."""
    env.reset(**{"seed": 0, **reset})
    seen = []
    for agent in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            env.step(None)
            continue
        seen.append((agent, observation))
        env.step(texts[agent] if isinstance(texts, dict) else texts(agent, len(seen)))
    return seen


def contents(observation):
    return [m["content"] for m in observation["messages"]]


WORDS = {a: f"text of {a}" for a in ABC}


@pytest.mark.parametrize("environment", marft_envs.all_environments)
def test_pettingzoos_own_tests(environment):
    """Warnings are understood: observations are texts, so they are no arrays and no Box."""
    module = getattr(marft_envs, environment)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(module.env(), num_cycles=30)
        api_test(module.raw_env(), num_cycles=30)
        seed_test(module.env, num_cycles=30)
    expected = (
        "Observation is not a NumPy array",
        "Observation space for each agent probably",
        "Action space for each",
    )
    assert [str(w.message) for w in caught if not str(w.message).startswith(expected)] == []


def test_names_and_metadata():
    env = marft_envs.math_v0.env()
    assert str(env) == env.metadata["name"] == "math_v0"
    assert env.possible_agents == ["reasoner_0", "actor_0"]
    assert env.metadata["is_parallelizable"] is False
    assert marft_envs.math_v0.env(dependency="none").metadata["is_parallelizable"] is True
    assert str(pettingzoo.make("aec", "marft/math-v0")) == "math_v0"
    assert str(marft_envs.make("math_v0")) == "math_v0"


def test_spaces_are_the_same_objects_and_hold_every_observation():
    env = FlexMG(Echo(), team())
    assert env.observation_space("a_0") is env.observation_space("a_0")
    assert env.action_space("a_0") is env.action_space("a_0")
    env.reset(seed=0)
    for _ in env.agent_iter():
        for other in env.possible_agents:
            assert env.observation_space(other).contains(env.observe(other))
        assert env.state_space.contains(env.state())
        env.step(None if env.terminations[env.agent_selection] else "Grüße\n日本 \U0001f600")


def test_every_agent_sees_profile_problem_own_secret_and_exactly_its_parents():
    seen = dict(play(FlexMG(Echo(), team([("a_0", "c_0")])), WORDS, options={"index": 1}))
    for agent, parents in {"a_0": [], "b_0": [], "c_0": ["a_0"]}.items():
        expected = [f"You are {agent}.", f"Question 1\n\nsecret of {agent}", *(f"text of {p}" for p in parents)]
        assert contents(seen[agent]) == expected


def test_clearing_an_edge_removes_that_text_and_nothing_else():
    full = Dependency.preset("full", ABC)
    before = dict(play(FlexMG(Echo(), team(full)), WORDS))
    for k, j in full.edges:
        after = dict(play(FlexMG(Echo(), team([e for e in full.edges if e != (k, j)])), WORDS))
        for agent in ABC:
            removed = [f"text of {k}"] if agent == j else []
            assert contents(after[agent]) == [c for c in contents(before[agent]) if c not in removed]


def test_observations_do_not_depend_on_the_gold():
    for texts in (WORDS, dict.fromkeys(ABC, "yes")):
        views = []
        for gold in ("yes", "no"):
            env = FlexMG(Echo(gold), team("full"), rounds=2)
            views.append((play(env, texts), env.state()))
        assert views[0] == views[1]


def test_a_dependency_is_a_cycle_error_at_construction():
    with pytest.raises(
        marft_envs.CycleError, match=r"actor_0 -> reasoner_0 -> actor_0|reasoner_0 -> actor_0 -> reason"
    ):
        marft_envs.math_v0.env(dependency=[("reasoner_0", "actor_0"), ("actor_0", "reasoner_0")])


@pytest.mark.parametrize(
    ("memory", "visible"),
    [("none", []), ("own", ["b_0"]), ("parents", ["a_0", "b_0"]), ("all", ["a_0", "b_0", "c_0"])],
)
def test_memory_of_earlier_rounds(memory, visible):
    seen = play(FlexMG(Echo(), team("chain"), rounds=2, memory=memory), lambda agent, turn: f"{agent} at {turn}")
    agent, observation = seen[4]  # b_0 in the second round; a_0 has just spoken at turn 4
    assert agent == "b_0"
    said_before = [f"{a} at {ABC.index(a) + 1}" for a in visible]
    assert contents(observation)[2:] == [*said_before, "a_0 at 4"]
    own = [m["content"] for m in observation["messages"] if m["role"] == "assistant"]
    assert own == [c for c in said_before if c.startswith("b_0")]


def test_random_order_is_a_linear_extension_and_seeded():
    def orders(seed):
        env = FlexMG(Echo(), team([("c_0", "a_0")]), rounds=8, order="random")
        agents = [a for a, _ in play(env, WORDS, seed=seed)]
        return [tuple(agents[i : i + 3]) for i in range(0, 24, 3)]

    assert orders(1) == orders(1)
    assert len(set(orders(1))) > 1
    assert all(order.index("c_0") < order.index("a_0") for order in orders(1) + orders(2))


@pytest.mark.parametrize(("reward", "paid"), [("shared", [1, 1, 1]), ("last", [0, 0, 1]), ("answerer", [0, 0, 1])])
def test_terminal_reward_right_after_the_last_step_and_on_the_dead_step(reward, paid):
    env = FlexMG(Echo(), team(), reward=reward)
    env.reset(seed=0)
    for _ in ABC:
        assert env.rewards == dict.fromkeys(ABC, 0.0)
        env.step("yes")
    assert list(env.rewards.values()) == paid
    for agent, expected in zip(ABC, paid, strict=True):
        _, reward_, terminated, truncated, info = env.last()
        assert (env.agent_selection, reward_, terminated, truncated) == (agent, expected, True, False)
        assert info["score"] == 1.0
        env.step(None)
    assert env.agents == []
    assert contents(env.observe("c_0"))  # after the end, too
    assert env.outcome.verdicts["c_0"].outcome is Outcome.CORRECT


def test_rewards_can_be_a_callable():
    env = FlexMG(Echo(), team(), reward=lambda outcome: dict.fromkeys(outcome.agents, 0.5 * outcome.score))
    env.reset(seed=0)
    for _ in ABC:
        env.step("yes")
    assert set(env.rewards.values()) == {0.5}


def test_several_answering_agents_give_the_mean():
    roles = {"b_0": Role(answers=True), "c_0": Role(answers=True)}
    env = FlexMG(Echo(gold={"b_0": "yes", "c_0": "no"}), team("none", **roles))
    play(env, {"a_0": "x", "b_0": "yes", "c_0": "yes"})
    assert env.outcome.score == 0.5
    assert {a: v.score for a, v in env.outcome.verdicts.items()} == {"b_0": 1.0, "c_0": 0.0}


def test_a_wrong_answer_terminates_and_a_fault_of_the_grader_truncates():
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    for _ in ABC:
        env.step("no")
    assert all(env.terminations.values()) and not any(env.truncations.values())
    env.reset(seed=0)
    for _ in ABC:
        env.step("crash")
    assert all(env.truncations.values()) and not any(env.terminations.values())
    assert set(env.rewards.values()) == {0.0}
    assert env.infos["a_0"]["not_graded"] == "c_0: OSError: disk full"
    assert env.outcome.verdicts["c_0"].outcome is Outcome.NOT_GRADED


def test_reply_prefix_is_part_of_the_message():
    env = FlexMG(Echo("The word is yes"), team(c_0=Role(reply_prefix="The word is")))
    seen = dict(play(env, {"a_0": "x", "b_0": "y", "c_0": " yes"}))
    assert seen["c_0"]["reply_prefix"] == "The word is"
    assert env.outcome.score == 1.0
    assert env.transcript[-1].text == "The word is yes"


def test_long_and_malformed_replies_are_repaired_and_flagged():
    env = FlexMG(Echo(), team(a_0=Role(max_chars=5)))
    env.reset(seed=0)
    env.step("123456789")
    assert env.infos["a_0"]["clipped"] == 9
    assert env.transcript[0].text == "12345"
    env.step("bad \ud800 end")
    assert "surrogates" in env.infos["b_0"]["malformed"]
    assert env.observation_space("c_0").contains(env.observe("c_0"))


@pytest.mark.parametrize("wrong", [None, 7, b"bytes", ["text"]])
def test_a_reply_that_is_no_str_names_the_agent_and_loses_nothing(wrong):
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    env.step("fine")
    with pytest.raises(TypeError, match=rf"action of b_0: got {type(wrong).__name__} .*expected str"):
        env.step(wrong)
    assert env.agent_selection == "b_0" and len(env.transcript) == 1
    env.step("fine again")


def test_text_for_a_dead_agent_is_an_error():
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    for _ in ABC:
        env.step("yes")
    with pytest.raises(ValueError, match="action of a_0: got 'more' after its end, expected None"):
        env.step("more")
    assert len(env.agents) == 3


@pytest.mark.parametrize(
    "use",
    [
        lambda e: e.step("x"),
        lambda e: e.last(),
        lambda e: e.observe("actor_0"),
        lambda e: e.state(),
        lambda e: e.render(),
        lambda e: next(iter(e.agent_iter())),
    ],
)
def test_the_guard_wants_a_reset_first(use):
    with pytest.raises(ResetNeeded, match=r"before reset\(\): expected env.reset"):
        use(marft_envs.math_v0.env())


def test_the_guard_wants_a_step_for_each_iteration_and_none_after_the_end():
    env = marft_envs.math_v0.env()
    env.reset(seed=0)
    turns = env.agent_iter()
    next(turns)
    with pytest.raises(RuntimeError, match="without a step"):
        next(turns)
    play(env, {"reasoner_0": "x", "actor_0": "y"})
    with pytest.raises(ResetNeeded, match="after the end of the episode"):
        env.step("x")
    with pytest.raises(ResetNeeded, match=r"last\(\) after the end of the episode"):
        env.last()


@pytest.mark.parametrize(
    "name", ["rewards", "dependency", "generation", "feedback", "truncate", "settle", "over", "truncation_reason"]
)
def test_what_a_game_has_after_reset_only_says_so_before(name):
    with pytest.raises(AttributeError, match=rf"{name} before reset\(\): expected env.reset"):
        getattr(marft_envs.math_v0.env(), name)


@pytest.mark.parametrize("fork", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_an_episode_can_be_forked_in_mid_course(fork):
    env = marft_envs.math_v0.env(team="trio")
    env.reset(seed=5)
    env.step("a plan")
    twin = fork(env)
    for e, words in ((env, "left"), (twin, "right")):
        e.step(words)
    assert [t.text for t in env.unwrapped.transcript] == ["a plan", "left"]
    assert [t.text for t in twin.unwrapped.transcript] == ["a plan", "right"]
    env.reset()
    twin.reset()
    assert env.unwrapped.problem == twin.unwrapped.problem  # the generator's state went along


def test_seed_none_continues_the_stream_and_an_index_pins_the_problem():
    env = marft_envs.math_v0.env()

    def index(**reset):
        env.reset(**reset)
        return env.unwrapped.problem.index

    first = [index(seed=4), index(), index()]
    assert first == [index(seed=4), index(), index()]
    assert len(set(first)) == 3
    assert index(seed=9, options={"index": 7, "unknown": 1}) == 7
    prompt = env.unwrapped.problem.prompt
    assert index(seed=10, options={"index": 7}) == 7
    assert env.unwrapped.problem.prompt == prompt


def test_a_seed_and_an_index_give_one_episode_whether_the_index_was_drawn_or_pinned():
    """As a trace is replayed; with order="random" the order is drawn after the problem."""

    def order_of(**reset):
        env = FlexMG(Echo(), team("none"), order="random", rounds=4)
        play(env, dict.fromkeys(ABC, "x"), **reset)
        return env.problem.index, [turn.agent for turn in env.transcript]

    for seed in range(5):
        index, order = order_of(seed=seed)
        assert order_of(seed=seed, options={"index": index}) == (index, order)


def test_an_episode_is_the_same_in_every_process():
    program = (
        "import marft_envs; env = marft_envs.math_v0.env(order='random', team='octet', render_mode='ansi');"
        "env.reset(seed=11); [env.step(f'text {i}') for i in range(8)]; print(env.render(), env.state())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1 and "text 7" in outputs.pop()


def test_render(capsys):
    env = FlexMG(Echo(), team(), render_mode="ansi")
    play(env, dict.fromkeys(ABC, "yes"), options={"index": 2})
    lines = env.render().splitlines()
    assert lines[0] == "# echo_v0 problem 2"
    assert lines[1] == "Question 2"
    assert "[c_0] yes" in lines
    assert lines[-1] == "=> team score 1"
    human = FlexMG(Echo(), team(), render_mode="human")
    play(human, dict.fromkeys(ABC, "yes"), options={"index": 2})
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("reset", "error", "message"),
    [
        ({"seed": "one"}, TypeError, "seed='one': got str, expected int"),
        ({"seed": 1.5}, TypeError, r"seed=1\.5: got float, expected int"),
        ({"seed": True}, TypeError, "seed=True: got bool, expected int"),
        ({"seed": -1}, ValueError, "seed=-1: expected at least 0"),
        ({"options": 7}, TypeError, r"options=7: got int, expected \{'index': 3\} or None"),
        ({"options": [("index", 7)]}, TypeError, "options=.*: got list, expected"),
        ({"options": {"index": "7"}}, TypeError, "index='7' of echo: got str, expected int"),
        ({"options": {"index": True}}, TypeError, "index=True of echo: got bool, expected int"),
        ({"options": {"index": 3}}, IndexError, "index=3 of echo: expected 0 to 2"),
    ],
)
def test_what_reset_cannot_use_is_named_and_the_episode_goes_on(reset, error, message):
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    env.step("fine")
    with pytest.raises(error, match=message):
        env.reset(**reset)
    assert env.agent_selection == "b_0" and len(env.transcript) == 1


def test_a_game_keeps_to_the_attributes_that_a_small_table_holds():
    """64 slots are two thirds full with 42; what this is for: benchmarks/throughput.py."""
    env = FlexMG(Echo(), team(), rounds=2)
    play(env, WORDS)
    assert len(vars(env)) <= 42


def test_numpys_integers_are_integers():
    env = FlexMG(Echo(), team())
    env.reset(seed=np.int64(3), options={"index": np.int32(2)})
    assert env.problem.index == 2


@pytest.mark.parametrize("method", ["observation_space", "action_space", "observe"])
def test_an_agent_that_is_not_there_is_named(method):
    env = marft_envs.math_v0.env()
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"agent='actor': expected one of reasoner_0, actor_0 \(did you mean 'actor_0'"
    ):
        getattr(env, method)("actor")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": Echo}, "task=<class .*: got ABCMeta, expected Task"),
        ({"team": "duo"}, "team='duo': got str, expected Team"),
        ({"rounds": 1.0}, r"rounds=1\.0: got float, expected int"),
        ({"max_turns": "9"}, "max_turns='9': got str, expected int"),
        ({"format_bonus": "0.1"}, r"format_bonus='0\.1': got str, expected int or float"),
        ({"defer_grading": "no"}, "defer_grading='no': got str, expected bool"),
    ],
)
def test_arguments_of_another_type_are_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        FlexMG(**{"task": Echo(), "team": team(), **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "gsm9k"}, "dataset='gsm9k': expected one of .*did you mean 'gsm8k'"),
        ({"team": "sextet"}, "team='sextet': expected one of solo, duo"),
        ({"memory": "some"}, "memory='some': expected one of none, own"),
        ({"order": "any"}, "order='any': expected one of"),
        ({"rounds": 0}, "rounds=0: expected at least 1"),
        ({"format_bonus": float("nan")}, "format_bonus=nan: expected a finite number"),
        ({"reward": "none"}, "reward='none': expected one of shared, last, answerer"),
        ({"render_mode": "rgb"}, "render_mode='rgb': expected one of None, 'human', 'ansi'"),
        ({"split": "dev"}, "split.*dev"),
        ({"levle": 3}, r"unknown arguments \['levle'\] for dataset='word_problems': expected some of"),
        ({"dependency": "ring"}, "dependency='ring'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        marft_envs.math_v0.env(**arguments)


def test_unknown_environment():
    with pytest.raises(ValueError, match=r"environment 'maths_v0': expected one of .*math_v0.*did you mean 'math_v0'"):
        marft_envs.make("maths_v0")
    with pytest.raises(AttributeError, match="no attribute 'maths_v0'"):
        _ = marft_envs.maths_v0
