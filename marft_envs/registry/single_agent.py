"""The Gymnasium side: one agent of a team learns, the others are played by given policies.

    import gymnasium, marft_envs
    env = gymnasium.make("marft/math-v0")                                  # alone
    env = gymnasium.make("marft/math-v0", team="duo", agent="actor_0", policies={"reasoner_0": my_policy})

| | |
|---|---|
| id | PettingZoo's: marft/math-v0 |
| agent | whose turns are the steps; it may be left out where the team has one agent |
| policies | for each other agent a function of its observation that returns its text, or one function for all others |
| observation | "messages": the dict of the multi-agent side; "text": the same as one string |
| end | terminated when the answer is graded; truncated, reward 0, ``info["not_graded"]`` when it could not be graded |

All other arguments are those of the environment. Without ``team``, ``agent`` and ``policies`` the team is "solo", where
the environment has one. Several rounds are several steps. In vector environments: SyncVectorEnv as it is,
``AsyncVectorEnv(..., shared_memory=False)``, because Gymnasium's shared memory cannot hold texts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium

from marft_envs.arguments import check_callable, expected_one_of
from marft_envs.game.spaces import UnicodeText
from marft_envs.registry.registry import environment_module, make

Policy = Callable[[dict[str, Any]], str]
Observation = Literal["messages", "text"]
OBSERVATIONS = ("messages", "text")
_TEXT_CHARS = 10_000_000


class SingleAgent(gymnasium.Env[Any, str]):
    """``agent``'s view of a multi-agent environment. One step: its text, then all others until its next turn.

    env: from ``marft_envs.make`` or a module's ``env()``. agent, policies, observation: see the module's page.
    Raises ValueError for an unknown agent, and for other agents without a policy, by name.
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
        self.agent = _chosen(agent, list(env.possible_agents))
        self.policies = _policies(policies, [a for a in env.possible_agents if a != self.agent])
        self.as_text = observation == "text"
        self.metadata = {"render_modes": list(env.metadata["render_modes"]), "render_fps": 1}
        self.render_mode = env.render_mode
        self.action_space = env.action_space(self.agent)
        self.observation_space = UnicodeText(_TEXT_CHARS) if self.as_text else env.observation_space(self.agent)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: the one that ``env.reset`` with the same arguments gives. The others play up to the first
        turn of ``agent``. RuntimeError where it has none, which an orchestrated D can bring about."""
        super().reset(seed=seed)
        self.env.reset(seed=seed, options=options)
        self._paid = 0.0
        self._others_play()
        if self.game.over:
            raise RuntimeError(f"the episode ended before {self.agent} had a turn: expected a D that gives it one")
        return self._observe(), self._info()

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """``agent`` says ``action``. RuntimeError after the end, TypeError for anything but a str."""
        if self.game.over:
            raise RuntimeError("step() after the end of the episode: expected env.reset() first")
        self._paid = 0.0
        self._say(action)
        self._others_play()
        ends = self.env.terminations[self.agent], self.env.truncations[self.agent]
        return self._observe(), self._paid, *ends, self._info()

    def render(self) -> Any:
        """As the multi-agent environment renders: text for "ansi", printed for "human"."""
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    def _others_play(self) -> None:
        while not self.game.over and self.env.agent_selection != self.agent:
            other = self.env.agent_selection
            self._say(self.policies[other](self.env.observe(other)))

    def _say(self, text: str) -> None:
        self.env.step(text)
        self._paid += self.env.rewards[self.agent]

    def _observe(self) -> Any:
        observation = self.env.observe(self.agent)
        return as_text(observation) if self.as_text else observation

    def _info(self) -> dict[str, Any]:
        return {"index": self.game.problem.index, **self.env.infos[self.agent]}


def _chosen(agent: str | None, agents: list[str]) -> str:
    if agent is None and len(agents) == 1:
        return agents[0]
    if agent not in agents:
        raise ValueError(expected_one_of("agent", agent, agents))
    return agent


def _policies(given: Mapping[str, Policy] | Policy | None, others: list[str]) -> dict[str, Policy]:
    """A policy for each of ``others``; ValueError names those without one, and those that are not in the team."""
    policies = dict.fromkeys(others, given) if callable(given) else dict(given or {})
    missing = [agent for agent in others if agent not in policies]
    if missing:
        raise ValueError(
            f"no policy for {', '.join(missing)}: expected policies={{agent: function of its observation}} for each "
            f"agent but the learning one, or one function for all, or a team of one, as team='solo'"
        )
    for agent, policy in policies.items():
        check_callable(f"policy of {agent}", policy, ("observation",), classes=True)
    strangers = sorted(set(policies) - set(others))
    if strangers:
        raise ValueError(f"policies for {strangers}: expected only {others}, the other agents of the team")
    return policies


def as_text(observation: dict[str, Any]) -> str:
    """The messages as one string, "[name] content" with an empty line between them, then the reply's prefix."""
    parts = [f"[{message['name']}] {message['content']}" for message in observation["messages"]]
    return "\n\n".join([*parts, observation["reply_prefix"]] if observation["reply_prefix"] else parts)


def silent(observation: dict[str, Any]) -> str:
    """A policy that says nothing."""
    return ""


def make_single_agent(
    name: str,
    *,
    agent: str | None = None,
    policies: Mapping[str, Policy] | Policy | None = None,
    observation: Observation = "messages",
    **arguments: Any,
) -> SingleAgent:
    """The environment ``name`` ("math_v0") as a Gymnasium environment; ``arguments`` are its own.

    With none of ``agent``, ``policies`` and ``team`` the team is "solo"; an environment without teams to choose from
    is then played by its (last) answering agent, and the others are silent.
    """
    if agent is None and policies is None and arguments.get("team") is None:
        module = environment_module(name)
        if "team" in inspect.signature(module.env).parameters or "solo" in getattr(module, "TEAMS", ()):
            arguments["team"] = "solo"
        else:
            env = module.env(**arguments)
            return SingleAgent(env, agent=env.unwrapped.team.answering[-1], policies=silent, observation=observation)
    return SingleAgent(make(name, **arguments), agent=agent, policies=policies, observation=observation)
