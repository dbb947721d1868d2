"""Observations: what each agent reads under D, memory and tight limits, and the removal of private parts."""

from dataclasses import replace

import pytest

from marft_envs import Dependency, FlexMG, Role
from marft_envs.game.observation import opening_messages, without_private
from marft_envs.task import PublicProblem
from tests.marft_envs.game.echo import ABC, WORDS, Echo, contents, play, team


def test_an_agent_sees_profile_problem_private_part_and_exactly_its_parents():
    seen = dict(play(FlexMG(Echo(), team([("a_0", "c_0")])), WORDS, options={"index": 1}))
    for agent, parents in {"a_0": [], "b_0": [], "c_0": ["a_0"]}.items():
        expected = [f"You are {agent}.", f"Question 1\n\nsecret of {agent}", *(f"text of {p}" for p in parents)]
        assert contents(seen[agent]) == expected


def test_removing_an_edge_removes_that_message_and_nothing_else():
    full = Dependency.preset("full", ABC)
    before = dict(play(FlexMG(Echo(), team(full)), WORDS))
    for k, j in full.edges:
        after = dict(play(FlexMG(Echo(), team([e for e in full.edges if e != (k, j)])), WORDS))
        for agent in ABC:
            removed = [f"text of {k}"] if agent == j else []
            assert contents(after[agent]) == [c for c in contents(before[agent]) if c not in removed]


def test_without_edges_the_turns_are_simultaneous():
    """Without edges each agent reads at its turn what it reads before the first turn; with a chain it does not."""
    for dependency, simultaneous in (("none", True), ("chain", False)):
        env = FlexMG(Echo(), team(dependency))
        env.reset(seed=0)
        at_once = [(agent, env.observe(agent)) for agent in ABC]
        seen = play(env, dict.fromkeys(ABC, "yes"))
        assert (seen == at_once) == simultaneous and [agent for agent, _ in seen] == list(ABC)


def test_observations_do_not_depend_on_the_gold():
    for texts in (WORDS, dict.fromkeys(ABC, "yes")):
        views = []
        for gold in ("yes", "no"):
            env = FlexMG(Echo(gold), team("full"), rounds=2)
            views.append((play(env, texts), env.state()))
        assert views[0] == views[1]


@pytest.mark.parametrize(
    ("memory", "visible"),
    [("none", []), ("own", ["b_0"]), ("parents", ["a_0", "b_0"]), ("all", ["a_0", "b_0", "c_0"])],
)
def test_memory_of_earlier_rounds(memory, visible):
    seen = play(FlexMG(Echo(), team("chain"), rounds=2, memory=memory), lambda agent, turn: f"{agent} at {turn}")
    agent, observation = seen[4]  # b_0 in the second round; a_0 has acted at turn 4
    assert agent == "b_0"
    remembered = [f"{a} at {ABC.index(a) + 1}" for a in visible]
    assert contents(observation)[2:] == [*remembered, "a_0 at 4"]
    own = [m["content"] for m in observation["messages"] if m["role"] == "assistant"]
    assert own == [c for c in remembered if c.startswith("b_0")]


def test_the_reply_prefix_is_part_of_the_message():
    env = FlexMG(Echo("The word is yes"), team(c_0=Role(reply_prefix="The word is")))
    seen = dict(play(env, {"a_0": "x", "b_0": "y", "c_0": " yes"}))
    assert seen["c_0"]["reply_prefix"] == "The word is"
    assert env.outcome.score == 1.0
    assert env.transcript[-1].text == "The word is yes"


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("The word is<think>", "The word is yes"),
        ("<think>Hm.", " yes"),
        ("<think>Hm.</think>The word is", "<think>Hm.</think>The word is yes"),
        ("<think>Hm.</think>The word is<think>", "<think>Hm.</think>The word is yes"),
        ("</think>The word is", "</think>The word is yes"),
    ],
)
def test_thinking_that_the_reply_prefix_opens_is_not_part_of_the_message(prefix, message):
    env = FlexMG(Echo(message), team(c_0=Role(reply_prefix=prefix)))
    seen = dict(play(env, {"a_0": "x", "b_0": "y", "c_0": " yes"}))
    assert seen["c_0"]["reply_prefix"] == prefix
    assert env.transcript[-1].text == message


MESSAGE = {"role": "user", "name": "agent_1", "content": "the number is 7"}
FEEDBACK = {"role": "user", "name": "task", "content": "seen: 7"}


@pytest.mark.parametrize("prompt", ["", "Add the numbers.", "ends in a blank line\n\n"])
@pytest.mark.parametrize("private", ["", "7", "two\n\nparts"])
def test_without_private_gives_the_messages_of_a_problem_without_a_private_part(prompt, private):
    problem = PublicProblem(0, prompt, {"agent_0": private})
    with_part = opening_messages("agent_0", Role(instructions="You add."), problem)
    without_part = opening_messages("agent_0", Role(instructions="You add."), replace(problem, private={}))
    assert without_private([*with_part, MESSAGE, FEEDBACK], private) == (*without_part, MESSAGE, FEEDBACK)


def test_without_private_removes_a_message_with_only_the_end_of_the_part():
    assert without_private([{"role": "user", "name": "task", "content": "own part"}, MESSAGE], "my own part") == (
        MESSAGE,
    )


def test_a_missing_private_part_is_named_in_the_error():
    with pytest.raises(ValueError, match=r"expected one by 'task' that ends with '7'"):
        without_private([MESSAGE], "7")
