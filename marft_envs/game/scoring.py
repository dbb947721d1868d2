"""Scoring: pure functions from a finished transcript to verdicts, the team's score and the agents' rewards.

An exception in a grader, a feedback function or a team score is a fault and not a score of 0: the verdict is
NOT_GRADED, or the fault is returned as a string, and the game truncates the episode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from marft_envs.arguments import callable_name
from marft_envs.game.reward import Reward, TeamOutcome
from marft_envs.game.spaces import as_utf8
from marft_envs.task import Problem, Task
from marft_envs.team.team import Team
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome, Verdict

Answers = dict[str, tuple[str, Problem]]
"""For each answering agent its message and the problem with the agent's own gold."""


def answers_of(team: Team, problem: Problem, transcript: Iterable[Turn]) -> Answers:
    """Return the messages to grade: the last one of each answering agent that acted."""
    last_text = {turn.agent: turn.text for turn in transcript if turn.kind == "say"}
    answering = team.answering
    each = isinstance(problem.gold, Mapping) and set(answering) <= set(problem.gold)
    return {
        agent: (last_text[agent], _for_agent(problem, agent) if each else problem)
        for agent in answering
        if agent in last_text
    }


def _for_agent(problem: Problem, agent: str) -> Problem:
    return Problem(problem.index, problem.prompt, problem.gold[agent], problem.private, problem.notes)


def grade_answer(task: Task, answer: str, problem: Problem) -> Verdict:
    """Return ``task.grade(answer, problem)``; NOT_GRADED with the exception's name if it raises one."""
    try:
        verdict = task.grade(answer, problem)
    except Exception as fault:  # an exception in a grader is counted, not scored
        return Verdict.not_graded(f"{type(fault).__name__}: {fault}")
    if not isinstance(verdict, Verdict):
        return Verdict.not_graded(f"{type(task).__name__}.grade returned {verdict!r:.80}, expected a Verdict")
    return verdict


def grade_answers(task: Task, answers: Answers) -> dict[str, Verdict]:
    """Return the verdict on each answering agent's message."""
    return {agent: grade_answer(task, *answer) for agent, answer in answers.items()}


def score(
    task: Task, team: Team, transcript: Sequence[Turn], verdicts: Mapping[str, Verdict]
) -> tuple[TeamOutcome, str]:
    """Return the team's outcome, and the fault that prevents grading ("" for none).

    Args:
        task: The task, whose ``team_score`` combines the verdicts.
        team: The team that played.
        transcript: The turns of the finished episode, at least one.
        verdicts: The verdict on each answering agent. An agent without one never acted and counts as NO_ANSWER.

    Raises:
        ValueError: A verdict belongs to an agent that does not answer.
    """
    unknown = [agent for agent in verdicts if agent not in team.answering]
    if unknown:
        raise ValueError(f"settle() names {unknown}: expected some of {list(team.answering)}")
    silent = {a: Verdict.no_answer("never acted") for a in team.answering if a not in verdicts}
    verdicts = {**verdicts, **silent}
    faults = "; ".join(f"{agent}: {v.reason}" for agent, v in verdicts.items() if not v.graded)
    team_score, fault = (0.0, faults) if faults else _team_score(task, verdicts)
    last = transcript[-1]
    outcome = TeamOutcome(
        agents=team.agents,
        answering=team.answering,
        verdicts=verdicts,
        score=team_score,
        last_agent=last.agent,
        rounds=last.round + 1,
    )
    return outcome, fault


def _team_score(task: Task, verdicts: Mapping[str, Verdict]) -> tuple[float, str]:
    """Return (score, ""), or (0, the fault) for an exception or a value outside [0, 1]."""
    try:
        found = task.team_score(verdicts)
    except Exception as fault:  # an exception in a user's function is a fault
        return 0.0, f"team_score: {type(fault).__name__}: {fault}"
    # The tolerance is for rounding: nine ninths add up to slightly more than 1.
    if not isinstance(found, Real) or not 0 <= found <= 1 + 1e-9:
        return 0.0, f"{type(task).__name__}.team_score returned {found!r:.80}, expected a number from 0 to 1"
    return min(1.0, float(found)), ""


def agent_rewards(reward: Reward, outcome: TeamOutcome) -> Mapping[str, float]:
    """Return each agent's reward.

    Raises:
        TypeError: The reward function did not return a number for each agent.
    """
    rewards = reward(outcome)
    if not isinstance(rewards, Mapping) or not all(isinstance(rewards.get(a), Real) for a in outcome.agents):
        raise TypeError(
            f"reward={callable_name(reward)} returned {rewards!r:.200}: expected a number for each of "
            f"{list(outcome.agents)}"
        )
    return rewards


def earns_format_bonus(outcome: TeamOutcome, agent: str) -> bool:
    """Return whether the agent's message contains an answer, correct or not."""
    verdict = outcome.verdicts.get(agent)
    return verdict is not None and verdict.outcome is not Outcome.NO_ANSWER


def feedback_turns(task: Task, answers: Answers, round: int) -> tuple[list[Turn], str]:
    """Return the task's feedback on the messages of a finished round, as turns, and a fault ("" for none)."""
    try:
        texts = {agent: _feedback(task, *answer) for agent, answer in answers.items()}
    except Exception as fault:  # an exception in a user's function is a fault
        return [], f"feedback: {type(fault).__name__}: {fault}"
    return [Turn(round, agent, text, "feedback") for agent, text in texts.items() if text], ""


def _feedback(task: Task, answer: str, problem: Problem) -> str:
    text: Any = task.feedback(answer, problem) or ""
    if not isinstance(text, str):
        raise TypeError(f"{type(task).__name__}.feedback returned {text!r:.80}, expected a string")
    return as_utf8(text)
