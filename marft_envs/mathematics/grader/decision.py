"""The decision of a layer on one pair: equal, different, or unknown, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.mathematics.grader.tree_cost import Work
from marft_envs.mathematics.grader.tree_value import Node


@dataclass(frozen=True, slots=True)
class Decision:
    """What a layer knows about an answer and a gold.

    Attributes:
        equal: True: they are equal. False: they are proved to be different, by two exact values, two intervals that do
            not overlap, or two structures. None: the layer cannot decide, and the next one is asked.
        reason: Why they are different or cannot be decided, for people; "" if they are equal.
    """

    equal: bool | None
    reason: str = ""


EQUAL = Decision(True)


def different(reason: str) -> Decision:
    """Return the decision that a pair is proved to be different."""
    return Decision(False, reason)


def unknown(reason: str) -> Decision:
    """Return the decision that a layer cannot decide a pair."""
    return Decision(None, reason)


def decision(equal: bool | None, reason: str, why_unknown: str = "") -> Decision:
    """Return the decision of a comparison.

    Args:
        equal: The result.
        reason: Why the two are different, if they are.
        why_unknown: Why the comparison has no result, if it has none.
    """
    return EQUAL if equal else unknown(why_unknown or reason) if equal is None else different(reason)


def all_equal(decisions: Iterable[Decision]) -> Decision:
    """Return the decision on a pair that is equal if all its parts are; one different part decides."""
    first_unknown = None
    for part in decisions:
        if part.equal is False:
            return part
        if part.equal is None and first_unknown is None:
            first_unknown = part
    return first_unknown or EQUAL


def any_equal(decisions: Iterable[Decision]) -> Decision:
    """Return the decision on a pair that is equal if one of its readings is, and different if all are different."""
    first_unknown, last = None, unknown("there is nothing to compare")
    for reading in decisions:
        if reading.equal:
            return reading
        if reading.equal is None and first_unknown is None:
            first_unknown = reading
        last = reading
    return first_unknown or last


class Pairs(Protocol):
    """The comparison under way, which the layers call for the parts of a pair.

    Attributes:
        policy: The rules for when an answer counts as equal to the gold.
        work: The work that is left to the comparison.
    """

    policy: GradingPolicy
    work: Work

    def same(self, answer: str, gold: str) -> Decision:
        """Compare two normalized strings by all layers."""

    def trees(self, answer: Node, gold: Node) -> Decision:
        """Compare two expression trees by their values."""

    def worker(self, answer: str, gold: str) -> Decision:
        """Compare two normalized strings by the symbolic worker."""
