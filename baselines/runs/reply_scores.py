"""Grades of every reply of an episode: scores for MAPoRL's return, and progress labels for the diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marft_envs.batch import Episode
from marft_envs.game.scoring import grade_answer
from marft_envs.task import Problem, Task
from marft_envs.transcript import Turn


def progress_labels(task: Task, episode: Episode) -> Sequence[int] | None:
    """Return ``Task.progress`` before each step of the episode; None if the task does not define it."""
    return task.progress(_problem(episode), _turns(episode))


def reply_scores(task: Task, episode: Episode) -> list[float] | None:
    """Grade the reply of every step against its agent's gold.

    MAPoRL (arXiv 2502.18439) rewards each reply by its own score and those of later rounds; see
    docs/reference/algorithms.md.

    Args:
        task: The task that grades.
        episode: A finished episode.

    Returns:
        One score per step, in [0, 1]. A step that calls a tool has the score of the reply that it led to, 0 without a
        reply. None if the grader failed on any reply.

    Raises:
        ValueError: The problem has one gold per agent and none for an agent of the episode.
    """
    scores: dict[tuple[int, str], float] = {}
    for turn in _turns(episode):
        if turn.kind == "say":
            verdict = grade_answer(task, turn.text, _for_agent(_problem(episode), turn.agent))
            if not verdict.graded:
                return None
            scores[turn.round, turn.agent] = verdict.score
    return [scores.get((turn.round, turn.agent), 0.0) for turn in _turns(episode)]


def _for_agent(problem: Problem, agent: str) -> Problem:
    if not isinstance(problem.gold, Mapping):
        return problem
    if agent not in problem.gold:
        raise ValueError(
            f"reward='maporl': agent {agent!r} has no gold: expected one gold for all agents, or one for each; "
            f"got golds for {list(problem.gold)}"
        )
    return replace(problem, gold=problem.gold[agent])


def _turns(episode: Episode) -> list[Turn]:
    """Return one turn per step: replies and tool calls, without the tools' results."""
    return [turn for turn in episode.transcript if turn.kind != "result"]


def _problem(episode: Episode) -> Problem:
    assert episode.problem is not None
    return episode.problem
