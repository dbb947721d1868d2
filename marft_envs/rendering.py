"""An episode as text for people: what ``render()`` returns or prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marft_envs.transcript import Turn

if TYPE_CHECKING:
    from marft_envs.ending import Ending
    from marft_envs.flex_mg import FlexMG
    from marft_envs.turn_taking import TurnTaking


def head(game: FlexMG) -> str:
    """The problem, and who alone sees which part of it."""
    public = game.problem.public
    lines = [f"# {game} problem {public.index}", public.prompt]
    lines += [f"(only {agent} sees) {text}" for agent, text in public.private.items()]
    return "\n".join(text for text in lines if text)


def line(game: TurnTaking, turn: Turn) -> str:
    """One turn."""
    mark = f" (round {turn.round})" if game.rounds > 1 else ""
    who = {"result": "tool", "feedback": f"task to {turn.agent}"}.get(turn.kind, turn.agent)
    return f"[{who}{mark}] {turn.text}"


def tail(game: Ending) -> list[str]:
    """How it came out, once it has: the verdicts, then the team's score, or why there is none."""
    verdicts = game.outcome.verdicts if game.outcome else {}
    lines = [
        f"=> {agent}: {verdict.outcome}" + (f" ({verdict.reason})" if verdict.reason else "")
        for agent, verdict in verdicts.items()
    ]
    if game.cut:
        return [*lines, f"=> truncated: {game.cut}"]
    return [*lines, f"=> team score {game.outcome.score:g}"] if game.outcome else []


def episode(game: FlexMG) -> str:
    """All of it."""
    turns = sorted([*game.transcript, *game.feedback], key=lambda turn: turn.round)  # stable: feedback ends its round
    return "\n".join([head(game), *(line(game, turn) for turn in turns), *tail(game)])
