"""OrderEnforcing: a wrapper that enforces the order of PettingZoo's calls.

It replaces PettingZoo's OrderEnforcingWrapper and AssertOutOfBoundsWrapper, which take several times as long as a turn
of the game itself (``benchmarks/throughput.py``).

Errors: any use before ``reset``; ``step`` and ``last`` after all agents have left; two iterations of ``agent_iter``
without a ``step`` in between. Not checked here: the type of an action, which the game checks; its length, because the
game truncates and flags long actions; changes of ``env.unwrapped`` by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pettingzoo import AECEnv

from marft_envs.game.flex_mg import FlexMG


class ResetNeeded(RuntimeError):
    """The environment was used before ``reset``, or after the end of its episode."""


class OrderEnforcing(AECEnv[str, dict[str, Any], str]):
    """An environment that raises an error for calls in the wrong order.

    All other attributes are those of the wrapped environment.

    Args:
        env: The game to wrap.
    """

    def __init__(self, env: FlexMG) -> None:
        self.env = env
        self.metadata = env.metadata
        self.possible_agents = env.possible_agents
        self.render_mode = env.render_mode
        self.observation_spaces, self.action_spaces = env.observation_spaces, env.action_spaces
        self.observation_space, self.action_space = env.observation_space, env.action_space  # type: ignore[method-assign]
        self._was_reset = False
        self._stepped = False

    def _checked(self, call: str) -> FlexMG:
        """Return the game; ResetNeeded before its first reset."""
        if not self._was_reset:
            raise ResetNeeded(f"{call} before reset(): expected env.reset(seed=...) first")
        return self.env

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        self.env.reset(seed=seed, options=options)
        self._was_reset = self._stepped = True

    def step(self, action: str | None) -> None:
        env = self.env
        if not self._was_reset:
            self._checked("step()")
        if not env.agents:
            raise ResetNeeded("step() after the end of the episode: expected env.reset() first")
        env.step(action)
        self._stepped = True

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        if not self._was_reset:
            self._checked("last()")
        env = self.env
        if not env.agents:
            raise ResetNeeded("last() after the end of the episode: expected env.reset() first")
        agent = env.agent_selection
        return (
            env.observe(agent) if observe else None,
            env._cumulative_rewards[agent],
            env.terminations[agent],
            env.truncations[agent],
            env.infos[agent],
        )

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:  # type: ignore[override]
        """Yield the selected agent while agents are left; each needs its ``step``.

        Raises:
            RuntimeError: There was no ``step`` since the previous iteration.
        """
        self._checked("agent_iter()")
        return self._iterate(max_iter)

    def _iterate(self, max_iter: int) -> Iterator[str]:
        env = self.env
        while env.agents and max_iter > 0:
            if not self._stepped:
                raise RuntimeError("agent_iter() was advanced without a step(): expected one env.step() per iteration")
            self._stepped = False
            max_iter -= 1
            yield env.agent_selection

    def observe(self, agent: str) -> dict[str, Any]:
        return self._checked("observe()").observe(agent)

    def state(self) -> Any:
        return self._checked("state()").state()

    def render(self) -> Any:
        return self._checked("render()").render()

    def close(self) -> None:
        self.env.close()

    @property
    def unwrapped(self) -> FlexMG:  # type: ignore[override]
        return self.env

    def __str__(self) -> str:
        return str(self.env)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped environment; those in ``_AFTER_RESET`` only exist after ``reset``."""
        if name == "env" or (name.startswith("_") and name != "_cumulative_rewards"):
            raise AttributeError(name)
        if not self._was_reset and name in _AFTER_RESET:
            raise AttributeError(f"{name} before reset(): expected env.reset(seed=...) first")
        return getattr(self.env, name)


_AFTER_RESET = frozenset(
    {"agents", "rewards", "terminations", "truncations", "infos", "agent_selection", "num_agents",
     "_cumulative_rewards", "problem", "transcript", "outcome", "round", "over", "truncation_reason",
     "truncated_before", "feedback", "dependency", "generation", "answers", "grade", "settle", "truncate"}
)  # fmt: skip
