"""Play a row of a trace again: in full, to check it, or to a turn, to go on from there."""

from __future__ import annotations

from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.traces.rows import Row, action_of, digest, verdict_row
from marft_envs.transcript import Turn


class ReplayError(ValueError):
    """A replay that came out differently. turn: the number of the first turn that differs, None for the outcome."""

    def __init__(self, message: str, turn: int | None = None) -> None:
        super().__init__(message if turn is None else f"turn {turn}: {message}")
        self.turn = turn


def fork(env: Any, row: Row, *, turn: int) -> None:
    """Reset ``env`` to the row's problem and replay its first ``turn`` turns, checking them; play goes on from there.

    Turns are counted as in ``row["turns"]``; a fork cannot stand between a tool call and its result. ValueError for a
    turn that the row has not, ReplayError for a difference.
    """
    turns = row["turns"]
    if not 0 <= turn <= len(turns):
        raise ValueError(f"turn={turn!r}: expected 0 to {len(turns)}, the turns of the row")
    if turn < len(turns) and turns[turn]["kind"] == "result":
        raise ValueError(f"turn={turn!r} stands before a tool's result: expected {turn - 1} or {turn + 1}")
    env.reset(seed=row["seed"], options={"index": row["index"]})
    game: FlexMG = env.unwrapped
    _check_problem(game, row)
    for number, told in enumerate(turns[:turn]):
        if told["kind"] != "result":
            _check_turn(game, number, told)
            env.step(action_of(game, told["agent"], told["text"]))
        _check_said(game, number, told)


def replay(env: Any, row: Row) -> None:
    """Play a row's texts through ``env`` and check that everything comes out as told: who acts, what they read, tools'
    results, verdicts, score, rewards. ReplayError names the first difference.

    Verdicts that were not graded are not compared: a fault need not happen twice. An episode that an outside limit cut
    is cut again. Rows without a seed are of games whose own generator had gone on: with ``order="random"`` their order
    of turns cannot come out again.
    """
    fork(env, row, turn=len(row["turns"]))
    game: FlexMG = env.unwrapped
    if not game.over and row["truncated"]:
        game.truncate(row["truncated"])
    if row["truncated"] or row["not_graded"]:
        return
    if not game.over:
        raise ReplayError("the episode is not over; in the row it is")
    if game.outcome is None:
        game.settle(game.grade())
    _check_outcome(game, row)


def _check_problem(game: FlexMG, row: Row) -> None:
    for name, now in (("prompt", game.problem.prompt), ("private", dict(game.problem.private))):
        if now != row[name]:
            raise ReplayError(
                f"problem {row['index']} has another {name}: {now!r:.200}; the row has {row[name]!r:.200}"
            )


def _check_turn(game: FlexMG, number: int, told: Row) -> None:
    """Before the action: the same agent, which reads the same."""
    if game.over:
        raise ReplayError(f"the episode is over; in the row {told['agent']} acts", number)
    if game.agent_selection != told["agent"]:
        raise ReplayError(f"{game.agent_selection} acts; in the row {told['agent']} does", number)
    if "observed" not in told:
        return
    observation = game.observe(told["agent"])
    if digest(observation) != told["observed"]:
        known = f"; the row has {told['observation']['messages']!r:.600}" if "observation" in told else ""
        raise ReplayError(f"{told['agent']} reads something else: {observation['messages']!r:.600}{known}", number)


def _check_said(game: FlexMG, number: int, told: Row) -> None:
    """After the action: the same turn in the transcript."""
    expected = Turn(told["round"], told["agent"], told["text"], told["kind"])
    now = game.transcript[number] if number < len(game.transcript) else None
    if now != expected:
        raise ReplayError(f"the transcript has {now!r:.300}; the row has {expected!r:.300}", number)


def _check_outcome(game: FlexMG, row: Row) -> None:
    verdicts = game.outcome.verdicts if game.outcome else {}
    now: dict[str, Any] = {
        "verdicts": {agent: verdict_row(verdict, with_reason=True) for agent, verdict in verdicts.items()},
        "score": game.outcome.score if game.outcome else None,
        "rewards": dict(game.rewards),
    }
    for agent, told in row["verdicts"].items():
        if "reason" not in told:
            now["verdicts"].get(agent, {}).pop("reason", None)
    for name, value in now.items():
        if value != row[name]:
            raise ReplayError(f"{name}: {value!r:.300}; the row has {row[name]!r:.300}")
