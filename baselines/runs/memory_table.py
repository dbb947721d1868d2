"""The memory plan of a run as text, which ``python -m baselines.train --dry-run`` prints."""

from __future__ import annotations

import torch

from baselines.engine.torch_engine import Decoding
from baselines.models.shape import NAMED_SHAPES
from baselines.policies.micro_batches import GIB
from baselines.runs.memory_plan import MemoryPlan, plan_of
from baselines.runs.run_config import RunConfig

_REMEDY = (
    "Prompts are assumed to have the largest length: a smaller decoding.max_prompt_tokens or decoding.rows reduces the "
    "rollout, and quantization=4bit the weights."
)


def describe_plan(plan: MemoryPlan, free: int | None) -> str:
    """Return the plan as text, in GiB.

    Args:
        plan: The plan.
        free: Bytes that are free on the device, which limit a run without ``memory_gib``; None if they are not known.
    """
    limit = plan.memory if plan.memory is not None else free
    lines = [*_parts(plan), ("peak", plan.peak)]
    if limit is not None:
        lines.append(("memory that the run may use" if plan.memory is not None else "free memory", limit))
    width = max(len(name) for name, _ in lines)
    verdict = "" if limit is None else "It fits. " if plan.peak <= limit else f"It DOES NOT FIT. {_REMEDY} "
    turns, _ = plan.largest_pass(checkpointing=plan.checkpointing)
    on = "on" if plan.checkpointing else "off"
    return "\n".join(
        [
            f"Memory plan: {plan.config.arm} on {plan.config.model}, {plan.agents} agents, device {plan.device}",
            *(f"  {name:<{width}}  {size / GIB:9.2f} GiB" for name, size in lines),
            f"{verdict}A pass of an update holds {turns} turn{'s' * (turns > 1)} of {plan.longest:,} tokens, and more "
            f"shorter ones; gradient checkpointing is {on} for turns of that length.",
        ]
    )


def _parts(plan: MemoryPlan) -> list[tuple[str, int]]:
    """Return the parts of a plan: their name and bytes."""
    names = ", ".join(f"{base.name} ({base.shape.parameters / 1e9:.2f}B parameters)" for base in plan.bases)
    bits = ", 4 bit" if any(base.four_bit for base in plan.bases) else f", {8 * plan.bases[0].element} bit"
    kind = f"LoRA of rank {plan.rank}" if plan.rank is not None else "full copies"
    merged = plan.merged_copies
    passes = []
    for on in (False, True):
        turns, size = plan.largest_pass(checkpointing=on)
        passes.append((f"update: a pass of {turns}, checkpointing {'on' if on else 'off'}", size))
    if plan.base_tokens:
        passes.insert(0, ("update: stored prompts of activated adapters", plan.stored_prompts))
    return [
        (f"weights: {names}{bits}", plan.weights),
        ("rollout: copy of the weights for merged adapters" + (" (not merged)" * (not merged)), merged),
        (f"adapters: {kind}, fp32", plan.adapters),
        ("Adam's moments, and one gradient", plan.optimizer),
        ("critic and its Adam moments", plan.critic_networks),
        ("critic: replayed batches" + ("" if plan.device.type == "cpu" else " (main memory)"), plan.critic_replay),
        ("critic: a step on one batch", plan.critic_step),
        (f"rollout: KV cache, {plan.sampled_rows} rows of {plan.longest:,} tokens", plan.kv_cache),
        ("rollout: adapters of agents that act at the same time", plan.stacked_adapters),
        (f"rollout: pass over {plan.prefilled_rows} prompts", plan.prefill),
        (f"rollout: sampling from {plan.sampled_rows} rows of logits", plan.sampling),
        *([("rollout: stored turns", plan.stored_turns)] if plan.stored_turns else []),
        *passes,
    ]


def table_of_sizes() -> str:
    """Return the Markdown table of docs/memory.md: the memory in GiB of runs on a GPU, by base size and team.

    Prompts of at most 1,024 tokens, eight of which a pass reads, and replies of at most 256, 64 of which are generated
    at a time; LoRA of rank 8 that the rollout does not merge, and passes of two turns.
    """
    head = (
        "| base | team | weights, 16 bit | 4 bit | adapters, Adam, gradient | rollout | pass of 2 turns "
        "| the same, checkpointed | peak, 16 bit | peak, 4 bit |"
    )
    lines = [head, "|" + "---|" * 10]
    for size in (name for name in NAMED_SHAPES if name.endswith("B")):
        for team, agents in (("duo", 2), ("quartet", 4)):
            config = RunConfig(
                arm="marft",
                model=size,
                episodes=64,
                training_rows=2,
                memory_gib=1e6,
                gradient_checkpointing="on",
                decoding=Decoding(max_new_tokens=256, rows=64, merge_adapters="off"),
            )
            names = [f"agent_{i}" for i in range(agents)]
            plan, small = (
                plan_of(config, names, {size: (NAMED_SHAPES[size], 2)}, torch.device("cuda"), four_bit=four_bit)
                for four_bit in (False, True)
            )
            passes = [plan.largest_pass(checkpointing=on)[1] for on in (False, True)]
            sizes = [
                plan.weights, small.weights, plan.adapters + plan.optimizer, plan.rollout,
                *passes, plan.peak, small.peak,
            ]  # fmt: skip
            lines.append(f"| {size} | {team} | " + " | ".join(f"{x / GIB:.1f}" for x in sizes) + " |")
    return "\n".join(lines)
