"""``BatchRunner.play``: waves, calls of the policy, groups, seeds and the order of the results."""

from collections import Counter

import pytest

import marft_envs
from marft_envs import FlexMG, Role, Team
from marft_envs.batch import BatchRunner, Reply
from marft_envs.team.tools import CALCULATOR
from tests.marft_envs.batch.sum_task import ABC, TEAM, Sum, say_index, three


def test_the_policy_is_called_once_per_waiting_agent_and_results_are_in_order():
    calls = []

    def policy(requests):
        calls.append([(r.agent, r.episode, r.index) for r in requests])
        return [Reply(str(r.index), data=("data", r.turn)) for r in requests]

    episodes = BatchRunner(FlexMG(Sum(), TEAM), 4).play(policy, indices=[5, 5, 8, 1])
    assert calls == [[(a, e, i) for e, i in enumerate([5, 5, 8, 1])] for a in ("first_0", "second_0")]
    assert [e.index for e in episodes] == [5, 5, 8, 1]
    assert [e.score for e in episodes] == [1.0] * 4
    assert all(e.terminated and e.rewards == {"first_0": 1.0, "second_0": 1.0} for e in episodes)
    assert episodes[2].steps[1].data == ("data", 1)
    assert episodes[2].steps[1].request.observation["messages"][-1]["content"] == "8"


def test_the_batch_plays_as_single_episodes_do():
    env = marft_envs.math_v0.env(dataset="relay", style="symbols")
    episodes = BatchRunner(env, 3).play(lambda requests: ["7"] * len(requests), indices=[4, 5, 6])
    for episode in episodes:
        env.reset(options={"index": episode.index})
        for step in episode.steps:
            assert env.agent_selection == step.request.agent
            assert env.observe(step.request.agent) == step.request.observation
            env.step(step.text)
        assert env.rewards == episode.rewards


def said_by_others(request):
    return [m["name"] for m in request.observation["messages"] if m["name"] in ABC]


def test_a_whole_generation_is_requested_before_any_of_its_actions_is_played():
    runner = BatchRunner(FlexMG(Sum(), three([("a_0", "c_0"), ("b_0", "c_0")])), 2)
    calls = []

    def policy(requests):
        calls.append(([(r.agent, r.episode) for r in requests], [len(env.transcript) for env in runner.envs]))
        for request in requests:
            assert said_by_others(request) == (["a_0", "b_0"] if request.agent == "c_0" else [])
        return say_index(requests)

    episodes = runner.play(policy, indices=[1, 2])
    first, second = [("a_0", 0), ("a_0", 1), ("b_0", 0), ("b_0", 1)], [("c_0", 0), ("c_0", 1)]
    assert calls == [(first, [0, 0]), (second, [2, 2])]
    assert [[s.request.turn for s in e.steps] for e in episodes] == [[0, 1, 2]] * 2


def test_a_reply_is_pending_until_its_agents_turn():
    """a_0 -> b_0, and c_0 without an edge: c_0 gets its request in the first wave of a round and may act after b_0."""
    calls = []

    def policy(requests):
        calls.append(Counter(r.agent for r in requests))
        return say_index(requests)

    game = FlexMG(Sum(), three([("a_0", "b_0")]), rounds=2, order="random")
    episodes = BatchRunner(game, 16).play(policy, indices=range(16), seeds=range(16))
    assert calls == [{"a_0": 16, "c_0": 16}, {"b_0": 16}] * 2
    orders = {tuple(turn.agent for turn in e.transcript)[:3] for e in episodes}
    assert orders == {("a_0", "b_0", "c_0"), ("a_0", "c_0", "b_0"), ("c_0", "a_0", "b_0")}
    for episode in episodes:
        assert [step.request.agent for step in episode.steps] == [turn.agent for turn in episode.transcript]
        assert [said_by_others(step.request) for step in episode.steps if step.request.round == 0] == [
            ["a_0"] if step.request.agent == "b_0" else [] for step in episode.steps[:3]
        ]


def test_a_policy_for_each_agent():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    both = {"first_0": lambda requests: ["x"] * len(requests), "second_0": say_index}
    episodes = runner.play(both, indices=[1, 2])
    assert [[s.text for s in e.steps] for e in episodes] == [["x", "1"], ["x", "2"]]
    for wrong in ({"first_0": say_index}, both | {"third_0": say_index}):
        with pytest.raises(ValueError, match=r"policy has agents .*expected one for each of \['first_0', 'second_0'\]"):
            runner.play(wrong, indices=[1, 2])


def test_agents_with_the_same_policy_share_a_call():
    """a_0, b_0 and c_0 act at the same time; b_0 has a policy of its own."""
    calls = []

    def logged(name):
        return lambda requests: calls.append((name, [r.agent for r in requests])) or [name] * len(requests)

    shared, own = logged("shared"), logged("own")
    policies = {"a_0": shared, "b_0": own, "c_0": shared}
    (episode,) = BatchRunner(FlexMG(Sum(), three([])), 1).play(policies, indices=[1])
    assert calls == [("shared", ["a_0", "c_0"]), ("own", ["b_0"])]
    assert {s.request.agent: s.text for s in episode.steps} == {"a_0": "shared", "b_0": "own", "c_0": "shared"}
    few = {"a_0": shared, "b_0": own, "c_0": lambda requests: []}
    with pytest.raises(ValueError, match="policy returned 0 replies for c_0: expected 1"):
        BatchRunner(FlexMG(Sum(), three([])), 1).play(few, indices=[1])
    with pytest.raises(ValueError, match="policy returned 0 replies for a_0, b_0, c_0: expected 3"):
        BatchRunner(FlexMG(Sum(), three([])), 1).play(lambda requests: [], indices=[1])


def test_an_agent_that_calls_a_tool_gets_another_request():
    roles = {"a_0": Role(tools=(CALCULATOR,)), "b_0": Role(), "c_0": Role(answers=True)}
    call = '<tool_call>{"name": "calculator", "arguments": {"expression": "1+1"}}</tool_call>'
    called = []

    def policy(requests):
        called.append([r.agent for r in requests])
        return [call if r.agent == "a_0" and len(called) == 1 else str(r.index) for r in requests]

    (episode,) = BatchRunner(FlexMG(Sum(), Team(roles, [("a_0", "c_0"), ("b_0", "c_0")])), 1).play(policy, indices=[2])
    assert called == [["a_0", "b_0"], ["a_0"], ["c_0"]]
    assert [(t.agent, t.kind) for t in episode.transcript] == [
        ("a_0", "call"), ("a_0", "result"), ("a_0", "say"), ("b_0", "say"), ("c_0", "say"),
    ]  # fmt: skip
    assert [s.request.agent for s in episode.steps] == ["a_0", "a_0", "b_0", "c_0"]
    assert len({s.request.turn for s in episode.steps}) == 4
    assert episode.score == 1.0


def test_a_repetition_is_counted_by_problem_over_the_whole_call():
    """Also where two groups play one problem, and where a stream has played the first episode long ago."""
    seen = {}

    def policy(requests):
        seen.update({r.episode: r.repetition for r in requests})
        return say_index(requests)

    runner = BatchRunner(FlexMG(Sum(), TEAM), 6)
    runner.play(policy, indices=[7, 7, 3], groups=2)
    assert [seen[i] for i in range(6)] == [0, 1, 2, 3, 0, 1]
    list(BatchRunner(FlexMG(Sum(), TEAM), 1).stream(policy, indices=[7, 3, 7, 7]))
    assert [seen[i] for i in range(4)] == [0, 0, 1, 2]


def test_groups():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 6)
    members = [(e.index, e.group, e.member) for e in runner.play(say_index, indices=[7, 7, 3], groups=2)]
    assert members == [(7, 0, 0), (7, 0, 1), (7, 1, 0), (7, 1, 1), (3, 2, 0), (3, 2, 1)]
    members = [(e.index, e.group, e.member) for e in runner.play(say_index, indices=[7, 3, 7])]
    assert members == [(7, 0, 0), (3, 1, 0), (7, 0, 1)]
    assert [e.group for e in runner.play(say_index)] == list(range(6))
    with pytest.raises(ValueError, match="indices has 3 entries in groups of 3: expected at most size=6"):
        runner.play(say_index, indices=[1, 2, 3], groups=3)
    with pytest.raises(ValueError, match="groups=2 without indices"):
        runner.play(say_index, groups=2)
    with pytest.raises(ValueError, match="seeds has 1 entries: expected 2"):
        runner.play(say_index, indices=[1, 2], seeds=[1])
    with pytest.raises(TypeError, match=r"index=1\.5 of sum"):
        runner.play(say_index, indices=[1.5])
    with pytest.raises(ValueError, match="groups=0"):
        runner.play(say_index, indices=[1, 2], groups=0)


def test_indices_and_seeds_can_be_iterators():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    episodes = runner.play(say_index, indices=iter([5, 6]), seeds=iter([1, 2]))
    assert [(episode.index, episode.seed) for episode in episodes] == [(5, 1), (6, 2)]
    with pytest.raises(ValueError, match="indices has 3 entries: expected at most size=2"):
        runner.play(say_index, indices=iter([1, 2, 3]))
    with pytest.raises(ValueError, match="seeds has 1 entries: expected 2, one for each episode"):
        runner.play(say_index, indices=[1, 2], seeds=iter([1]))


def test_seeds_determine_what_the_environment_draws():
    runner = BatchRunner(FlexMG(Sum(), three("none"), rounds=3, order="random"), 4)

    def orders(seeds):
        episodes = runner.play(say_index, indices=[1] * 4, seeds=seeds)
        return [tuple(turn.agent for turn in e.transcript) for e in episodes]

    assert orders([3, 4, 5, 3]) == orders([3, 4, 5, 3])
    assert orders([3, 4, 5, 3])[0] == orders([3, 4, 5, 3])[3]
    assert len(set(orders([3, 4, 5, 6]))) > 1
