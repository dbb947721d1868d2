"""Rendering: the strings that ``render()`` returns or prints, made from records and not from a game."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marft_envs.game.reward import TeamOutcome
from marft_envs.task import PublicProblem
from marft_envs.transcript import Turn


def problem_text(environment: str, public: PublicProblem) -> str:
    """Return the problem, with the private part of each agent."""
    lines = [f"# {environment} problem {public.index}", public.prompt]
    lines += [f"(only {agent} sees) {text}" for agent, text in public.private.items()]
    return "\n".join(text for text in lines if text)


def turn_text(turn: Turn, rounds: int) -> str:
    """Return one turn, with the number of its round if an episode may have several ``rounds``."""
    mark = f" (round {turn.round})" if rounds > 1 else ""
    speaker = {"result": "tool", "feedback": f"task to {turn.agent}"}.get(turn.kind, turn.agent)
    return f"[{speaker}{mark}] {turn.text}"


def outcome_lines(outcome: TeamOutcome | None, truncation_reason: str) -> list[str]:
    """Return the verdicts, and the team's score or the reason for a truncation; empty before the end."""
    verdicts = outcome.verdicts if outcome else {}
    lines = [
        f"=> {agent}: {verdict.outcome}" + (f" ({verdict.reason})" if verdict.reason else "")
        for agent, verdict in verdicts.items()
    ]
    if truncation_reason:
        return [*lines, f"=> truncated: {truncation_reason}"]
    return [*lines, f"=> team score {outcome.score:g}"] if outcome else []


def episode_text(problem: str, turns: Iterable[Turn], rounds: int, ending: Sequence[str]) -> str:
    """Return a whole episode: ``problem_text``, the turns by round, and ``outcome_lines``."""
    by_round = sorted(turns, key=lambda turn: turn.round)  # stable: feedback follows the turns of its round
    return "\n".join([problem, *(turn_text(turn, rounds) for turn in by_round), *ending])
