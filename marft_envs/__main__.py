"""List, validate and play environments, create a task, grade or show a trace, write the doc pages.

examples:
    python -m marft_envs list
    python -m marft_envs new-task coins --into my_tasks
    python -m marft_envs play math_v0 --index 3
    python -m marft_envs play math_v0 --team trio --env-arg dataset=relay --env-arg rounds=2
    python -m marft_envs validate my_tasks:coins_v0
    python -m marft_envs regrade runs/demo/transcripts/000010-sampled.jsonl --policy arithmetic=any
    python -m marft_envs show runs/demo/transcripts/000010-sampled.jsonl
    python -m marft_envs docs --check

exit codes: 0 success, 1 a check failed, doc pages are outdated or a verdict has changed, 2 wrong name or option,
130 stopped
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marft_envs import registry
from marft_envs.cli import docs, regrade, validate
from marft_envs.cli.key_values import parse_key_values
from marft_envs.cli.new_task import new_task
from marft_envs.cli.play_by_hand import play_by_hand
from marft_envs.traces import read
from marft_envs.traces.page import trace_page


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line. Without a command, print the help and exit."""
    parser = argparse.ArgumentParser(
        prog="python -m marft_envs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser("list", help="list all environments")
    new = commands.add_parser("new-task", help="create the file of a new task, and its test")
    new.add_argument("name", help="lower-case words joined by _, without a version")
    new.add_argument("--into", type=Path, default=Path(), help="folder for the files (default: the current folder)")
    play = commands.add_parser("play", help="play one episode by hand, for every agent of the team")
    play.add_argument("name", help="environment, such as math_v0 or my_tasks:coins_v0")
    play.add_argument("--index", type=int, help="index of the problem (default: a random problem)")
    play.add_argument("--team", help="preset team, or a .yaml file (default: the environment's default team)")
    play.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another argument of the environment, such as rounds=2; repeatable",
    )
    checked = commands.add_parser("validate", help="check environments, and play policies that must earn nothing")
    checked.add_argument("names", nargs="*", help="environments (default: all)")
    checked.add_argument("--problems", type=int, default=20, help="problems that each policy plays (default: 20)")
    checked.add_argument("--dataset", nargs="+", default=[], help="data sets, each of which is validated")
    checked.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the reports to a JSON file; docs/environments/NAME.validation.json is shown in the doc page",
    )
    checked.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of the environments, such as dataset=relay; repeatable",
    )
    _add_trace_commands(commands)
    pages = commands.add_parser("docs", help="write the doc pages of environments")
    pages.add_argument("names", nargs="*", help="environments (default: the built-in ones)")
    pages.add_argument(
        "--into",
        type=Path,
        help=f"folder of the pages (default: {docs.FOLDER}; the pages are printed if that folder does not exist)",
    )
    pages.add_argument("--check", action="store_true", help="write nothing, and list the pages that are outdated")
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        parser.exit()
    return options


def _add_trace_commands(commands: Any) -> None:
    """Add the commands that read a trace."""
    again = commands.add_parser("regrade", help="grade the episodes of a trace again, and list the changed verdicts")
    again.add_argument("trace", type=Path, help="trace file; see docs/traces.md")
    again.add_argument("--name", help="environment (default: that of the trace)")
    again.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of the environment, in addition to those in the trace; repeatable",
    )
    again.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change of the task's grading policy, such as arithmetic=any; repeatable",
    )
    show = commands.add_parser("show", help="write the episodes of a trace as a web page that needs no network")
    show.add_argument("trace", type=Path, help="trace file, such as a transcript of a training run")
    show.add_argument("--out", type=Path, help="the page (default: the name of the trace with .html)")


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if options.command == "list":
        print("\n".join(docs.environment_list()))
    elif options.command == "new-task":
        print("\n".join(f"wrote {path}" for path in new_task(options.name, options.into)))
    elif options.command == "play":
        team = {} if options.team is None else {"team": options.team}
        play_by_hand(options.name, options.index, team | parse_key_values("--env-arg", options.env_arg))
    elif options.command == "validate":
        arguments = parse_key_values("--env-arg", options.env_arg)
        return validate.run(
            options.names or registry.names(),
            arguments,
            datasets=options.dataset,
            problems=options.problems,
            json_file=options.json,
        )
    elif options.command == "regrade":
        changes = parse_key_values("--policy", options.policy)
        return regrade.run(options.trace, options.name, parse_key_values("--env-arg", options.env_arg), changes)
    elif options.command == "show":
        page = options.out or options.trace.with_suffix(".html")
        page.write_text(trace_page(read(options.trace), options.trace.name), encoding="utf-8")
        print(f"wrote {page}; open it in a browser")
    else:
        return docs.write_or_check(tuple(options.names) or registry.BUILT_IN, options.into, check=options.check)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m marft_envs`` and return its exit code. An error is one line on stderr."""
    options = parse(arguments)
    try:
        return run(options)
    except (ValueError, TypeError, IndexError, OSError, ImportError) as fault:
        print(f"marft_envs: {fault}", file=sys.stderr)
        return 2
    except (EOFError, KeyboardInterrupt):
        print("\nmarft_envs: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
