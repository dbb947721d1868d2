"""The rows of a trace: what the schema ``marft-trace/1`` keeps of a game and of an episode. See docs/traces.md."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import metadata
from typing import Any

import marft_envs
from marft_envs.batch.episode import Episode, Request, Step
from marft_envs.dependency.graph import Dependency
from marft_envs.game.flex_mg import FlexMG
from marft_envs.team.team import Team
from marft_envs.verdict import Outcome, Verdict

SCHEMA = "marft-trace/1"
Row = dict[str, Any]


class TraceError(ValueError):
    """A file, a row or an episode that makes no trace of this schema; it names the file and the line."""


def make_header(game: FlexMG, arguments: Mapping[str, Any] | None = None) -> Row:
    """The header row of traces of ``game``."""
    return {
        "kind": "header",
        "schema": SCHEMA,
        "environment": str(game),
        "arguments": None if arguments is None else dict(arguments),
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
            "marft_envs": marft_envs.__version__,
            "pettingzoo": metadata.version("pettingzoo"),
            "python": platform.python_version(),
        },
    }


def _team(team: Team) -> Row:
    """Roles in full, and D: edges, or a list of them for each round, or None where a function or a reply decides."""
    dependency: Any = None
    if isinstance(team.dependency, Dependency):
        dependency = {"edges": [list(edge) for edge in team.dependency.edges]}
    elif hasattr(team.schedule, "dependencies"):
        dependency = {"rounds": [[list(edge) for edge in d.edges] for d in team.schedule.dependencies]}
    roles = {}
    for agent, role in team.roles.items():
        table = {f.name: getattr(role, f.name) for f in fields(role)}
        table["choices"], table["tools"] = list(role.choices), [tool.name for tool in role.tools]
        roles[agent] = table
    return {
        "roles": roles,
        "dependency": dependency,
        "decided_by": None if dependency else type(team.schedule).__name__,
        "answering": list(team.answering),
        "stop": None if team.stop_rule is None else _name(team.stop_rule),
    }


def episode_row(episode: Episode, *, with_gold: bool = False, observations: bool = False) -> Row:
    """An episode as JSON-able values."""
    if episode.problem is None:
        raise TraceError(f"episode of problem {episode.index} holds no problem: expected one that a BatchRunner played")
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
            a: verdict_row(v, with_reason=with_gold) for a, v in (outcome.verdicts if outcome else {}).items()
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
    """A verdict as values. The reason of a graded one may name the gold ("expected 7"), so it is kept only if asked."""
    row: Row = asdict(verdict) | {"outcome": str(verdict.outcome)}
    if not with_reason and verdict.outcome in (Outcome.CORRECT, Outcome.PARTIAL, Outcome.WRONG):
        del row["reason"]
    return row


def _turn_rows(episode: Episode, observations: bool) -> list[Row]:
    """The transcript; beside each action what its agent had read, as far as the episode knows."""
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


_NO_FLAGS = ("score", "verdict", "not_graded", "truncated")


def _flags(episode: Episode) -> dict[str, dict[str, Any]]:
    """What else the environment said of each agent: clipped, malformed, format_bonus, ..."""
    flags = {agent: {k: v for k, v in info.items() if k not in _NO_FLAGS} for agent, info in episode.infos.items()}
    return {agent: table for agent, table in flags.items() if table}


def digest(observation: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change with any character of an observation."""
    text = json.dumps([list(observation["messages"]), observation["reply_prefix"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def action_of(game: FlexMG, agent: str, text: str) -> str:
    """The action behind a text of the transcript: the environment puts the role's reply prefix before it."""
    return text.removeprefix(game.team.roles[agent].reply_prefix)


def episode_of(env: Any, seed: int | None = None) -> Episode:
    """The record of a hand-driven episode that is over, and whose agents have not left yet.

    seed: what it was reset with. What its agents read is found by playing it again on a sibling; it is left out where
    tools were called (they might do something twice) or where the order of turns does not come out again.
    """
    game: FlexMG = env.unwrapped
    if not getattr(game, "over", False):
        raise TraceError(f"{game}: the episode is not over; expected a finished one")
    if len(game.agents) < len(game.possible_agents):
        raise TraceError(f"{game}: agents have left already; expected to record before the first dead step")
    if game.outcome is None and not any(game.truncations.values()):
        raise TraceError(f"{game}: grading was deferred and is not settled; expected env.settle(env.grade()) first")
    problem = game.problem
    episode = Episode(problem.index, problem=problem, transcript=game.transcript, steps=_steps(game, seed), seed=seed)
    episode.record_result(game)
    return episode


def _steps(game: FlexMG, seed: int | None) -> list[Step]:
    steps: list[Step] = []
    again = game.sibling(defer_grading=True)
    again.reset(seed=seed, options={"index": game.problem.index})
    for number, (round_, agent, text, kind) in enumerate(game.transcript):
        if kind != "say" or again.over or again.agent_selection != agent:
            return []
        request = Request(0, game.problem.index, agent, round_, number, again.observe(agent))
        steps.append(Step(request, action_of(game, agent, text), None))
        again.step(steps[-1].text)
    return steps if again.transcript == game.transcript else []


def _name(thing: Any) -> str:
    """A function's name, or an object's repr without its address."""
    return getattr(thing, "__name__", None) or re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
