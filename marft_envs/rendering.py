"""An episode as text for people: what ``render()`` returns or prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marft_envs.transcript import Turn

if TYPE_CHECKING:
    from marft_envs.flex_mg import FlexMG


def head(game: FlexMG) -> str:
    """The problem, and who alone sees which part of it."""
    public = game.problem.public
    lines = [f"# {game} problem {public.index}", public.prompt]
    lines += [f"(only {agent} sees) {text}" for agent, text in public.private.items()]
    return "\n".join(text for text in lines if text)


def line(game: FlexMG, turn: Turn) -> str:
    """One turn."""
    mark = f" (round {turn.round})" if game.rounds > 1 else ""
    who = {"result": "tool", "feedback": f"task to {turn.agent}"}.get(turn.kind, turn.agent)
    return f"[{who}{mark}] {turn.text}"


def tail(game: FlexMG) -> list[str]:
    """How it came out, once it has."""
    if game.outcome is None:
        reasons = {info[key] for info in game.infos.values() for key in ("truncated", "not_graded") if key in info}
        return [f"=> truncated: {reason}" for reason in sorted(reasons)]
    lines = [
        f"=> {agent}: {verdict.outcome}" + (f" ({verdict.reason})" if verdict.reason else "")
        for agent, verdict in game.outcome.verdicts.items()
    ]
    return [*lines, f"=> team score {game.outcome.score:g}"]


def episode(game: FlexMG) -> str:
    """All of it."""
    turns = sorted([*game.transcript, *game.feedback], key=lambda turn: turn.round)  # stable: feedback ends its round
    return "\n".join([head(game), *(line(game, turn) for turn in turns), *tail(game)])
