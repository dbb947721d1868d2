"""Differences between devices: what is within the tolerance of a type, and what is a fault."""

import math

import pytest

from benchmarks.analysis.device_comparison import TOLERANCES, GreedyReply, compare_log_probs, compare_replies, tolerance

EXACT, COARSE = TOLERANCES["float32"], TOLERANCES["bfloat16"]


def replies(*texts: str, agent: str = "a") -> list[GreedyReply]:
    return [GreedyReply(index, agent, (1, 2), (3,), text) for index, text in enumerate(texts)]


def test_the_coarser_type_decides():
    assert tolerance("float32", "float32") == EXACT
    assert tolerance("bfloat16", "float32") == tolerance("float32", "bfloat16") == COARSE
    assert tolerance("float16", "bfloat16") == COARSE


def test_equal_replies_are_counted():
    assert compare_replies(replies("1", "2"), replies("1", "2"), EXACT) == (1.0, [])
    assert compare_replies(replies("1", "2"), replies("1", "3"), COARSE) == (0.5, [])  # half is the bound for bfloat16


def test_too_few_equal_replies_are_a_fault_with_the_first_one():
    share, faults = compare_replies(replies("1", "2"), replies("1", "3"), EXACT)
    assert share == 0.5
    assert faults == ["50% of the greedy replies are equal, expected at least 100%; problem 1, a: '3' in place of '2'"]


@pytest.mark.parametrize("other", [replies("1"), replies("1", "2", agent="b"), replies("1", "2")[::-1], []])
def test_other_problems_or_agents_are_a_fault(other):
    share, faults = compare_replies(replies("1", "2"), other, COARSE)
    assert share == 0 and len(faults) == 1 and "other problems or agents" in faults[0]


def test_nothing_compared_is_a_fault():
    assert compare_replies([], [], COARSE)[1] and compare_log_probs([], [], COARSE)[1]


def test_differences_of_log_probabilities():
    # |-1 + 1.0005| = 0.0005, 0 and 0: the largest is within 1e-3; the mean, 1.67e-4, is above 1e-4
    found, faults = compare_log_probs([[-1.0, -2.0], [-3.0]], [[-1.0005, -2.0], [-3.0]], EXACT)
    assert found == {"largest": pytest.approx(5e-4), "mean": pytest.approx(5e-4 / 3)}
    assert faults == ["mean difference of log-probabilities 0.00017, expected at most 0.0001"]
    assert compare_log_probs([[-1.0, -2.0]], [[-1.05, -2.0]], COARSE)[1] == []
    assert "largest difference" in compare_log_probs([[-1.0] * 20], [[-1.6] + [-1.0] * 19], COARSE)[1][0]


def test_a_nan_is_a_fault():
    assert len(compare_log_probs([[-1.0]], [[math.nan]], COARSE)[1]) == 2


def test_other_numbers_of_tokens_are_a_fault():
    found, faults = compare_log_probs([[-1.0, -2.0]], [[-1.0], [-2.0]], COARSE)
    assert found == {} and "the same tokens" in faults[0]
