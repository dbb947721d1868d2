"""The peak memory of a rollout and an update of teams of different sizes, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from baselines.models.load import load_model
from benchmarks.speed.comparison import Cell
from benchmarks.speed.peak_memory import peak, start_peak
from benchmarks.speed.sides import engine_side, learner_side, pass_limits
from benchmarks.speed.workload import activated_workload, agents_of, make_policy, make_workload

PEAK_TEAMS = (1, 8)
"""Numbers of agents whose peak memory is compared."""
_PROGRAM = Path(__file__).resolve().parents[1] / "throughput.py"


def peak_cell(options: argparse.Namespace, agents: int) -> Cell:
    """Return the largest cell of the command line with another number of agents; an update needs two episodes."""
    return Cell(max(2, *options.episodes), agents, options.prompts[-1], options.new_tokens)


def peak_bytes(options: argparse.Namespace) -> int:
    """Return the largest memory above the base model during a rollout and an update of a team.

    A process should measure one team only, because the allocator keeps the memory of earlier work.

    Args:
        options: The command line; ``options.peak`` is the number of agents, ``options.activated`` the mode.
    """
    loaded = load_model(options.model, device=options.device, dtype=options.dtype, allow_wheel=options.allow_wheel)
    before = start_peak(loaded.device)
    policy = make_policy(loaded, agents_of(options.peak), activated=options.activated)
    work = make_workload(peak_cell(options, options.peak), loaded)
    if options.activated:
        work = activated_workload(work, policy)
    engine_side(work, loaded, policy, merge=True)()
    learner_side(work, policy, "ippo", pass_limits(policy.device))()
    return peak(loaded.device) - before


def peaks_of_teams(options: argparse.Namespace, *, activated: bool) -> dict[str, int | str]:
    """Return the peak memory by number of agents, each measured in a process of its own, or why there is none.

    Args:
        options: The command line.
        activated: Whether the adapters are activated LoRA.
    """
    command = [sys.executable, str(_PROGRAM), "engine", "--model", options.model, "--device", options.device]
    command += ["--dtype", options.dtype, *["--allow-wheel"] * options.allow_wheel]
    command += ["--episodes", str(max(options.episodes)), "--prompts", options.prompts[-1]]
    command += ["--new-tokens", str(options.new_tokens), *["--activated"] * activated]
    peaks: dict[str, int | str] = {}
    for agents in PEAK_TEAMS:
        done = subprocess.run([*command, "--peak", str(agents)], capture_output=True, text=True)
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["no message"]
        peaks[str(agents)] = f"not measured: {lines[-1]}" if done.returncode else int(lines[-1])
    return peaks
