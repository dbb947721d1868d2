"""The guard around a raw environment: calls in order, before anything else happens.

It stands in place of PettingZoo's OrderEnforcingWrapper and AssertOutOfBoundsWrapper, which cost several times a turn
of the game itself. It guards against: any use before ``reset``, ``step`` and ``last`` after everybody has left, and two
iterations of ``agent_iter`` without a step between them. Types of actions are checked by the raw environment. It does
not guard against long texts (clipped and flagged, never an error) or against changing ``env.unwrapped`` by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pettingzoo import AECEnv

from marft_envs.game.flex_mg import FlexMG


class ResetNeeded(RuntimeError):
    """Something was asked of an environment that has not been reset."""


class OrderEnforcing(AECEnv[str, dict[str, Any], str]):
    """``env`` with the order of calls enforced."""

    def __init__(self, env: FlexMG) -> None:
        self.env = env
        self.metadata = env.metadata
        self.possible_agents = env.possible_agents
        self.render_mode = env.render_mode
        self.observation_spaces, self.action_spaces = env.observation_spaces, env.action_spaces
        self.observation_space, self.action_space = env.observation_space, env.action_space  # type: ignore[method-assign]
        self._live = False
        self._moved = False

    def _check(self, what: str) -> FlexMG:
        if not self._live:
            raise ResetNeeded(f"{what} before reset(): expected env.reset(seed=...) first")
        return self.env

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        self.env.reset(seed=seed, options=options)
        self._live = self._moved = True

    def step(self, action: str | None) -> None:
        env = self.env
        if not self._live:
            self._check("step()")
        if not env.agents:
            raise ResetNeeded("step() after the end of the episode: expected env.reset() first")
        env.step(action)
        self._moved = True

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        if not self._live:
            self._check("last()")
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
        """The selected agent, again and again while agents are left; each needs its step."""
        self._check("agent_iter()")
        return self._iterate(max_iter)

    def _iterate(self, max_iter: int) -> Iterator[str]:
        env = self.env
        while env.agents and max_iter > 0:
            if not self._moved:
                raise RuntimeError("agent_iter() was advanced without a step(): expected one step for each agent")
            self._moved = False
            max_iter -= 1
            yield env.agent_selection

    def observe(self, agent: str) -> dict[str, Any]:
        return self._check("observe()").observe(agent)

    def state(self) -> Any:
        return self._check("state()").state()

    def render(self) -> Any:
        return self._check("render()").render()

    def close(self) -> None:
        self.env.close()

    @property
    def unwrapped(self) -> FlexMG:  # type: ignore[override]
        return self.env

    def __str__(self) -> str:
        return str(self.env)

    def __getattr__(self, name: str) -> Any:
        """What only exists after ``reset`` (agents, rewards, infos, ...), and anything else of the raw environment."""
        if name == "env" or (name.startswith("_") and name != "_cumulative_rewards"):
            raise AttributeError(name)
        if not self._live and name in _AFTER_RESET:
            raise AttributeError(f"{name} before reset(): expected env.reset(seed=...) first")
        return getattr(self.env, name)


_AFTER_RESET = frozenset(
    {"agents", "rewards", "terminations", "truncations", "infos", "agent_selection", "num_agents",
     "_cumulative_rewards", "problem", "transcript", "outcome", "round", "over", "truncation_reason", "truncated_before", "feedback",
     "dependency", "generation", "answers", "grade", "settle", "truncate"}
)  # fmt: skip
