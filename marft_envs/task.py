"""What a contributor writes: problems, and how a reply to one is graded.

Whose turn it is, what an agent sees, who is paid and when it ends is the business of ``flex_mg.FlexMG``.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marft_envs.arguments import check_integer
from marft_envs.transcript import Turn
from marft_envs.verdict import Verdict

UNLIMITED = 2**31
"""The number of problems of a task whose ``size`` is None."""


@dataclass(frozen=True, slots=True)
class PublicProblem:
    """What observations and a callable D may read of a problem: everything but the gold and the notes."""

    index: int
    prompt: str
    private: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One item of a task.

    index: its number in the task. prompt: the text that every agent reads. gold: the reference answer, or a mapping
    from agent to reference answer where several agents answer. private: text that only the named agent reads.
    notes: facts for people and filters (level, subject, source id); no agent ever sees them.
    """

    index: int
    prompt: str
    gold: Any
    private: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def public(self) -> PublicProblem:
        """The same problem without its gold and notes."""
        return PublicProblem(self.index, self.prompt, self.private)


class Task(ABC):
    """A numbered set of problems and their grader.

    name, version: as in the environment's name, "math" and 0 give math_v0. size: the number of problems, None when a
    generator has no end (then any index from 0 to 2**31 - 1 is a problem).
    """

    name: str
    version: int = 0
    size: int | None = None

    @abstractmethod
    def problem(self, index: int) -> Problem:
        """Problem ``index``: a pure function of the task's arguments and the index, the same in every process."""

    @abstractmethod
    def grade(self, answer: str, problem: Problem) -> Verdict:
        """The verdict on one agent's whole reply. Where several agents answer it is called once for each, with
        ``problem.gold`` the agent's own; the team's score is then the mean. It never raises for any ``str``."""

    def answer_of(self, text: str) -> str | None:
        """The answer that a reply gives, in a form in which equal answers are equal strings; None when it gives none.
        Agreement between agents (``stopping.Agreement``) compares it. By default the whole text, trimmed."""
        return text.strip() or None

    def feedback(self, answer: str, problem: Problem) -> str:
        """What may be told of an answering agent's whole reply before another round begins; "" (the default) for
        nothing. It must not depend on ``problem.gold``. Who may read the reply in the next round reads this too."""
        return ""

    def progress(self, problem: Problem, turns: Sequence[Turn]) -> Sequence[int] | None:
        """What is known of the team's success before each of the turns of an episode, as one whole number each: say,
        whether the chain is right so far. None (the default) where nothing can be told.

        For the log only: a learner reports how much of the score a critic could explain that knew this number. It may
        read the gold, for nothing here reaches an observation, a reward or a loss. turns: calls of tools included.
        """
        return None

    def team_score(self, verdicts: Mapping[str, Verdict]) -> float:
        """The team's score in [0, 1] from the verdicts on its answering agents: by default the mean of their scores."""
        return sum(verdict.score for verdict in verdicts.values()) / len(verdicts)


def check_index(task: Task, index: Any) -> int:
    """Return ``index`` as an int.

    Raises:
        TypeError: ``index`` is not an integer.
        IndexError: The task has no such problem.
    """
    size = UNLIMITED if task.size is None else task.size
    return check_integer("index", index, 0, size - 1, of=f" of {task.name}", error=IndexError)


def with_index_check(problem: Callable[[Any, int], Problem]) -> Callable[[Any, int], Problem]:
    """Wrap the method ``problem`` to validate its index."""

    @functools.wraps(problem)
    def checked(self: Task, index: int) -> Problem:
        return problem(self, check_index(self, index))

    return checked
