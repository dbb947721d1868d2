"""Comparison of one team's greedy replies and log-probabilities on two devices, within stated tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Tolerance(NamedTuple):
    """The differences between two devices that are allowed.

    Attributes:
        largest: Largest difference of one token's log-probability, in nats.
        mean: Largest mean difference of the log-probabilities of all tokens, in nats.
        equal_replies: Smallest share of equal greedy replies.
    """

    largest: float
    mean: float
    equal_replies: float


TOLERANCES = {
    "float32": Tolerance(1e-3, 1e-4, 1.0),
    "float16": Tolerance(0.1, 0.02, 0.8),
    "bfloat16": Tolerance(0.5, 0.06, 0.5),
}
"""By floating-point type, from the finest to the coarsest. bfloat16 has 8 bits of precision: between float32 and
bfloat16 of Gemma 3 270M, tokens of English text differ by 0.028 nats on average, and by 0.25 at most."""


class GreedyReply(NamedTuple):
    """A greedy reply: the problem's index, the agent, the token ids of prompt and reply, and the reply's text."""

    problem: int
    agent: str
    prompt_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    text: str


def tolerance(*dtypes: str) -> Tolerance:
    """Return the tolerance of the coarsest of the types, which are keys of TOLERANCES."""
    return TOLERANCES[max(dtypes, key=list(TOLERANCES).index)]


def compare_replies(
    reference: Sequence[GreedyReply], other: Sequence[GreedyReply], allowed: Tolerance
) -> tuple[float, list[str]]:
    """Return the share of equal greedy replies, and the faults: other problems, or too few equal replies."""
    asked, answered = ([(reply.problem, reply.agent) for reply in replies] for replies in (reference, other))
    if not asked or asked != answered:
        return 0.0, [f"other problems or agents: {answered[:4]} in place of {asked[:4]}"]
    pairs = list(zip(reference, other, strict=True))
    share = sum(a.text == b.text for a, b in pairs) / len(pairs)
    if share >= allowed.equal_replies:
        return share, []
    expected, changed = next((a, b) for a, b in pairs if a.text != b.text)
    return share, [
        f"{share:.0%} of the greedy replies are equal, expected at least {allowed.equal_replies:.0%}; "
        f"problem {expected.problem}, {expected.agent}: {changed.text!r} in place of {expected.text!r}"
    ]


def compare_log_probs(
    reference: Sequence[Sequence[float]], other: Sequence[Sequence[float]], allowed: Tolerance
) -> tuple[dict[str, float], list[str]]:
    """Return the largest and the mean difference of log-probabilities [replies][tokens], and the faults."""
    if not any(reference) or [len(row) for row in reference] != [len(row) for row in other]:
        return {}, ["log-probabilities: expected the same tokens on both devices, and at least one"]
    difference = np.abs(np.concatenate(reference) - np.concatenate(other))
    found = {"largest": float(difference.max()), "mean": float(difference.mean())}
    faults = [
        f"{name} difference of log-probabilities {value:.2g}, expected at most {limit:g}"
        for name, value, limit in (
            ("largest", found["largest"], allowed.largest),
            ("mean", found["mean"], allowed.mean),
        )
        if not value <= limit  # not "value > limit", so that a NaN is a fault
    ]
    return found, faults
