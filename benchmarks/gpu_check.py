"""Train two small teams on a GPU, compare them with the CPU, and print speed and memory: at most five minutes.

    python benchmarks/gpu_check.py                         # the best device; exit code 2 without a GPU
    python benchmarks/gpu_check.py --device cpu --updates 1 --episodes 4 --models tiny
    python benchmarks/gpu_check.py --json gpu.json

Two teams are trained: a duo of the tiny model on the relay (float32), and a quartet of SmolLM2-135M-Instruct on the
report in words (bfloat16; from the cache, the hub or the package index). Each is compared with the same team on the
CPU, before and after the training: the same test problems, the same greedy replies, and the log-probabilities of the
CPU's tokens under both. After the training the adapters move from the device to the CPU through files.

Two devices round differently, so log-probabilities may differ by the tolerance of the coarser type
(benchmarks/analysis/device_comparison.py), and a greedy reply may change where two tokens are nearly equally likely.
Exit codes: 0, all differences are within the tolerances; 1, one is not, or the memory or the disk is full; 2, no GPU, a
wrong option, or a model that was not found; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch

from baselines.command_line import USAGE_ERROR, run_command
from baselines.engine.torch_engine import Decoding
from baselines.models.devices import choose_device
from baselines.runs.evaluation import evaluation_items, play_items
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from benchmarks.analysis.device_comparison import GreedyReply, compare_log_probs, compare_replies, tolerance

MIB = 2**20


@dataclass(frozen=True)
class CheckedTeam:
    """A team that is trained and compared.

    Attributes:
        name: Its name in the output.
        model: Its base model.
        environment_arguments: Arguments of ``math_v0``, which name the data set and the agents.
        episodes: Episodes of an update.
        max_new_tokens: Longest reply, in tokens.
    """

    name: str
    model: str
    environment_arguments: dict[str, Any]
    episodes: int
    max_new_tokens: int


CHECKED_TEAMS = (
    CheckedTeam("duo", "tiny", {"dataset": "relay", "team": "duo"}, episodes=64, max_new_tokens=8),
    CheckedTeam(
        "quartet",
        "smollm2-135m",
        {"dataset": "report", "style": "words", "team": "panel_4"},
        episodes=16,
        max_new_tokens=16,
    ),
)


@dataclass
class Result:
    """The measurements of one team, and the differences that exceed the tolerance.

    Attributes:
        team: Name of the team.
        model: Its base model.
        placement: Device and type of the model, as a run prints them.
        tokens_per_s: Generated tokens per second of the rollouts.
        seconds_per_update: Mean duration of an update, rollout included.
        peak_memory_mib: On CUDA torch's largest allocation; elsewhere the largest resident size of the process.
        comparisons: Share of equal replies and differences of log-probabilities, "before" and "after" the training.
        faults: A sentence for each difference that exceeds the tolerance.
    """

    team: str
    model: str
    placement: str
    tokens_per_s: float = 0.0
    seconds_per_update: float = 0.0
    peak_memory_mib: float = 0.0
    comparisons: dict[str, dict[str, float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


# --- measurement ------------------------------------------------------------------------------------------------------


def greedy_replies(run: Run) -> list[GreedyReply]:
    """Return all replies of a greedy evaluation."""
    items = evaluation_items(run.testing, run.config.evaluation_items, run.config.seed)
    episodes = play_items(run.testing, run.policy.sampler(None), items)
    return [
        GreedyReply(episode.index, step.request.agent, step.data.prompt_ids, step.data.action_ids, step.data.text)
        for episode in episodes
        for step in episode.steps
    ]


@torch.no_grad()
def log_probs(run: Run, replies: Sequence[GreedyReply]) -> list[list[float]]:
    """Return the log-probability of every token at temperature 1, [replies][tokens], one reply per forward pass."""
    rows = []
    for reply in replies:
        policy = run.policy.of(reply.agent)
        device = next(policy.parameters()).device
        ids = torch.tensor([reply.prompt_ids + reply.action_ids], device=device)
        with policy.use(reply.agent):
            logits = policy.causal_lm(input_ids=ids, use_cache=False).logits
        start = len(reply.prompt_ids)
        chosen = logits[0, start - 1 : -1].float().log_softmax(-1).gather(-1, ids[0, start:, None])
        rows.append(chosen.squeeze(-1).tolist())
    return rows


def compare(cpu: Run, run: Run, result: Result, when: str) -> None:
    """Compare greedy replies and log-probabilities, and add numbers and faults to the result."""
    allowed = tolerance(*(str(r.loaded.dtype).removeprefix("torch.") for r in (cpu, run)))
    reference = greedy_replies(cpu)
    share, faults = compare_replies(reference, greedy_replies(run), allowed)
    differences, more = compare_log_probs(log_probs(cpu, reference), log_probs(run, reference), allowed)
    result.comparisons[when] = {"equal_replies": share, **differences}
    result.faults += [f"{when} training: {fault}" for fault in faults + more]


def copy_adapters(source: Run, target: Run) -> None:
    """Write the adapters of a run to files, and read them into another run."""
    with tempfile.TemporaryDirectory() as name:
        for path, data in source.policy.files().items():
            file = Path(name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        for agent, adapter in target.policy.adapter_of.items():
            target.policy.of(agent).weights.load(adapter, Path(name, adapter))


def train(run: Run, updates: int, result: Result) -> None:
    """Train some updates, and measure speed and memory. The first update includes the warm-up of the kernels."""
    device = run.loaded.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    start, rollout_s = time.perf_counter(), 0.0
    for update in range(updates):
        rollout_s += run.train_once(update)["seconds"]["rollout"]
    result.seconds_per_update = (time.perf_counter() - start) / updates
    result.tokens_per_s = run.counts["generated_tokens"] / rollout_s
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB
    result.peak_memory_mib = torch.cuda.max_memory_allocated(device) / MIB if device.type == "cuda" else resident


def check(team: CheckedTeam, device: str, updates: int, items: int) -> Result:
    """Train a team on the device, and compare it with the CPU before and after."""
    config = RunConfig(
        arm="marft",
        model=team.model,
        allow_wheel=True,
        environment_arguments=team.environment_arguments,
        episodes=team.episodes,
        evaluation_items=items,
        decoding=Decoding(max_new_tokens=team.max_new_tokens),
        device=device,
    )
    run, cpu = Run(config), Run(replace(config, device="cpu"))
    result = Result(team.name, team.model, run.loaded.placement)
    compare(cpu, run, result, "before")
    train(run, updates, result)
    copy_adapters(run, cpu)
    compare(cpu, run, result, "after")
    return result


# --- the command ------------------------------------------------------------------------------------------------------


def show(result: Result) -> None:
    """Print a result, a line per fact."""
    print(f"{result.team} of {result.model}: {result.placement}")
    print(
        f"  {result.tokens_per_s:,.0f} generated tokens/s, {result.seconds_per_update:.1f} s per update, "
        f"peak memory {result.peak_memory_mib:,.0f} MiB"
    )
    for when, numbers in result.comparisons.items():
        print(f"  {when} training: " + ", ".join(f"{name} {value:.3g}" for name, value in numbers.items()))
    for fault in result.faults:
        print(f"  FAULT {fault}")
    sys.stdout.flush()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/gpu_check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", default="auto", help="auto (default), cuda, cuda:N, mps, or cpu to compare the CPU with itself")
    add("--updates", type=int, default=2, help="updates per team (default: 2)")
    add("--episodes", type=int, help="episodes per update (default: 64 of the duo, 16 of the quartet)")
    add("--items", type=int, default=16, help="test problems to compare on (default: 16)")
    models = [team.model for team in CHECKED_TEAMS]
    add("--models", nargs="+", choices=models, default=models, help="check only the teams of these models")
    add("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    for name in ("updates", "episodes", "items"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} {value}: expected at least 1")
    return options


def check_all(options: argparse.Namespace) -> int:
    """Check the teams that the command line names, print the results, and return the exit code."""
    chosen = choose_device(options.device)
    if chosen.device.type == "cpu" and options.device != "cpu":
        print(f"NOT CHECKED: {chosen.reason}. --device cpu compares the CPU with itself.", file=sys.stderr)
        return USAGE_ERROR
    results = []
    for team in CHECKED_TEAMS:
        if team.model in options.models:
            sized = replace(team, episodes=options.episodes or team.episodes)
            results.append(check(sized, str(chosen.device), options.updates, options.items))
            show(results[-1])
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n", encoding="utf-8")
    return int(any(result.faults for result in results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of gpu_check.py and return its exit code."""
    options = parse(arguments)
    return run_command("gpu_check", lambda: check_all(options))


if __name__ == "__main__":
    sys.exit(main())
