"""Verdict and Outcome: the result of grading one reply.

A failure of the grader, the sandbox or the disk is ``NOT_GRADED``, which is not a wrong answer: it is counted, and
excluded from rewards and from every mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The five possible results of grading."""

    CORRECT = "correct"
    WRONG = "wrong"
    PARTIAL = "partial"
    NO_ANSWER = "no_answer"
    NOT_GRADED = "not_graded"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of grading one reply. Use the named constructors below.

    Attributes:
        outcome: One of the five outcomes.
        score: 1 for CORRECT, strictly between 0 and 1 for PARTIAL, 0 for the others.
        reason: One line for people.
        isolation: The isolation level of the sandbox that ran the reply; "" if nothing was run.

    Raises:
        ValueError: The score does not fit the outcome.
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
        """False for NOT_GRADED, which must not enter a reward or a mean."""
        return self.outcome is not Outcome.NOT_GRADED

    @classmethod
    def correct(cls, reason: str = "", *, isolation: str = "") -> Verdict:
        """Return the verdict on a correct answer."""
        return cls(Outcome.CORRECT, 1.0, reason, isolation)

    @classmethod
    def wrong(cls, reason: str, *, isolation: str = "") -> Verdict:
        """Return the verdict on a wrong answer."""
        return cls(Outcome.WRONG, 0.0, reason, isolation)

    @classmethod
    def partial(cls, score: float, reason: str, *, isolation: str = "") -> Verdict:
        """Return the verdict on a partly correct answer, with 0 < ``score`` < 1."""
        return cls(Outcome.PARTIAL, float(score), reason, isolation)

    @classmethod
    def no_answer(cls, reason: str, *, isolation: str = "") -> Verdict:
        """Return the verdict on a reply that contains no answer."""
        return cls(Outcome.NO_ANSWER, 0.0, reason, isolation)

    @classmethod
    def not_graded(cls, fault: str, *, isolation: str = "") -> Verdict:
        """Return the verdict on a reply that could not be graded; ``fault`` describes the failure."""
        return cls(Outcome.NOT_GRADED, 0.0, fault, isolation)
