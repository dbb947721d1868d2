"""Replay of a recorded episode: in full, to check it, or up to a turn, to continue differently from there."""

from __future__ import annotations

from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.traces.rows import Row, action_of, digest, verdict_row
from marft_envs.transcript import Turn


class ReplayError(ValueError):
    """The replay of an episode differs from its row.

    Attributes:
        turn: The number of the first turn that differs; None if the problem or the result differs.
    """

    def __init__(self, message: str, turn: int | None = None) -> None:
        super().__init__(message if turn is None else f"turn {turn}: {message}")
        self.turn = turn


def fork(env: Any, row: Row, *, turn: int) -> None:
    """Reset ``env`` to the problem of a row and replay its first turns, so that play continues from there.

    Args:
        env: An environment with the settings of the recorded one.
        row: An episode of ``read(path).episodes``.
        turn: How many entries of ``row["turns"]`` to replay. A tool call and its result cannot be separated.

    Raises:
        ValueError: The row does not have that many turns, or ``turn`` is between a tool call and its result.
        ReplayError: The replay differs from the row.
    """
    turns = row["turns"]
    if not 0 <= turn <= len(turns):
        raise ValueError(f"turn={turn!r}: expected 0 to {len(turns)}, the number of turns in the row")
    if turn < len(turns) and turns[turn]["kind"] == "result":
        raise ValueError(f"turn={turn!r} separates a tool call from its result: expected {turn - 1} or {turn + 1}")
    env.reset(seed=row["seed"], options={"index": row["index"]})
    game: FlexMG = env.unwrapped
    _check_problem(game, row)
    for number, recorded in enumerate(turns[:turn]):
        if recorded["kind"] != "result":
            _check_before_action(game, number, recorded)
            env.step(action_of(game, recorded["agent"], recorded["text"]))
        _check_after_action(game, number, recorded)


def replay(env: Any, row: Row) -> None:
    """Play the actions of a row in ``env`` and check that the whole episode comes out the same.

    Compared are the order of turns, observations, messages, tool results, verdicts, score and rewards. The verdicts of
    an episode that was not graded are not compared, because a fault need not happen twice. An episode that an outside
    limit truncated is truncated again.

    A row without a seed, of an environment with ``order="random"``, cannot be replayed: its order of turns is unknown.

    Args:
        env: An environment with the settings of the recorded one.
        row: An episode of ``read(path).episodes``.

    Raises:
        ReplayError: Something differs; the message describes the first difference.
    """
    fork(env, row, turn=len(row["turns"]))
    game: FlexMG = env.unwrapped
    if not game.over and row["truncated"]:
        game.truncate(row["truncated"])
    if row["truncated"] or row["not_graded"]:
        return
    if not game.over:
        raise ReplayError("the episode is not over after the last turn of the row")
    if game.outcome is None:
        game.settle(game.grade())
    _check_result(game, row)


def _check_problem(game: FlexMG, row: Row) -> None:
    for name, actual in (("prompt", game.problem.prompt), ("private", dict(game.problem.private))):
        if actual != row[name]:
            raise ReplayError(
                f"problem {row['index']} has a different {name}: {actual!r:.200}; the row has {row[name]!r:.200}"
            )


def _check_before_action(game: FlexMG, number: int, recorded: Row) -> None:
    """Raise ReplayError unless the recorded agent acts next and has the recorded observation."""
    agent = recorded["agent"]
    if game.over:
        raise ReplayError(f"the episode is over; in the row {agent} acts", number)
    if game.agent_selection != agent:
        raise ReplayError(f"{game.agent_selection} acts; in the row {agent} acts", number)
    if "observed" not in recorded:
        return
    observation = game.observe(agent)
    if digest(observation) != recorded["observed"]:
        known = f"; the row has {recorded['observation']['messages']!r:.600}" if "observation" in recorded else ""
        raise ReplayError(f"{agent} has a different observation: {observation['messages']!r:.600}{known}", number)


def _check_after_action(game: FlexMG, number: int, recorded: Row) -> None:
    """Raise ReplayError unless the transcript has the recorded turn."""
    expected = Turn(recorded["round"], recorded["agent"], recorded["text"], recorded["kind"])
    actual = game.transcript[number] if number < len(game.transcript) else None
    if actual != expected:
        raise ReplayError(f"the transcript has {actual!r:.300}; the row has {expected!r:.300}", number)


def _check_result(game: FlexMG, row: Row) -> None:
    """Raise ReplayError unless verdicts, score and rewards are the recorded ones."""
    verdicts = game.outcome.verdicts if game.outcome else {}
    actual: dict[str, Any] = {
        "verdicts": {agent: verdict_row(verdict, with_reason=True) for agent, verdict in verdicts.items()},
        "score": game.outcome.score if game.outcome else None,
        "rewards": dict(game.rewards),
    }
    for agent, recorded in row["verdicts"].items():
        if "reason" not in recorded:
            actual["verdicts"].get(agent, {}).pop("reason", None)
    for name, value in actual.items():
        if value != row[name]:
            raise ReplayError(f"{name}: {value!r:.300}; the row has {row[name]!r:.300}")
