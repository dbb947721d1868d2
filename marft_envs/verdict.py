"""What a grader says of one reply: five outcomes, never a bare number.

A fault of the grader, the sandbox or the disk is ``NOT_GRADED``. It is no wrong answer: it is counted, and kept out of
rewards and of every mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The five things that can come of grading."""

    CORRECT = "correct"
    WRONG = "wrong"
    PARTIAL = "partial"
    NO_ANSWER = "no_answer"
    NOT_GRADED = "not_graded"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one reply; build it with the named constructors below.

    outcome: one of the five. score: in [0, 1]; 1 for CORRECT, strictly between for PARTIAL, 0 for the rest.
    reason: one line for people. isolation: the sandbox level that ran the reply, "" where nothing was run.
    """

    outcome: Outcome
    score: float
    reason: str = ""
    isolation: str = ""

    def __post_init__(self) -> None:
        allowed = {Outcome.CORRECT: self.score == 1.0, Outcome.PARTIAL: 0.0 < self.score < 1.0}
        if not allowed.get(self.outcome, self.score == 0.0):
            raise ValueError(
                f"score={self.score!r} does not fit outcome={self.outcome}: "
                "expected 1 for correct, 0 < score < 1 for partial, and 0 otherwise"
            )

    @property
    def graded(self) -> bool:
        """False for a fault: such a verdict must not reach a reward or a mean."""
        return self.outcome is not Outcome.NOT_GRADED

    @classmethod
    def correct(cls, reason: str = "", *, isolation: str = "") -> Verdict:
        """The reply is right."""
        return cls(Outcome.CORRECT, 1.0, reason, isolation)

    @classmethod
    def wrong(cls, reason: str, *, isolation: str = "") -> Verdict:
        """The reply gives an answer, and it is not the right one."""
        return cls(Outcome.WRONG, 0.0, reason, isolation)

    @classmethod
    def partial(cls, score: float, reason: str, *, isolation: str = "") -> Verdict:
        """Partly right: 0 < score < 1."""
        return cls(Outcome.PARTIAL, float(score), reason, isolation)

    @classmethod
    def no_answer(cls, reason: str, *, isolation: str = "") -> Verdict:
        """The reply holds nothing that could be an answer."""
        return cls(Outcome.NO_ANSWER, 0.0, reason, isolation)

    @classmethod
    def not_graded(cls, fault: str, *, isolation: str = "") -> Verdict:
        """The grader could not do its work; ``fault`` says why."""
        return cls(Outcome.NOT_GRADED, 0.0, fault, isolation)
