"""The argument of every check of an environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marft_envs.testing.episodes import ReplyFunction, marker

EnvFn = Callable[[], Any]


@dataclass(frozen=True)
class EnvCase:
    """An environment to check, and the settings of the checks.

    Attributes:
        make: Makes a new environment.
        module: The name of the versioned module; "" if it is unknown.
        seed: The seed of the episodes.
        indices: The problems that are pinned and answered.
    """

    make: EnvFn
    module: str
    seed: int
    indices: tuple[int, ...]

    def env(self, *, ansi: bool = False) -> tuple[Any, Any]:
        """Return a new environment and its game, with ``ansi`` in render mode "ansi"."""
        env = self.make()
        if ansi:
            env.unwrapped.render_mode = "ansi"
        return env, env.unwrapped

    def reset(self, **options: Any) -> tuple[Any, Any]:
        """Return a new environment and its game, after ``reset`` with the seed and ``options``."""
        env, game = self.env()
        env.reset(seed=self.seed, options=options or None)
        return env, game


def reply_from(replies: dict[str, str]) -> ReplyFunction:
    """Return a function with which the agents of ``replies`` give these replies, and all others a marker."""
    return lambda env, agent, turn: replies.get(agent, marker(turn))
