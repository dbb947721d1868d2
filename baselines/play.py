"""Show one episode of a trained team.

    python -m baselines.play runs/relay
    python -m baselines.play runs/relay --env math_v0 --env-arg dataset=relay --env-arg style=symbols --index 3 --greedy

Exit codes: 0, success; 2, a wrong option or folder; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from baselines.command_line import add_model_options, exit_on_signal, require_packages, run_command

if TYPE_CHECKING:
    from baselines.runs.load_team import LoadedTeam


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.play", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("path", type=Path, help="folder of a run, or of one of its checkpoints")
    add("--env", help="environment to play (default: that of the run)")
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="argument of the environment; repeatable")
    add("--split", default="test", help="split of the problems (default: test)")
    add("--index", type=int, help="index of the problem (default: drawn from --seed)")
    add("--greedy", action="store_true", help="always take the most likely token (default: sample)")
    add("--seed", type=int, default=0, help="seed of the problem and of sampling (default: 0)")
    add("--update", type=int, help="use the checkpoint of this update (default: the newest)")
    stored = "that of the run"
    add_model_options(parser, {"device": "auto", "dtype": stored, "quantization": stored})
    return parser.parse_args(arguments)


def show(team: LoadedTeam, options: argparse.Namespace) -> None:
    """Play one episode and print each turn as it is taken."""
    from baselines.runs.evaluation import make_environment
    from marft_envs.cli.key_values import parse_key_values

    arguments = parse_key_values("--env-arg", options.env_arg)
    if options.env is None:
        arguments = {**team.config.environment_arguments, **arguments}
    name = options.env or team.config.environment
    env = make_environment(name, options.split, {"render_mode": "human", **arguments})
    env.reset(seed=options.seed, options={} if options.index is None else {"index": options.index})
    while not env.unwrapped.over:
        agent = env.agent_selection
        env.step(team.act(agent, env.observe(agent)))


def run(options: argparse.Namespace) -> None:
    """Load the team and show an episode."""
    from baselines.runs.load_team import load_team

    team = load_team(
        options.path,
        update=options.update,
        greedy=options.greedy,
        seed=options.seed,
        allow_wheel=options.allow_wheel,
        device=options.device or "auto",
        dtype=options.dtype,
        quantization=options.quantization,
    )
    print(f"{team.config.arm} after update {team.update}, {'greedy' if options.greedy else 'sampled'}")
    show(team, options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m baselines.play`` and return its exit code."""
    options = parse(arguments)
    if code := run_command("play", require_packages):
        return code
    from baselines.runs.checkpoint import CheckpointError

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    import_module("baselines.runs.load_team")  # loads torch while ``exit_on_signal`` is still in force
    # a folder without a usable checkpoint, and an --index outside the data set
    return run_command("play", lambda: run(options), usage_errors=(CheckpointError, IndexError))


if __name__ == "__main__":
    exit_on_signal("play: stopped before the episode began")
    sys.exit(main())
