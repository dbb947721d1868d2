"""Rows of a trace, schema ``marft-trace/1``: the header and the episodes as JSON values. See docs/traces.md."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from importlib import metadata
from typing import Any

from marft_envs.batch.episode import Episode, Request, Step
from marft_envs.dependency.graph import Dependency
from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.observation import spoken_prefix
from marft_envs.team.team import Team
from marft_envs.verdict import Outcome, Verdict
from marft_envs.version import __version__

SCHEMA = "marft-trace/1"
Row = dict[str, Any]


class TraceError(ValueError):
    """A file is not a trace of this schema, or an episode cannot be recorded; the message names the file and line."""


def make_header(
    game: FlexMG, arguments: Mapping[str, Any] | None = None, notes: Mapping[str, Any] | None = None
) -> Row:
    """Return the header row of traces of ``game``."""
    return {
        "kind": "header",
        "schema": SCHEMA,
        "environment": str(game),
        "arguments": None if arguments is None else dict(arguments),
        "notes": dict(notes or {}),
        "team": _team(game.team),
        "game": {
            "rounds": game.rounds,
            "memory": game.memory,
            "order": game.order,
            "reward": _name(game.reward),
            "format_bonus": game.format_bonus,
            "max_turns": game.max_turns,
        },
        "versions": {
            "marft_envs": __version__,
            "pettingzoo": metadata.version("pettingzoo"),
            "python": platform.python_version(),
        },
    }


def _team(team: Team) -> Row:
    """Return the team as JSON values.

    D is its edges, or the edges of each round, or None if a function or an orchestrator's reply determines it.
    """
    dependency: Any = None
    if isinstance(team.dependency, Dependency):
        dependency = {"edges": [list(edge) for edge in team.dependency.edges]}
    elif hasattr(team.schedule, "dependencies"):
        dependency = {"rounds": [[list(edge) for edge in d.edges] for d in team.schedule.dependencies]}
    roles = {}
    for agent, role in team.roles.items():
        values = {f.name: getattr(role, f.name) for f in fields(role)}
        values["choices"], values["tools"] = list(role.choices), [tool.name for tool in role.tools]
        roles[agent] = values
    return {
        "roles": roles,
        "dependency": dependency,
        "decided_by": None if dependency else type(team.schedule).__name__,
        "answering": list(team.answering),
        "stop": None if team.stop_rule is None else _name(team.stop_rule),
    }


def episode_row(episode: Episode, *, with_gold: bool = False, observations: bool = False) -> Row:
    """Return an episode as JSON values.

    Args:
        episode: A finished episode.
        with_gold: Add the gold answer, and the reasons of verdicts, which may contain it.
        observations: Add every observation in full.

    Raises:
        TraceError: The episode has no problem.
    """
    if episode.problem is None:
        raise TraceError(
            f"the episode of problem {episode.index} has no problem: expected an episode that a BatchRunner played"
        )
    problem, outcome = episode.problem, episode.outcome
    row: Row = {
        "kind": "episode",
        "number": episode.number,
        "index": problem.index,
        "seed": episode.seed,
        "group": episode.group,
        "member": episode.member,
        "prompt": problem.prompt,
        "private": dict(problem.private),
        "turns": _turn_rows(episode, observations),
        "verdicts": {
            agent: verdict_row(verdict, with_reason=with_gold)
            for agent, verdict in (outcome.verdicts if outcome else {}).items()
        },
        "score": None if outcome is None or episode.not_graded else outcome.score,
        "rewards": dict(episode.rewards),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "not_graded": episode.not_graded,
        "flags": _flags(episode),
    }
    if with_gold:
        row["gold"] = problem.gold
    return row


def verdict_row(verdict: Verdict, *, with_reason: bool) -> Row:
    """Return a verdict as JSON values, without the reason of a graded one if ``with_reason`` is False.

    The reason of a graded verdict may contain the gold ("expected 7").
    """
    row: Row = asdict(verdict) | {"outcome": str(verdict.outcome)}
    if not with_reason and verdict.outcome in (Outcome.CORRECT, Outcome.PARTIAL, Outcome.WRONG):
        del row["reason"]
    return row


def _turn_rows(episode: Episode, observations: bool) -> list[Row]:
    """Return the transcript, with the observation (or its digest) of each action whose step is recorded."""
    rows = []
    steps = iter(episode.steps)
    for turn in episode.transcript:
        row: Row = {"round": turn.round, "agent": turn.agent, "kind": turn.kind, "text": turn.text}
        step = None if turn.kind == "result" else next(steps, None)
        if step is not None:
            row["observed"] = digest(step.request.observation)
            if observations:
                row["observation"] = step.request.observation
        rows.append(row)
    return rows


def add_entries(row: Row, added: Sequence[Mapping[str, Any]]) -> None:
    """Add entries to the turns of an episode row, in place.

    Args:
        row: An episode row.
        added: For each action, in order, the entries to add to its turn; empty to add none. A tool's result is not an
            action.

    Raises:
        ValueError: There is not one mapping for each action.
    """
    actions = [turn for turn in row["turns"] if turn["kind"] != "result"]
    if added and len(added) != len(actions):
        raise ValueError(f"added: {len(added)} for an episode of {len(actions)} actions: expected one for each action")
    for turn, entries in zip(actions, added, strict=False):
        turn.update(entries)


_NO_FLAGS = ("score", "verdict", "not_graded", "truncated")


def _flags(episode: Episode) -> dict[str, dict[str, Any]]:
    """Return the remaining entries of each agent's info: clipped, malformed, format_bonus, ..."""
    flags = {agent: {k: v for k, v in info.items() if k not in _NO_FLAGS} for agent, info in episode.infos.items()}
    return {agent: entries for agent, entries in flags.items() if entries}


def digest(observation: Mapping[str, Any]) -> str:
    """Return a digest of an observation, 16 hexadecimal digits that depend on every character of it.

    Args:
        observation: ``messages`` and ``reply_prefix``, as ``env.observe`` returns them.
    """
    text = json.dumps([list(observation["messages"]), observation["reply_prefix"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def action_of(game: FlexMG, agent: str, text: str) -> str:
    """Return the action of a turn of the transcript, that is, its text without the role's reply prefix."""
    return text.removeprefix(spoken_prefix(game.team.roles[agent].reply_prefix))


def episode_of(env: Any, seed: int | None = None) -> Episode:
    """Return the record of an episode that was played by hand, before any agent has left it.

    The observations are found by replaying the episode on a copy of the environment. They are omitted if a tool was
    called, because a second call might have side effects, or if the order of turns cannot be reproduced.

    Args:
        env: The environment after the last action.
        seed: The seed of its ``reset``.

    Raises:
        TraceError: The episode is not over or not graded, or an agent has already left it.
    """
    game: FlexMG = env.unwrapped
    if not getattr(game, "over", False):
        raise TraceError(f"{game}: the episode is not over; expected a finished one")
    if len(game.agents) < len(game.possible_agents):
        raise TraceError(f"{game}: an agent has already left; expected an episode before its first dead step")
    if game.outcome is None and not any(game.truncations.values()):
        raise TraceError(f"{game}: the episode is not graded; expected env.settle(env.grade()) first")
    problem = game.problem
    episode = Episode(problem.index, problem=problem, transcript=game.transcript, steps=_steps(game, seed), seed=seed)
    episode.record_result(game)
    return episode


def _steps(game: FlexMG, seed: int | None) -> list[Step]:
    """Replay the game on a copy. Return its steps, or [] if the replay differs."""
    steps: list[Step] = []
    copy = game.sibling(defer_grading=True)
    copy.reset(seed=seed, options={"index": game.problem.index})
    for number, (round_, agent, text, kind) in enumerate(game.transcript):
        if kind != "say" or copy.over or copy.agent_selection != agent:
            return []
        request = Request(0, game.problem.index, agent, round_, number, copy.observe(agent))
        steps.append(Step(request, action_of(game, agent, text), None))
        copy.step(steps[-1].text)
    return steps if copy.transcript == game.transcript else []


def _name(thing: Any) -> str:
    """Return a function's name, or the repr of another object without its memory address."""
    return getattr(thing, "__name__", None) or re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
