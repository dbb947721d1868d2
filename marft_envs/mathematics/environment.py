"""From the arguments of ``math_v0.env`` to a game: the data set by name, the team by name, D in its place."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from marft_envs import datasets
from marft_envs.flex_mg import FlexMG
from marft_envs.guard import Guard
from marft_envs.mathematics.generated import Arithmetic, OneStep, WordProblems
from marft_envs.mathematics.relay import Relay
from marft_envs.mathematics.teams import as_team
from marft_envs.task import Task
from marft_envs.team import Team

GENERATORS: dict[str, Callable[..., Task]] = {
    "word_problems": WordProblems, "arithmetic": Arithmetic, "one_step": OneStep, "relay": Relay,
}  # fmt: skip


def make_task(dataset: str | Task, team: Team, *, split: str = "train", **arguments: Any) -> Task:
    """The task behind ``dataset``. ValueError names an unknown data set or an argument that it does not take."""
    if isinstance(dataset, Task):
        if arguments:
            raise ValueError(f"unknown arguments {sorted(arguments)}: a Task given as dataset= takes none")
        return dataset
    known = (*GENERATORS, *datasets.NAMES)
    if dataset not in known:
        near = difflib.get_close_matches(str(dataset), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"dataset={dataset!r}: expected one of {', '.join(known)}{hint}")
    maker = GENERATORS.get(dataset)
    if maker is None:
        _check_arguments(dataset, datasets.load, arguments)
        return datasets.load(dataset, split=split, **arguments)
    _check_arguments(dataset, maker, arguments)
    if "agents" in inspect.signature(maker).parameters:
        arguments["agents"] = team.dependency.order
    return maker(split=split, **arguments)


def _check_arguments(dataset: str, maker: Callable[..., Any], arguments: dict[str, Any]) -> None:
    allowed = [name for name in inspect.signature(maker).parameters if name not in ("name", "split", "agents")]
    unknown = sorted(set(arguments) - set(allowed))
    if unknown:
        raise ValueError(f"unknown arguments {unknown} for dataset={dataset!r}: expected some of {allowed}")


def raw_env(
    dataset: str | Task = "word_problems",
    *,
    team: str | Team = "duo",
    dependency: Any = None,
    split: str = "train",
    rounds: int = 1,
    memory: Any = "all",
    order: Any = "stable",
    reward: Any = "shared",
    render_mode: str | None = None,
    defer_grading: bool = False,
    **data_arguments: Any,
) -> FlexMG:
    """The game without the guard; the arguments are those of ``marft_envs.math_v0``."""
    members = as_team(team)
    if dependency is not None:
        members = members.with_dependency(dependency)
    return FlexMG(
        make_task(dataset, members, split=split, **data_arguments),
        members,
        name="math_v0",
        rounds=rounds,
        memory=memory,
        order=order,
        reward=reward,
        render_mode=render_mode,
        defer_grading=defer_grading,
    )


def env(dataset: str | Task = "word_problems", **arguments: Any) -> Guard:
    """The game behind the guard that enforces the order of calls; arguments as ``raw_env``."""
    return Guard(raw_env(dataset, **arguments))
