"""The attributes of each agent that PettingZoo's AEC interface requires, and the methods that depend on them alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gymnasium import Space
from pettingzoo import AECEnv

from marft_envs.arguments import expected_one_of


class AECBookkeeping(AECEnv[str, dict[str, Any], str]):
    """Spaces, rewards and flags of every agent, and the removal of agents after the end. It has no rules of a game.

    A subclass sets ``possible_agents`` and the spaces when it is made. It begins an episode with ``_begin_agents``, and
    ends it by terminating or truncating all agents.

    Attributes:
        possible_agents: All agents, in listed order.
        observation_spaces: The observation space of each agent.
        action_spaces: The action space of each agent.
        agents: The agents that have not been removed.
        agent_selection: The agent whose turn it is.
        rewards: Of each agent, for the last live step.
        terminations: Whether each agent is terminated.
        truncations: Whether each agent is truncated.
        infos: The info of each agent.
    """

    possible_agents: list[str]
    observation_spaces: dict[str, Space[Any]]
    action_spaces: dict[str, Space[Any]]

    def observation_space(self, agent: str) -> Any:
        """Return the agent's observation space, the same object on every call; ValueError for an unknown agent.

        Observations are ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}``.
        """
        return self._space(agent, self.observation_spaces)

    def action_space(self, agent: str) -> Any:
        """Return the agent's action space, the same object on every call; ValueError for an unknown agent.

        Actions are UTF-8 strings of at most ``max_chars`` characters, or the role's choices.
        """
        return self._space(agent, self.action_spaces)

    def _space(self, agent: str, spaces: Mapping[str, Any]) -> Any:
        if agent not in spaces:
            raise ValueError(expected_one_of("agent", agent, self.possible_agents))
        return spaces[agent]

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:  # type: ignore[override]
        """Yield the selected agent while agents are left; each needs its ``step``."""
        while self.agents and max_iter > 0:
            max_iter -= 1
            yield self.agent_selection

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        """Return (observation, cumulative reward, terminated, truncated, info) of the selected agent."""
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _begin_agents(self) -> None:
        """Make all agents live, without rewards and infos."""
        agents = self.possible_agents
        self.agents = list(agents)
        self.rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}

    def _truncate_agents(self, key: str, reason: str) -> None:
        """Truncate all agents that are left, and report the reason in their infos under ``key``."""
        if self.agents:  # a deferred verdict may arrive when all agents have been removed
            self.agent_selection = self.agents[0]
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            self.infos[agent][key] = reason

    def _dead_step(self, agent: str, action: Any) -> None:
        """Remove a terminated or truncated agent, as PettingZoo's interface requires.

        Raises:
            ValueError: The action is not None; the agent is not removed.
        """
        if action is not None:
            raise ValueError(f"action of {agent}: got {action!r:.80} after its end, expected None")
        agents = self.agents
        # Rewards belong to the last live step: they are cleared when the first agent is removed.
        if len(agents) == len(self.possible_agents):
            self.rewards = dict.fromkeys(agents, 0.0)
        for by_agent in (self.terminations, self.truncations, self.rewards, self._cumulative_rewards, self.infos):
            del by_agent[agent]
        agents.remove(agent)
        if agents:
            self.agent_selection = agents[0]
