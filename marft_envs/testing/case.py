"""What the checks of an environment work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marft_envs.testing.playing import Speak, marker

EnvFn = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """What the checks work on. make: a new environment. module: the versioned module's name, "" if not known."""

    make: EnvFn
    module: str
    seed: int
    indices: tuple[int, ...]

    def env(self, *, ansi: bool = False) -> tuple[Any, Any]:
        """(a new environment, the game within it)."""
        env = self.make()
        if ansi:
            env.unwrapped.render_mode = "ansi"
        return env, env.unwrapped

    def reset(self, **options: Any) -> tuple[Any, Any]:
        """The same after ``reset(seed=...)``."""
        env, game = self.env()
        env.reset(seed=self.seed, options=options or None)
        return env, game


def says(answers: dict[str, str]) -> Speak:
    """Everybody says a marker, but the agents of ``answers`` say theirs."""
    return lambda env, agent, turn: answers.get(agent, marker(turn))
