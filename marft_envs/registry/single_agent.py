"""A multi-agent environment as a Gymnasium environment: one agent learns, the other agents follow fixed policies.

    import gymnasium, marft_envs
    env = gymnasium.make("marft/math-v0")                                  # a team of one agent
    env = gymnasium.make("marft/math-v0", team="duo", agent="actor_0", policies={"reasoner_0": my_policy})

| | |
|---|---|
| id | that of PettingZoo: marft/math-v0 |
| agent | the agent that learns; each of its turns is one step. It may be omitted if the team has one agent |
| policies | one function for each other agent, or one for all of them, from its observation to its text |
| observation | "messages": the dict of the multi-agent environment; "text": the same as one string |
| end | terminated when the answer is graded; truncated, with reward 0 and ``info["not_graded"]``, if grading failed |

All other arguments are those of the environment. Without ``team``, ``agent`` and ``policies`` the team is "solo" if the
environment has that team. An episode of several rounds has several steps.

Use ``SyncVectorEnv``, or ``AsyncVectorEnv(..., shared_memory=False)``: the shared memory of Gymnasium cannot hold
strings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import gymnasium

from marft_envs.arguments import check_callable, expected_one_of
from marft_envs.game.spaces import UnicodeText
from marft_envs.registry.registry import environment_module, make

Policy = Callable[[dict[str, Any]], str]
Observation = Literal["messages", "text"]
OBSERVATIONS = get_args(Observation)
_TEXT_CHARS = 10_000_000
"""The upper bound of the space of "text" observations, in characters."""


class SingleAgent(gymnasium.Env[Any, str]):
    """One agent's view of a multi-agent environment.

    In a step, the agent acts, and then the other agents act until it is the agent's turn again.

    Args:
        env: A multi-agent environment, from ``marft_envs.make`` or a module's ``env()``.
        agent: The agent that learns. It may be omitted if the team has one agent.
        policies: A function from observation to text for each other agent, by agent, or one function for all.
        observation: "messages" for the dict of the multi-agent environment, "text" for one string.

    Raises:
        ValueError: ``agent`` is not in the team, another agent has no policy, or ``observation`` is unknown.
        TypeError: A policy is not a function of one argument.
    """

    def __init__(
        self,
        env: Any,
        *,
        agent: str | None = None,
        policies: Mapping[str, Policy] | Policy | None = None,
        observation: Observation = "messages",
    ) -> None:
        if observation not in OBSERVATIONS:
            raise ValueError(expected_one_of("observation", observation, OBSERVATIONS))
        self.env, self.game = env, env.unwrapped
        self.agent = _learning_agent(agent, list(env.possible_agents))
        self.policies = _policies_by_agent(policies, [a for a in env.possible_agents if a != self.agent])
        self.as_text = observation == "text"
        self.metadata = {"render_modes": list(env.metadata["render_modes"]), "render_fps": 1}
        self.render_mode = env.render_mode
        self.action_space = env.action_space(self.agent)
        self.observation_space = UnicodeText(_TEXT_CHARS) if self.as_text else env.observation_space(self.agent)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the episode that ``env.reset`` begins, and let the other agents act until the agent's first turn.

        Args:
            seed: The seed of the environment.
            options: ``{"index": i}`` chooses problem i.

        Returns:
            The agent's observation and info.

        Raises:
            RuntimeError: The agent has no turn in this episode, which an orchestrated D can cause.
        """
        super().reset(seed=seed)
        self.env.reset(seed=seed, options=options)
        self._reward = 0.0
        self._play_others()
        if self.game.over:
            raise RuntimeError(f"the episode ended before {self.agent} had a turn: expected a D that gives it one")
        return self._observe(), self._info()

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the agent's action, and let the other agents act until its next turn.

        Args:
            action: The agent's text.

        Returns:
            Observation, reward, terminated, truncated, info.

        Raises:
            RuntimeError: The episode is over.
            TypeError: ``action`` is not a str.
        """
        if self.game.over:
            raise RuntimeError("step() after the end of the episode: expected env.reset() first")
        self._reward = 0.0
        self._act(action)
        self._play_others()
        ends = self.env.terminations[self.agent], self.env.truncations[self.agent]
        return self._observe(), self._reward, *ends, self._info()

    def render(self) -> Any:
        """Render like the multi-agent environment: return a string for "ansi", print it for "human"."""
        return self.env.render()

    def close(self) -> None:
        """Close the multi-agent environment."""
        self.env.close()

    def _play_others(self) -> None:
        while not self.game.over and self.env.agent_selection != self.agent:
            other = self.env.agent_selection
            self._act(self.policies[other](self.env.observe(other)))

    def _act(self, text: str) -> None:
        self.env.step(text)
        self._reward += self.env.rewards[self.agent]

    def _observe(self) -> Any:
        observation = self.env.observe(self.agent)
        return as_text(observation) if self.as_text else observation

    def _info(self) -> dict[str, Any]:
        return {"index": self.game.problem.index, **self.env.infos[self.agent]}


def _learning_agent(agent: str | None, agents: list[str]) -> str:
    if agent is None and len(agents) == 1:
        return agents[0]
    if agent not in agents:
        raise ValueError(expected_one_of("agent", agent, agents))
    return agent


def _policies_by_agent(policies: Mapping[str, Policy] | Policy | None, others: list[str]) -> dict[str, Policy]:
    """Return a policy for each of ``others``. An error names agents without a policy and unknown agents."""
    by_agent = dict.fromkeys(others, policies) if callable(policies) else dict(policies or {})
    missing = [agent for agent in others if agent not in by_agent]
    if missing:
        raise ValueError(
            f"no policy for {', '.join(missing)}: expected policies={{agent: function of its observation}} for every "
            "agent except the one that learns, or one function for all, or a team of one agent, such as team='solo'"
        )
    for agent, policy in by_agent.items():
        check_callable(f"policy of {agent}", policy, ("observation",), classes=True)
    unknown = sorted(set(by_agent) - set(others))
    if unknown:
        raise ValueError(f"policies for {unknown}: expected only {others}, the other agents of the team")
    return by_agent


def as_text(observation: dict[str, Any]) -> str:
    """Return an observation as one string.

    Each message is "[name] content"; empty lines separate messages. The reply prefix, if any, comes last.
    """
    parts = [f"[{message['name']}] {message['content']}" for message in observation["messages"]]
    return "\n\n".join([*parts, observation["reply_prefix"]] if observation["reply_prefix"] else parts)


def silent_policy(observation: dict[str, Any]) -> str:
    """Return an empty string for any observation."""
    return ""


def make_single_agent(
    name: str,
    *,
    agent: str | None = None,
    policies: Mapping[str, Policy] | Policy | None = None,
    observation: Observation = "messages",
    **arguments: Any,
) -> SingleAgent:
    """Make an environment by name, as a Gymnasium environment.

    Without ``agent``, ``policies`` and ``team`` the team is "solo". In an environment without a choice of teams, the
    last answering agent learns instead, and the others reply with an empty string.

    Args:
        name: The environment, such as "math_v0".
        agent: As in ``SingleAgent``.
        policies: As in ``SingleAgent``.
        observation: As in ``SingleAgent``.
        **arguments: Arguments of the environment.

    Raises:
        ValueError: As for ``SingleAgent`` and ``marft_envs.make``.
    """
    if agent is None and policies is None and arguments.get("team") is None:
        module = environment_module(name)
        if "team" in inspect.signature(module.env).parameters or "solo" in getattr(module, "TEAMS", ()):
            arguments["team"] = "solo"
        else:
            env = module.env(**arguments)
            answering = env.unwrapped.team.answering[-1]
            return SingleAgent(env, agent=answering, policies=silent_policy, observation=observation)
    return SingleAgent(make(name, **arguments), agent=agent, policies=policies, observation=observation)
