"""The policy of a whole team: agents on one base model or on several, and scripted agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from baselines.engine.invocation import invocation_ids
from baselines.engine.sampler import EngineSampler
from baselines.engine.scripted import Scripted, load_scripts
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import LoadedModel, load_model
from baselines.models.shape import shape_of
from baselines.policies.policy import SharedBasePolicy, adapters, update_blocks
from baselines.runs.merging import merged_copy_bytes
from baselines.runs.run_config import RunConfig
from marft_envs.arguments import expected_one_of
from marft_envs.batch import Episode, PolicyFault, Reply, Request
from marft_envs.game.observation import without_private


@dataclass(frozen=True)
class BaseGroup:
    """The agents on one base model.

    Attributes:
        name: Name of the base in the configuration.
        loaded: The model and its tokenizer.
        policy: The policies of these agents.
        engine: The generation engine of these policies.
    """

    name: str
    loaded: LoadedModel = field(repr=False)
    policy: SharedBasePolicy = field(repr=False)
    engine: TorchEngine = field(repr=False)


@dataclass
class TeamSampler:
    """A policy for ``BatchRunner`` that samples the actions of all agents of a team.

    Attributes:
        samplers: Sampler by agent. Agents on the same base share one. A scripted agent has the sampler of the base
            that reads its turns for the critic.
        scripts: Scripted agents by name; they answer instead of their sampler.
    """

    samplers: Mapping[str, EngineSampler]
    scripts: Mapping[str, Scripted]

    def __call__(self, requests: list[Request]) -> list[Reply | PolicyFault]:
        """Return one reply per request, of any of the agents, or the fault of a script in its place.

        Agents on one base are served by one call of its engine.
        """
        policies = [self.scripts.get(request.agent, self.samplers[request.agent]) for request in requests]
        replies: dict[int, Reply | PolicyFault] = {}
        for policy in {id(policy): policy for policy in policies}.values():
            mine = [i for i, its in enumerate(policies) if its is policy]
            try:
                replies.update(zip(mine, policy([requests[i] for i in mine]), strict=True))
            except PolicyFault as fault:  # not of the other agents
                replies.update(dict.fromkeys(mine, fault))
        return [replies[i] for i in range(len(requests))]

    def prompt(self, agent: str, observation: Mapping[str, Any]) -> list[int]:
        """Return the token ids [T] that the agent's base reads for an observation."""
        return self.samplers[agent].prompt(observation)

    def public(self, episode: Episode) -> Episode:
        """Return a copy of the episode whose prompts lack the private parts of the problem.

        A critic that must not read private parts is trained on it. The actions stay as they were sampled.
        """
        assert episode.problem is not None
        private = episode.problem.private

        def without(agent: str, observation: Mapping[str, Any]) -> dict[str, Any]:
            return {**observation, "messages": without_private(observation["messages"], private.get(agent, ""))}

        steps = []
        for step in episode.steps:
            agent = step.request.agent
            ids = self.public_prompt(agent, without(agent, step.request.observation))
            steps.append(replace(step, data=replace(step.data, prompt_ids=tuple(ids), base_tokens=0)))
        final = episode.final_state
        if final is not None:
            final = replace(final, observations={a: without(a, seen) for a, seen in final.observations.items()})
        return replace(episode, steps=steps, final_state=final)

    def public_prompt(self, agent: str, observation: Mapping[str, Any]) -> list[int]:
        """Return the token ids of an observation of a ``public`` episode, which may have no text left."""
        return self.samplers[agent].prompt(observation, may_be_empty=True)

    @property
    def prompt_tokens(self) -> int:
        """The number of prompt tokens that all models have read."""
        return sum(sampler.prompt_tokens for sampler in self._distinct())

    @property
    def generated_tokens(self) -> int:
        """The number of tokens that all models have generated. Scripted replies are not counted."""
        return sum(sampler.generated_tokens for sampler in self._distinct())

    def _distinct(self) -> list[EngineSampler]:
        return list({id(sampler): sampler for sampler in self.samplers.values()}.values())


class TeamPolicy:
    """The policies of a team as a run configures them; implements ``baselines.policies.policy.Policies``.

    Agents exchange strings, so each base can have its own tokenizer and chat template. For the critic, the turns of a
    scripted agent are read by the base of the first agent that is a model.

    Args:
        config: Configuration of the run.
        agents: Agents of the environment's team, in its order.
        decoding: How actions are sampled.

    Attributes:
        agents: All agents.
        device: The device of all models, on which batches are trained.
        quantization: Whether the bases are stored in 4 bits: "none" or "4bit".
        placement: For each base, a sentence that says which device and dtype were chosen, and why.
        groups: The agents grouped by base model.
        adapter_of: Name of its trained weights by agent, without scripted agents.
        blocks: The agents that share each of the trained weights, in update order.
        scripts: Policy by scripted agent.

    Raises:
        ValueError: The configuration names an unknown agent, or an impossible combination. The message names the field.
    """

    def __init__(self, config: RunConfig, agents: Sequence[str], decoding: Decoding) -> None:
        self.agents = tuple(agents)
        _check_agents(config, self.agents)
        self._chat = config.chat
        self.scripts, self._specs = load_scripts(config.scripted, config.scripted_sha256), config.scripted
        names = _bases(config, self.agents)
        self.groups = [_base_group(config, name, names, decoding) for name in dict.fromkeys(names.values())]
        self.device, self.quantization = self.groups[0].policy.device, config.quantization
        self.placement = tuple(f"{group.name}: {group.loaded.placement}" for group in self.groups)
        self._base_of = {agent: [group.name for group in self.groups].index(name) for agent, name in names.items()}
        found = {agent: group.policy.adapter_of.get(agent) for agent, group in self._agent_groups()}
        self.adapter_of = {agent: adapter for agent, adapter in found.items() if adapter is not None}
        self.blocks = {
            adapter: self.of(agent).blocks[adapter]
            for agent, adapter in self.adapter_of.items()
            if adapter in self.of(agent).blocks
        }

    def __repr__(self) -> str:
        return f"TeamPolicy(agents={self.agents}, models={[group.name for group in self.groups]})"

    def _agent_groups(self) -> list[tuple[str, BaseGroup]]:
        return [(agent, self.groups[self._base_of[agent]]) for agent in self.agents]

    def of(self, agent: str) -> SharedBasePolicy:
        """Return the policies on the agent's base."""
        return self.groups[self._base_of[agent]].policy

    def base_of(self, agent: str) -> int:
        """Return the index in ``groups`` of the agent's base."""
        return self._base_of[agent]

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """The hidden size of each base."""
        return tuple(group.policy.hidden_size for group in self.groups)

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]:
        """The vocabulary size of each base."""
        return tuple(size for group in self.groups for size in group.policy.vocabulary_sizes)

    def adapter_parameters(self, agent: str) -> list[nn.Parameter]:
        """Return the trained parameters of one agent."""
        return self.of(agent).adapter_parameters(agent)

    def sampler(self, stream: tuple[int, ...] | None) -> TeamSampler:
        """Return a sampler for all agents, which is a policy for ``BatchRunner``.

        Args:
            stream: Integers that name the random stream (see ``EngineSampler``); None decodes greedily.
        """
        by_base = [EngineSampler(group.engine, group.loaded, stream, self._chat) for group in self.groups]
        samplers = {agent: by_base[self._base_of[agent]] for agent in self.agents}
        scripts = {
            agent: Scripted(script, samplers[agent], f"scripted.{agent}={self._specs[agent]!r}")
            for agent, script in self.scripts.items()
        }
        return TeamSampler(samplers, scripts)

    def files(self) -> dict[str, bytes]:
        """Return the trained weights as files: content by path below a checkpoint's ``adapters`` folder."""
        return {
            f"{adapter}/{name}": data
            for agent, group in self._agent_groups()
            if (adapter := self.adapter_of.get(agent)) is not None
            for name, data in group.policy.weights.files(adapter, group.loaded.name).items()
        }

    @property
    def out_of_memory(self) -> int:
        """The number of out-of-memory errors during generation so far, on all bases."""
        return sum(group.engine.out_of_memory for group in self.groups)

    def generation_state(self, memory: int | None) -> dict[str, Any]:
        """Return the rows of a forward pass and the out-of-memory errors of each base, for ``load_generation_state``.

        Args:
            memory: Bytes that the run may use on its device; None without a limit.
        """
        engines = {
            group.name: {"rows": group.engine.rows, "out_of_memory": group.engine.out_of_memory}
            for group in self.groups
        }
        return {"memory": memory, "engines": engines}

    def load_generation_state(self, state: Mapping[str, Any], memory: int | None) -> None:
        """Restore what ``generation_state`` returned. The rows that fitted another amount of memory are ignored."""
        for group in self.groups:
            stored = state["engines"][group.name]
            group.engine.out_of_memory = stored["out_of_memory"]
            if state["memory"] == memory:
                group.engine.rows = stored["rows"]

    def models(self) -> dict[str, dict[str, str]]:
        """Return a description of each base by its name in the configuration (docs/reference/rows.md)."""
        return {
            group.name: {
                "name": group.loaded.name,
                "revision": group.loaded.revision,
                "sha256": group.loaded.weights_sha256,
                "device": str(self.device),
                "dtype": str(group.loaded.dtype).removeprefix("torch."),
                "quantization": self.quantization,
            }
            for group in self.groups
        }


def check_team(config: RunConfig, agents: Sequence[str]) -> None:
    """Raise the ValueError that ``TeamPolicy`` would raise for the names in ``config``, without loading a model."""
    _check_agents(config, agents)
    load_scripts(config.scripted, config.scripted_sha256)
    names = _bases(config, agents)
    for base in dict.fromkeys(names.values()):
        models = [agent for agent in agents if names[agent] == base and agent not in config.scripted]
        sharing = {agent: adapter for agent, adapter in config.sharing.items() if agent in models}
        if models:
            update_blocks(adapters(models, sharing), [agent for agent in config.frozen if agent in models])


def _check_agents(config: RunConfig, agents: Sequence[str]) -> None:
    """Raise ValueError for a name that is no agent's, and for settings of an agent that exclude each other."""
    for name in ("bases", "scripted", "sharing", "frozen"):
        for agent in getattr(config, name):
            if agent not in agents:
                raise ValueError(expected_one_of(f"{name}: agent", agent, agents))
            if name != "scripted" and agent in config.scripted:
                raise ValueError(f"agent {agent!r} is in {name} and in scripted: expected it in one of the two")
    if set(config.scripted) >= set(agents):
        raise ValueError(f"scripted={sorted(config.scripted)}: expected at least one agent that is a model")


def _bases(config: RunConfig, agents: Sequence[str]) -> dict[str, str]:
    """Return the base's name by agent, in the agents' order. Raise ValueError if weights are shared across bases."""
    names = {agent: config.bases.get(agent, config.model) for agent in agents}
    first = next(names[agent] for agent in agents if agent not in config.scripted)
    names |= dict.fromkeys(config.scripted, first)
    base_of: dict[str, str] = {}
    for agent, name in names.items():
        adapter = config.sharing.get(agent, agent)
        if agent not in config.scripted and base_of.setdefault(adapter, name) != name:
            raise ValueError(
                f"sharing: adapter {adapter!r} is on base {base_of[adapter]!r}, but {agent} is on base {name!r}: "
                "expected all agents of an adapter on one base"
            )
    return names


def _base_group(config: RunConfig, base: str, names: Mapping[str, str], decoding: Decoding) -> BaseGroup:
    loaded = load_model(
        base,
        device=config.device,
        dtype=config.dtype,
        quantization=config.quantization,
        allow_wheel=config.allow_wheel,
    )
    agents = [agent for agent, name in names.items() if name == base]
    policy = SharedBasePolicy(
        loaded.model,
        agents,
        config.lora if config.tuning == "lora" else None,
        config.seed,
        sharing={agent: adapter for agent, adapter in config.sharing.items() if agent in agents},
        frozen=[agent for agent in config.frozen if agent in agents],
        scripted=[agent for agent in config.scripted if agent in agents],
        invocation_ids=invocation_ids(loaded, config.lora.invocation, config.chat) if config.lora.activated else (),
    )
    element = policy.head.weight.element_size()
    merge = merged_copy_bytes(config, shape_of(loaded.model.config), element, policy.device) > 0
    return BaseGroup(base, loaded, policy, TorchEngine(policy, loaded.tokenizer, decoding, merge))
