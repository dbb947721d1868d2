"""Command line: list the environments, begin a task, play one by hand, write the doc pages.

    python -m marft_envs list
    python -m marft_envs new-task coins --into my_tasks
    python -m marft_envs play math_v0 --index 3
    python -m marft_envs play math_v0 --team trio --env-arg dataset=relay --env-arg rounds=2
    python -m marft_envs docs --check

Exit code 2: a wrong name or option; 1: doc pages are out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from marft_envs import registry
from marft_envs.cli.docs import FOLDER, outdated, summary, write
from marft_envs.cli.key_values import parse_key_values
from marft_envs.cli.new_task import new_task
from marft_envs.cli.play import play_by_hand


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m marft_envs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="the environments, a line each")
    new = commands.add_parser("new-task", help="write the file of a task, and its test")
    new.add_argument("name", help="lower-case words joined by _, without a version")
    new.add_argument("--into", type=Path, default=Path(), help="the folder (default: this one)")
    play = commands.add_parser("play", help="answer a problem yourself, for every agent of the team")
    play.add_argument("name", help="an environment, as in math_v0 or my_tasks:coins_v0")
    play.add_argument("--index", type=int, help="the problem (default: one at random)")
    play.add_argument("--team", help="a ready-made team, or a .yaml file (default: the environment's own)")
    play.add_argument(
        "--env-arg", action="append", default=[], metavar="NAME=VALUE", help="another argument of env(); repeatable"
    )
    docs = commands.add_parser("docs", help="write the doc pages")
    docs.add_argument("names", nargs="*", help="environments (default: those that are built in)")
    docs.add_argument("--into", type=Path, default=FOLDER, help=f"the folder (default: {FOLDER})")
    docs.add_argument("--check", action="store_true", help="write nothing; say which pages are out of date")
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        parser.exit()
    return options


def docs(names: Sequence[str], folder: Path, check: bool) -> int:
    """Write or check the pages; -> exit code."""
    chosen = tuple(names) or registry.BUILT_IN
    if not check:
        print("\n".join(map(str, write(chosen, folder))))
        return 0
    faults = outdated(chosen, folder)
    print("\n".join([*faults, "run: python -m marft_envs docs"]) if faults else f"{len(chosen)} pages are up to date")
    return 1 if faults else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of ``python -m marft_envs``."""
    options = parse(arguments)
    try:
        if options.command == "list":
            print("\n".join(f"{name:<12} {summary(name)}" for name in registry.names()))
        elif options.command == "new-task":
            print("\n".join(f"wrote {path}" for path in new_task(options.name, options.into)))
        elif options.command == "play":
            team = {} if options.team is None else {"team": options.team}
            play_by_hand(options.name, options.index, team | parse_key_values("--env-arg", options.env_arg))
        else:
            return docs(options.names, options.into, options.check)
    except (ValueError, TypeError, IndexError, OSError, ImportError) as fault:
        print(f"marft_envs: {fault}", file=sys.stderr)
        return 2
    except (EOFError, KeyboardInterrupt):
        print("\nmarft_envs: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
