"""A policy without a reply: its episode ends without a score, is counted, and the other episodes are played on."""

import pytest

from marft_envs import FlexMG
from marft_envs.batch import BatchRunner, PolicyFault, Reply
from tests.marft_envs.batch.sum_task import TEAM, Sum, say_index, three

LIMIT = PolicyFault("429 Too Many Requests")


def without(agent, index):
    """Return a policy that has no reply for ``agent`` in the episode on problem ``index``."""
    return lambda requests: [LIMIT if (r.agent, r.index) == (agent, index) else str(r.index) for r in requests]


@pytest.mark.parametrize("agent", TEAM.agents)
def test_a_request_without_a_reply_ends_its_episode_only(agent):
    runner = BatchRunner(FlexMG(Sum(), TEAM), 3)
    episodes = runner.play(without(agent, 5), indices=[4, 5, 6])
    assert [e.score for e in episodes] == [1.0, 0.0, 1.0] and [e.terminated for e in episodes] == [True, False, True]
    fault = episodes[1]
    assert fault.not_graded == f"policy of {agent}: 429 Too Many Requests" and fault.truncated == ""
    assert fault.outcome is None and set(fault.rewards.values()) == {0.0} and fault.final_state is None
    assert [step.request.agent for step in fault.steps] == list(TEAM.agents[: TEAM.agents.index(agent)])
    counts = runner.counts
    assert (counts.episodes, counts.graded, counts.not_graded, counts.truncated) == (3, 2, 1, 0)
    assert (counts.unanswered, counts.turns) == (1, 4 + len(fault.steps))


def test_a_fault_that_a_policy_raises_belongs_to_all_requests_of_the_call():
    def second(requests):
        raise PolicyFault("no connection")

    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    episodes = runner.play({"first_0": say_index, "second_0": second}, indices=[1, 2])
    assert [e.not_graded for e in episodes] == ["policy of second_0: no connection"] * 2
    assert [len(e.steps) for e in episodes] == [1, 1] and runner.counts.unanswered == 2
    assert [e.score for e in runner.play(say_index, indices=[1, 2])] == [1.0, 1.0]


def test_another_exception_of_a_policy_is_an_error_and_propagates():
    def broken(requests):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        BatchRunner(FlexMG(Sum(), TEAM), 2).play(broken, indices=[1, 2])


def test_a_fault_counts_at_the_turn_of_its_agent():
    """All three agents act in one wave: a_0 has acted when b_0 has no reply, and the reply of c_0 is discarded."""
    runner = BatchRunner(FlexMG(Sum(), three("none")), 2)
    first, second = runner.play(without("b_0", 1), indices=[1, 2])
    assert [step.request.agent for step in first.steps] == ["a_0"] and first.not_graded
    assert second.score == 1.0
    assert (runner.counts.unanswered, runner.counts.discarded, runner.counts.turns) == (1, 1, 5)


def test_a_fault_after_the_end_of_its_episode_has_no_effect():
    """The turn limit ends the episode before the turn of b_0."""
    runner = BatchRunner(FlexMG(Sum(), three("none"), max_turns=1), 1)
    (episode,) = runner.play(without("b_0", 1), indices=[1])
    assert episode.truncated == "max_turns=1" and episode.final_state is not None
    assert (runner.counts.truncated, runner.counts.not_graded, runner.counts.discarded) == (1, 0, 1)


def test_a_stream_continues_after_faults():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    episodes = list(runner.stream(without("second_0", 3), indices=range(8)))
    assert [e.index for e in episodes if e.not_graded] == [3] and [e.index for e in episodes] == list(range(8))
    assert sum(e.score for e in episodes) == 7


def test_replies_with_data_and_faults_can_be_mixed():
    def policy(requests):
        return [Reply(str(r.index), data=r.index) if r.index else LIMIT for r in requests]

    fault, answered = BatchRunner(FlexMG(Sum(), TEAM), 2).play(policy, indices=[0, 1])
    assert fault.not_graded and [step.data for step in answered.steps] == [1, 1]
