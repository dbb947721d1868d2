"""Task and Problem: the interface that a contributor implements to add problems and their grader.

The game (``game/flex_mg.py``) decides the order of turns, observations, rewards and the end of an episode.
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
    """A problem without its gold and notes, from which observations are made and a function D may choose edges.

    Attributes:
        index: The number of the problem in its task.
        prompt: The string that every agent reads.
        private: For each agent the string that only this agent reads.
    """

    index: int
    prompt: str
    private: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One item of a task.

    Attributes:
        index: The number of the problem in its task.
        prompt: The string that every agent reads.
        gold: The reference answer, or a mapping from agent to reference answer if several agents answer.
        private: For each agent the string that only this agent reads; agents without one may be left out.
        notes: Facts for people and filters (level, subject, source id). No agent sees them.
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

    Attributes:
        name: The name without its version: "math" with version 0 is the environment math_v0.
        version: Increased whenever the problems or the grading change.
        size: The number of problems. None for a generator, whose indices are 0 to 2**31 - 1.
    """

    name: str
    version: int = 0
    size: int | None = None

    @abstractmethod
    def problem(self, index: int) -> Problem:
        """Return problem ``index``.

        It depends only on the index and the arguments of the task, so it is the same in every process.
        """

    @abstractmethod
    def grade(self, answer: str, problem: Problem) -> Verdict:
        """Grade the message of one answering agent.

        If several agents answer, ``grade`` is called once for each, and ``team_score`` combines the verdicts.

        Args:
            answer: The agent's whole message. ``grade`` must return a verdict for every string.
            problem: The problem; its ``gold`` is that of the agent.
        """

    def answer_of(self, text: str) -> str | None:
        """Return the answer in a message, so that equal answers are equal strings; None if there is none.

        The stop rule ``Agreement`` compares these. By default the answer is the whole message without surrounding
        white space.
        """
        return text.strip() or None

    def feedback(self, answer: str, problem: Problem) -> str:
        """Return feedback on an answering agent's message between two rounds; "" (the default) for none.

        The agents that may read the message in the next round also read the feedback.

        Args:
            answer: The agent's whole message.
            problem: The problem. The feedback must not depend on ``problem.gold``.
        """
        return ""

    def progress(self, problem: Problem, turns: Sequence[Turn]) -> Sequence[int] | None:
        """Return a label of the team's success before each turn, such as whether the work is correct so far.

        Learners log how much of the score's variance these labels explain, as a reference for their critic. The labels
        may depend on the gold: no observation, reward or loss uses them.

        Args:
            problem: The problem.
            turns: All turns of an episode, including tool calls.

        Returns:
            One integer per turn; None (the default) if there is no label.
        """
        return None

    def team_score(self, verdicts: Mapping[str, Verdict]) -> float:
        """Return the team's score in [0, 1], by default the mean score of the answering agents.

        Args:
            verdicts: The verdict on each answering agent.
        """
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
