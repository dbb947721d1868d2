"""What a task says of every reply of an episode: scores for MAPoRL's return, and the labels of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marft_envs.batch.runner import Episode
from marft_envs.game.scoring import grade_answer
from marft_envs.task import Problem, Task
from marft_envs.transcript import Turn


def progress(task: Task, episode: Episode) -> Sequence[int] | None:
    """What the task knows before each step of the episode (``Task.progress``); None where it cannot tell."""
    return task.progress(_problem(episode), _turns(episode))


def reply_scores(task: Task, episode: Episode) -> list[float] | None:
    """The score of every step's reply against its agent's gold; None after a fault of the grader.

    A step that calls a tool has the score of the reply that it led to, 0 if none came. ValueError for an agent that has
    no gold of its own where the problem tells golds by agent.
    """
    found: dict[tuple[int, str], float] = {}
    for turn in _turns(episode):
        if turn.kind == "say":
            verdict = grade_answer(task, turn.text, _for_agent(_problem(episode), turn.agent))
            if not verdict.graded:
                return None
            found[turn.round, turn.agent] = verdict.score
    return [found.get((turn.round, turn.agent), 0.0) for turn in _turns(episode)]


def _for_agent(problem: Problem, agent: str) -> Problem:
    if not isinstance(problem.gold, Mapping):
        return problem
    if agent not in problem.gold:
        raise ValueError(f"reward='maporl': {agent} has no gold; expected one gold, or one each: {list(problem.gold)}")
    return replace(problem, gold=problem.gold[agent])


def _turns(episode: Episode) -> list[Turn]:
    """One for each step: what was said and the calls of tools, without the tools' results."""
    return [turn for turn in episode.transcript if turn.kind != "result"]


def _problem(episode: Episode) -> Problem:
    assert episode.problem is not None
    return episode.problem
