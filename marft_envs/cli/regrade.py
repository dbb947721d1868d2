"""``python -m marft_envs regrade``: grade the episodes of a trace again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marft_envs.registry import make
from marft_envs.traces import read, regrade, with_policy


def run(path: Path, name: str | None, arguments: Mapping[str, Any], policy: Mapping[str, Any]) -> int:
    """Grade a trace again and print the changed verdicts. Return the exit code, 1 if there are any.

    Args:
        path: The trace.
        name: The environment; None for that of the trace.
        arguments: Arguments of the environment, in addition to those in the trace.
        policy: Changes of the task's grading policy.
    """
    trace = read(path)
    env = make(name or trace.header["environment"], **{**(trace.header["arguments"] or {}), **arguments})
    with_policy(env, policy)
    found = regrade(env, trace.episodes)
    print("\n".join(found.lines()))
    return 1 if found.changed else 0
