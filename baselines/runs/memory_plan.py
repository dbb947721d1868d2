"""Memory of a training run, calculated from its settings and the shapes of its models, without loading weights.

Formulas: docs/memory.md. Every part is in bytes. Rollout, passes of the update and steps of the critic take turns, so
the peak is the fixed parts plus the largest of the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from baselines.models.shape import ModelShape, shape_of
from baselines.policies.micro_batches import CPU_PASS_GIB, GIB, MicroBatches, PassLimits
from baselines.policies.pass_memory import PassMemory
from baselines.policies.prompt_store import STORE_SHARE
from baselines.policies.rollout import MIXED_ROWS
from baselines.runs.device_memory import default_memory
from baselines.runs.evaluation import PLAYED_TOGETHER
from baselines.runs.merging import merged_copy_bytes
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy

_FOUR_BIT_BYTES = (4 + 8 / 64) / 8  # per weight: 4 bits, and a scale of 8 bits for each block of 64
_SAMPLING_BYTES = 24  # per row and token id: logits and log-softmax in fp32, probabilities and their sum in fp64
_CRITIC_WIDTH, _CRITIC_STATES = 64, 7  # hidden units of a critic network; states of a turn that are stored
_CRITIC_COPIES = 4  # fp32 copies of its inputs that a step of the additive critic or of the head holds
_CRITIC_LAYERS, _CRITIC_SAVED = 2, 14  # layers of the transformer critic; fp32 vectors that each saves per token


@dataclass(frozen=True)
class BaseSize:
    """One base model of a team, with the agents on it.

    Attributes:
        name: Name of the base in the configuration.
        shape: Its shape.
        element: Bytes of a weight in its dtype: 2 or 4.
        trained: Number of trained adapters (or full copies) on it.
        frozen: Number of adapters on it that are not trained.
        four_bit: Whether the matrices of its layers are stored in 4 bits.
    """

    name: str
    shape: ModelShape
    element: int
    trained: int
    frozen: int = 0
    four_bit: bool = False

    @property
    def weights(self) -> int:
        """Bytes of the base model's weights."""
        if not self.four_bit:
            return self.shape.parameters * self.element
        rest = self.shape.parameters - self.shape.linear_parameters
        return int(self.shape.linear_parameters * _FOUR_BIT_BYTES) + rest * self.element

    def adapter_parameters(self, rank: int | None) -> int:
        """Return the parameters of one adapter; of a full copy if the rank is None."""
        return self.shape.parameters if rank is None else self.shape.lora_parameters(rank)


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of a run.

    Attributes:
        config: Configuration of the run.
        agents: Number of agents.
        bases: The base models.
        device: The device of the models.
        memory: Bytes that the run may use: ``memory_gib``, or the default of the device. None on a CPU without
            ``memory_gib``, where a pass has CPU_PASS_GIB and the rest has no limit.
        rounds: Number of rounds of an episode.
    """

    config: RunConfig
    agents: int
    bases: tuple[BaseSize, ...]
    device: torch.device
    memory: int | None
    rounds: int = 1

    # ---- parts that are allocated all the time

    @property
    def rank(self) -> int | None:
        """Rank of the adapters; None with full tuning."""
        return self.config.lora.rank if self.config.tuning == "lora" else None

    @property
    def weights(self) -> int:
        """Bytes of all base models."""
        return sum(base.weights for base in self.bases)

    @property
    def merged_copies(self) -> int:
        """Bytes of the copies of the base models that the rollout merges adapters into."""
        return sum(merged_copy_bytes(self.config, b.shape, b.element, self.device) for b in self.bases)

    @property
    def adapters(self) -> int:
        """Bytes of all adapters, fp32. With full tuning, agents that are not trained use the base model itself."""
        counts = [b.trained + (b.frozen if self.rank is not None else 0) for b in self.bases]
        return sum(4 * n * b.adapter_parameters(self.rank) for n, b in zip(counts, self.bases, strict=True))

    @property
    def optimizer(self) -> int:
        """Bytes of Adam's two moments of every trained adapter, and of the gradient of one adapter at a time."""
        moments = sum(8 * b.trained * b.adapter_parameters(self.rank) for b in self.bases)
        return moments + max((4 * b.adapter_parameters(self.rank) for b in self.bases if b.trained), default=0)

    @property
    def critic_networks(self) -> int:
        """Bytes of the critic's weights, their gradients and Adam moments, which are on the device."""
        learner = self.config.learner()
        if learner.critic == "none":
            return 0
        widths = [base.shape.width for base in self.bases]
        if learner.critic_network == "transformer":
            sizes = [b.shape.vocabulary * _CRITIC_WIDTH + _CRITIC_LAYERS * 8 * _CRITIC_WIDTH**2 for b in self.bases]
        else:
            sizes = [self._critic_reads * _CRITIC_WIDTH * width for width in widths]
        # A central critic has a part for each base, a critic per agent reads the agent's base.
        return 16 * (self.agents * max(sizes) if learner.critic == "own" else sum(sizes))

    @property
    def critic_batch(self) -> int:
        """Bytes of the critic's inputs for one batch."""
        learner = self.config.learner()
        if learner.critic == "none":
            return 0
        width, element = max(b.shape.width for b in self.bases), max(b.element for b in self.bases)
        of_a_turn = self._stored_states * width * element
        if learner.critic_network == "transformer":
            of_a_turn += 8 * self.turns * self.longest  # token ids of the history
        return self.config.episodes * self.turns * of_a_turn

    @property
    def critic_replay(self) -> int:
        """Bytes of the replayed batches. They are in the main memory, also if the models are on an accelerator."""
        return self.config.learner().replay_batches * self.critic_batch

    @property
    def critic_step(self) -> int:
        """Bytes of one step of the critic: the batch on the device, and what the networks save for backward."""
        learner = self.config.learner()
        if learner.critic == "none":
            return 0
        turns = self.config.episodes * self.turns
        if learner.critic_network == "transformer":
            work = turns * self.turns * self.longest * _CRITIC_LAYERS * _CRITIC_SAVED * 4 * _CRITIC_WIDTH
        else:
            states = self._critic_reads - 1 + self._reply if learner.credit == "token" else self._critic_reads
            work = turns * states * max(b.shape.width for b in self.bases) * 4 * _CRITIC_COPIES
        return work + (0 if self.device.type == "cpu" else self.critic_batch)

    @property
    def _critic_reads(self) -> int:
        """Hidden states that a turn's value reads: the prompt's, those of a message, and one for each token."""
        learner = self.config.learner()
        return (1 if learner.critic_network == "head" else _CRITIC_STATES) + (learner.credit == "token")

    @property
    def _stored_states(self) -> int:
        """Hidden states of a turn that a batch holds, whichever of them the network reads."""
        return _CRITIC_STATES + (self._reply if self.config.learner().credit == "token" else 0)

    @property
    def _reply(self) -> int:
        return self.config.decoding.max_new_tokens

    @property
    def turns(self) -> int:
        """Turns of an episode: one of each agent in each round."""
        return self.agents * self.rounds

    @property
    def fixed(self) -> int:
        """Bytes on the device beside those of the rollout, of a pass of the update and of a step of the critic.

        On an accelerator, one batch of the critic's inputs is there during an update, and the replayed ones are not.
        """
        batches = self.critic_replay if self.device.type == "cpu" else self.critic_batch
        return self.weights + self.merged_copies + self.adapters + self.optimizer + self.critic_networks + batches

    # ---- rollout

    @property
    def played_episodes(self) -> int:
        """Episodes that are played at a time, in training or in evaluation."""
        return max(self.config.episodes, min(self.config.evaluation_items, PLAYED_TOGETHER))

    @property
    def sampled_rows(self) -> int:
        """Actions that the rollout generates at a time, in training or in evaluation."""
        played = self.played_episodes
        if self.rank is None:
            together = played
        elif self.merged_copies and not self.config.sharing:
            together = self.agents * min(played, MIXED_ROWS)
        else:  # all agents may act at the same time
            together = self.agents * played
        return min(self.config.decoding.rows, max(played, together))

    @property
    def prefilled_rows(self) -> int:
        """Prompts of the largest length that a forward pass reads at a time, at least 1."""
        decoding = self.config.decoding
        return min(self.sampled_rows, max(1, decoding.prefill_tokens // decoding.max_prompt_tokens))

    @property
    def longest(self) -> int:
        """Tokens of the longest turn: prompt and reply."""
        return self.config.decoding.max_prompt_tokens + self.config.decoding.max_new_tokens

    @property
    def kv_cache(self) -> int:
        """Bytes of the keys and values of a rollout's forward pass at its end."""
        sizes = (2 * b.shape.layers * b.shape.kv_width * b.element for b in self.bases)
        return max(sizes) * self.sampled_rows * self.longest

    @property
    def sampling(self) -> int:
        """Bytes of the logits of one token of every row and of what sampling makes of them."""
        return max(b.shape.vocabulary for b in self.bases) * self.sampled_rows * _SAMPLING_BYTES

    @property
    def stacked_adapters(self) -> int:
        """Bytes of the copies of the adapters of one base, with which agents are served in one batch."""
        if self.rank is None:
            return 0
        counts = [(base, base.trained + base.frozen) for base in self.bases]
        return max(n * base.element * base.adapter_parameters(self.rank) if n > 1 else 0 for base, n in counts)

    @property
    def prefill(self) -> int:
        """Bytes of a pass over prompts, beside the keys and values that it adds to the cache."""
        prompt = self.config.decoding.max_prompt_tokens
        return max(self.pass_memory(base).prompts(self.prefilled_rows, prompt) for base in self.bases)

    @property
    def generation(self) -> int:
        """Bytes of the rollout at its peak, beside the fixed parts and the stored turns."""
        return self.kv_cache + self.stacked_adapters + max(self.prefill, self.sampling)

    @property
    def stored_turns(self) -> int:
        """Bytes that a rollout may store of what the models have read; 0 if nothing is read again.

        The turns of two rounds are stored, so that those of the later one begin from the earlier one. With activated
        adapters the update reads the prompts of all rounds again.
        """
        activated = self.base_tokens > 0
        rounds = self.rounds if activated else min(self.rounds, 2)
        if rounds == 1 and not activated:
            return 0
        tokens = self.base_tokens if activated else self.longest
        wanted = self.played_episodes * self.agents * rounds * max(self.pass_memory(b).kept(tokens) for b in self.bases)
        free = self.pass_budget if self.memory is None else self.pass_budget - self.generation
        return max(0, min(wanted, free, int(self.pass_budget * STORE_SHARE)))

    @property
    def rollout(self) -> int:
        """Bytes of the rollout at its peak, beside the fixed parts."""
        return self.generation + self.stored_turns

    # ---- update

    @property
    def pass_budget(self) -> int:
        """Bytes of one forward and backward pass; 0 if the fixed parts alone need more than the memory."""
        return int(CPU_PASS_GIB * GIB) if self.memory is None else max(0, self.memory - self.fixed)

    @property
    def limits(self) -> PassLimits:
        """The limits of the learner's passes."""
        return PassLimits(self.pass_budget / GIB, self.config.training_rows, self.config.gradient_checkpointing)

    def check(self) -> None:
        """Raise ValueError if the memory does not hold the fixed parts."""
        if self.memory is not None and self.memory <= self.fixed:
            where = "memory_gib" if self.config.memory_gib is not None else f"memory of the device {self.device} in GiB"
            raise ValueError(
                f"{where}={self.memory / GIB:.3g}: expected more than {self.fixed / GIB:.3g}, the size of weights, "
                "adapters, optimiser state and critic (python -m baselines.train --dry-run prints the parts)"
            )

    def pass_memory(self, base: BaseSize) -> PassMemory:
        """Return the formula of a pass. On a CPU, ``SharedBasePolicy`` sets eager attention for 16-bit weights."""
        eager = self.device.type == "cpu" and base.element == 2
        return PassMemory(base.shape, base.element, self.rank, eager)

    @property
    def base_tokens(self) -> int:
        """Tokens of the longest prompt that the base alone reads; the header of the reply is not counted."""
        activated = self.rank is not None and self.config.lora.activated
        return self.config.decoding.max_prompt_tokens if activated else 0

    @property
    def stored_prompts(self) -> int:
        """Bytes of the prompts that an update stores for activated adapters."""
        of_a_prompt = max(self.pass_memory(base).kept(self.base_tokens) for base in self.bases)
        return min(int(self.pass_budget * STORE_SHARE), self.config.episodes * self.turns * of_a_prompt)

    def largest_pass(self, *, checkpointing: bool) -> tuple[int, int]:
        """Return the turns of the longest length that fit a pass, at least 1, and the bytes of that pass."""
        memory, reply, rows = self._largest_memory(), self.config.decoding.max_new_tokens, 1

        def size(rows: int) -> int:
            return memory.peak(rows, self.longest, rows * reply, checkpointing=checkpointing, base=self.base_tokens)

        budget = self.pass_budget - self.stored_prompts
        while rows < min(self.config.training_rows, self.config.episodes) and size(rows + 1) <= budget:
            rows += 1
        return rows, size(rows)

    @property
    def checkpointing(self) -> bool:
        """Whether passes of turns of the longest length are checkpointed."""
        reply = self.config.decoding.max_new_tokens
        return MicroBatches(self.limits).checkpoints(
            self._largest_memory(), self.longest, reply, self.device.type,
            base=self.base_tokens, stored=self.stored_prompts,
        )  # fmt: skip

    def _largest_memory(self) -> PassMemory:
        """Return the formula of the base model whose passes are the largest."""
        formulas = [self.pass_memory(base) for base in self.bases]
        return max(formulas, key=lambda formula: formula.peak(1, self.longest, 1, checkpointing=False))

    @property
    def peak(self) -> int:
        """Bytes on the device at the peak of the run."""
        update = self.largest_pass(checkpointing=self.checkpointing)[1] + self.stored_prompts
        return self.fixed + max(update, self.rollout, self.critic_step)


def plan_of(
    config: RunConfig,
    agents: Sequence[str],
    models: Mapping[str, tuple[ModelShape, int]],
    device: torch.device,
    *,
    rounds: int = 1,
    four_bit: bool = False,
) -> MemoryPlan:
    """Return the memory plan of a run.

    Args:
        config: Configuration of the run, with the arm's own limit of ``decoding.max_new_tokens``.
        agents: Agents of the team.
        models: Shape of each base model, and bytes of a weight in its dtype, by its name in the configuration.
        device: Device of the models.
        rounds: Number of rounds of an episode.
        four_bit: Whether the base models are stored in 4 bits.
    """
    names = {a: config.bases.get(a, config.model) for a in agents if a not in config.scripted}
    bases = []
    for base in dict.fromkeys(names.values()):
        on_it = [agent for agent, name in names.items() if name == base]
        frozen = {config.sharing.get(agent, agent): agent in config.frozen for agent in on_it}  # by adapter
        shape, element = models[base]
        bases.append(BaseSize(base, shape, element, list(frozen.values()).count(False), sum(frozen.values()), four_bit))
    given = config.memory_gib
    memory = default_memory(device) if given is None else int(given * GIB)
    return MemoryPlan(config, len(agents), tuple(bases), device, memory, rounds)


def plan_of_team(config: RunConfig, team: TeamPolicy, rounds: int) -> MemoryPlan:
    """Return the memory plan of a run whose models are loaded. ``config`` and ``rounds``: see ``plan_of``."""
    models = {}
    for group in team.groups:
        element = group.policy.head.weight.element_size()
        models[group.name] = shape_of(group.policy.causal_lm.config), element
    four_bit = any(getattr(group.loaded.model, "is_loaded_in_4bit", False) for group in team.groups)
    return plan_of(config, team.agents, models, team.groups[0].policy.device, rounds=rounds, four_bit=four_bit)
