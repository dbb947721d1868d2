"""Episodes that a turn limit or a turn budget truncates: final states, discarded replies, counts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from marft_envs import FlexMG, Role, Team
from marft_envs.batch import BatchRunner
from marft_envs.team.tools import CALCULATOR
from tests.marft_envs.batch.sum_task import SHORT_OR_LONG, TEAM, Sum, say_index, three, uneven


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_truncated_episode_records_the_next_observation_of_every_agent(turns):
    """Compare with the next request of the same episode played in full, which has no final state."""

    def play(**limit):
        return BatchRunner(FlexMG(Sum(), TEAM, rounds=2, **limit), 1).play(say_index, indices=[7])[0]

    truncated, full = play(max_turns=turns), play()
    following = full.steps[turns].request
    assert (truncated.final_state.agent, truncated.final_state.round) == (
        following.agent,
        following.round,
    ) and full.final_state is None
    assert truncated.final_state.observations[following.agent] == following.observation
    assert list(truncated.final_state.observations) == list(TEAM.agents)
    (by_budget,) = BatchRunner(FlexMG(Sum(), TEAM, rounds=2), 1).play(say_index, indices=[7], turns=turns)
    assert by_budget.final_state == truncated.final_state


def test_an_episode_truncated_after_a_tool_call_shows_the_result_to_its_caller_only():
    team = Team({"first_0": Role(), "second_0": Role(tools=(CALCULATOR,), answers=True)})
    call = '<tool_call>{"name": "calculator", "arguments": {"expression": "2+3"}}</tool_call>'
    episode = BatchRunner(FlexMG(Sum(), team, max_turns=3), 1).play(lambda rs: [call] * len(rs), indices=[1])[0]
    assert [turn.kind for turn in episode.transcript] == ["say", "call", "result"]
    reads = {agent: [m["name"] for m in seen["messages"]] for agent, seen in episode.final_state.observations.items()}
    assert episode.final_state.agent == "second_0"
    assert reads == {"first_0": ["task"], "second_0": ["second_0", "task", "first_0", "second_0", "tool"]}


def test_a_fault_of_the_grader_has_no_final_state():
    (episode,) = BatchRunner(FlexMG(Sum(), TEAM), 1).play(lambda rs: ["crash"] * len(rs), indices=[1])
    assert episode.not_graded and episode.final_state is None


def test_replies_after_the_end_are_discarded_and_counted():
    runner = BatchRunner(FlexMG(Sum(), three("none"), max_turns=1), 2)
    episodes = runner.play(say_index, indices=[1, 2])
    assert [len(e.steps) for e in episodes] == [1, 1]
    assert [e.truncated for e in episodes] == ["max_turns=1"] * 2
    assert (runner.counts.turns, runner.counts.discarded, runner.counts.truncated) == (6, 4, 2)


def test_no_episode_begins_without_a_turn_left():
    for turns in range(1, 30):
        runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 4)
        episodes = list(runner.stream(uneven(lambda i: i % 2), turns=turns, seed=1))
        assert sum(len(e.steps) for e in episodes) == runner.counts.turns == turns
        assert all(e.steps for e in episodes)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_turn_budget_truncates_episodes_and_counts_them(threads):
    executor = ThreadPoolExecutor(threads) if threads else None
    with BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 3, executor=executor) as runner:
        episodes = list(runner.stream(uneven(lambda i: i % 2), turns=23))
        assert sum(len(e.steps) for e in episodes) == runner.counts.turns == 23
        truncated = [e for e in episodes if e.truncated]
        assert {e.truncated for e in truncated} == {"the budget of 23 turns is spent"}
        assert truncated and all(e.not_graded and e.outcome is None and not e.terminated and e.steps for e in truncated)
        assert (runner.counts.truncated, runner.counts.not_graded) == (len(truncated), 0)
        assert runner.counts.graded == len(episodes) - len(truncated) > 0
        assert [e.number for e in episodes] == list(range(len(episodes)))
    if executor:
        executor.shutdown()


def test_a_turn_budget_of_play():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 3)
    episodes = runner.play(say_index, indices=[1, 2, 3], turns=5)
    assert [len(e.steps) for e in episodes] == [2, 2, 1]
    assert [bool(e.not_graded) for e in episodes] == [False, False, True]
    assert [e.score for e in runner.play(say_index, indices=[1, 2, 3], turns=6)] == [1.0] * 3
    assert [len(e.steps) for e in runner.play(say_index, indices=[1, 2, 3], turns=1)] == [1, 0, 0]
    with pytest.raises(ValueError, match="turns=0: expected at least 1"):
        runner.play(say_index, turns=0)


def test_truncated_episodes_are_not_graded():
    """The answering agent a_0 has acted but b_0 has not. Where c_0 would act last, its reply is discarded."""
    task = Sum()
    roles = {"a_0": Role(answers=True), "b_0": Role(), "c_0": Role()}
    runner = BatchRunner(FlexMG(task, Team(roles, [("a_0", "b_0")]), order="random"), 16)
    episodes = runner.play(say_index, indices=range(16), seeds=range(16), turns=32)
    assert {tuple(turn.agent for turn in e.transcript) for e in episodes} == {("a_0",), ("a_0", "c_0"), ("c_0", "a_0")}
    assert runner.counts.discarded == sum(len(e.transcript) == 1 for e in episodes) > 0
    assert all(e.truncated for e in episodes) and task.graded_in == set()
