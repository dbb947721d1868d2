"""The sides of both comparisons: generation, and one PPO update.

Generation: the engine with adapters merged into a copy of the base, the engine with adapters beside it, the engine with
the requests of all agents at once, the reference style, and the continuous batching of transformers. Each generates
exactly the new tokens of the cell for every prompt, and all but the third one agent after another, because adapters
differ.

Update: the learner as the arms ``ippo`` and ``marft``, and the reference style. Every repetition has a new learner, so
the critic's replay holds this one batch.

Engine and learner do the same work with activated adapters if the policies have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import GenerationConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from baselines.engine.invocation import base_tokens
from baselines.engine.protocol import GenerationRequest
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.ladder import arm
from baselines.models.load import LoadedModel
from baselines.policies.micro_batches import CPU_PASS_GIB, GIB, MicroBatches, PassLimits
from baselines.policies.policy import SharedBasePolicy
from baselines.ppo.learner import Learner
from baselines.runs.device_memory import free_memory
from benchmarks.speed.comparison import Seconds
from benchmarks.speed.machine_limits import TrainingWork, stopwatch
from benchmarks.speed.reference_style import EPOCHS, ReferenceStyle, pad_turns
from benchmarks.speed.workload import Workload, rewritten

_FIXED = 64  # the reference style pads prompts to a multiple of this number of tokens


def engine_side(
    work: Workload, loaded: LoadedModel, policy: SharedBasePolicy, *, merge: bool, together: bool = False
) -> Callable[[], Seconds]:
    """Return a function that generates all actions of a cell with the engine.

    Args:
        work: The work.
        loaded: The base model.
        policy: The policies on it.
        merge: Whether adapters are merged into a copy of the base. Each repetition merges them anew, as after an
            update.
        together: Whether the engine gets the requests of all agents at once.
    """
    cell = work.cell
    decoding = Decoding(max_new_tokens=cell.new_tokens, rows=cell.episodes * (cell.agents if together else 1))
    engine = TorchEngine(policy, loaded.tokenizer, decoding, merge)
    engine.end_ids = frozenset()
    of_agents = [
        [
            GenerationRequest(agent, ids, decoding.sampling, (row,), base_tokens(ids, policy.invocation_ids))
            for row, ids in enumerate(prompts)
        ]
        for agent, prompts in work.prompts.items()
    ]
    calls = [[request for requests in of_agents for request in requests]] if together else of_agents

    def run() -> Seconds:
        rewritten(policy)
        with stopwatch(policy.device) as found:
            completions = [c for requests in calls for c in engine.generate(requests)]
        _check(sum(len(c.token_ids) for c in completions), work)
        return found

    return run


def reference_generation(work: Workload, reference: ReferenceStyle) -> Callable[[], Seconds]:
    """Return a function that generates all actions of a cell in the reference style."""

    def run() -> Seconds:
        with stopwatch(reference.device) as found:
            replies = [reference.generate(a, prompts, work.cell.new_tokens) for a, prompts in work.prompts.items()]
        _check(sum(ids.numel() for ids in replies), work)
        return found

    return run


def continuous_batching(work: Workload, reference: ReferenceStyle) -> Callable[[], Seconds]:
    """Return a function that generates all actions of a cell with the continuous batching of transformers.

    Its cache is as large as the work needs, and it is made and warmed up before the time starts.
    """
    cell = work.cell
    settings = GenerationConfig(
        max_new_tokens=cell.new_tokens, do_sample=True, top_k=0, top_p=1.0, pad_token_id=reference.pad_id,
        eos_token_id=-1,
    )  # fmt: skip
    longest = max(len(ids) for prompts in work.prompts.values() for ids in prompts)
    page = 256 if reference.device.type == "cuda" else 64  # tokens of a page; the kernels for CUDA need 256
    cache = ContinuousBatchingConfig(
        page_size=page,
        num_blocks=cell.episodes * (-(-(longest + cell.new_tokens) // page) + 1),
        max_batch_tokens=cell.episodes * longest,
        max_requests_per_batch=cell.episodes,
    )
    base = reference.model.get_base_model()

    def of_agent(agent: str, found: Seconds) -> int:
        reference.model.set_adapter(agent)
        with base.continuous_batching_context_manager(settings, continuous_batching_config=cache) as manager:
            with stopwatch(reference.device) as seconds:
                manager.add_requests([list(ids) for ids in work.prompts[agent]], max_new_tokens=cell.new_tokens)
                results = _results(manager, cell.episodes)
            found["total"] = found.get("total", 0.0) + seconds["total"]
        return sum(len(result.generated_tokens) for result in results)

    def run() -> Seconds:
        found: Seconds = {}
        _check(sum(of_agent(agent, found) for agent in work.prompts), work)
        return found

    return run


def _results(manager: Any, count: int) -> list[Any]:
    """Return the finished requests of a manager; raise RuntimeError for one that failed."""
    found: list[Any] = []
    while len(found) < count:
        result = manager.get_result(timeout=1)
        if result is None:
            if not manager.is_running():
                raise RuntimeError("the generation thread ended before all requests were finished")
        elif result.error is not None:
            raise RuntimeError(result.error)
        elif result.is_finished():
            found.append(result)
    return found


def _check(tokens: int, work: Workload) -> None:
    if tokens != work.cell.tokens:
        raise RuntimeError(f"{tokens} tokens generated: expected {work.cell.tokens}, as the other sides generate")


# --- one update -------------------------------------------------------------------------------------------------------


def pass_limits(device: torch.device) -> PassLimits:
    """Return the limits of a pass: a run's default on a CPU; half of the memory that is free now on an accelerator."""
    free = free_memory(device)
    return PassLimits(CPU_PASS_GIB if device.type == "cpu" or free is None else free / 2 / GIB)


def learner_side(work: Workload, policy: SharedBasePolicy, name: str, limits: PassLimits) -> Callable[[], Seconds]:
    """Return a function that makes one update of all agents with the learner.

    Args:
        work: The work.
        policy: The policies.
        name: Name of the arm. All of its agents are trained, however small their advantages are.
        limits: Limits of a pass.
    """
    config = arm(name).with_settings({"advantage_floor": 0.0, "epochs": EPOCHS, "critic_epochs": EPOCHS})

    def run() -> Seconds:
        learner = Learner(policy, config, temperature=1.0, seed=0, limits=limits)
        with stopwatch(policy.device) as found:
            metrics = learner.update(work.batch)
        return {**metrics["seconds"], **found}

    return run


def reference_update(
    work: Workload, policy: SharedBasePolicy, reference: ReferenceStyle, limits: PassLimits
) -> Callable[[], Seconds]:
    """Return a function that makes one update of all agents in the reference style."""
    longest = max(int(turns.prompt_length.max()) for turns in work.batch.turns.values())
    prompt_length = -(-longest // _FIXED) * _FIXED
    new_tokens = work.cell.new_tokens
    turns = {
        agent: pad_turns(found, prompt_length, new_tokens, reference.pad_id)
        for agent, found in work.batch.turns.items()
    }
    scores = {agent: work.batch.score[found.episode] for agent, found in work.batch.turns.items()}
    rows = reference_rows(work, policy, limits, prompt_length + new_tokens)

    def run() -> Seconds:
        with stopwatch(reference.device) as found:
            parts = reference.update(turns, scores, rows, prompt_length)
        return {**parts, **found}

    return run


def reference_rows(work: Workload, policy: SharedBasePolicy, limits: PassLimits, length: int) -> int:
    """Return the turns of a pass of the reference style: the learner's, or as many as have logits that fit.

    The fp32 logits of all positions, their log-softmax and its gradient have to fit the memory of a pass together.

    Args:
        work: The work.
        policy: The policies of the learner.
        limits: Limits of a pass.
        length: Tokens of a padded turn.
    """
    passes = MicroBatches(limits).split(policy, next(iter(work.batch.turns.values())))
    fitting = int(limits.gib * GIB) // (3 * 4 * length * policy.vocabulary_sizes[0])
    return max(1, min(len(next(passes).rows), fitting))


def one_after_another(*runs: Callable[[], Seconds]) -> Callable[[], Seconds]:
    """Return a function that does several pieces of work and returns the sum of their seconds."""

    def run() -> Seconds:
        return {"total": sum(work()["total"] for work in runs)}

    return run


def training_work(work: Workload) -> TrainingWork:
    """Return the tokens of an update."""
    turns = work.batch.turns.values()
    tokens = sum(int(found.token_mask.sum()) for found in turns)
    return TrainingWork(tokens, sum(int(found.action_mask.sum()) for found in turns), EPOCHS)
