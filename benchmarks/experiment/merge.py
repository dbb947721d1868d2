"""Merge of results folders: the runs of one comparison that were made on several machines, in one folder.

Arms, tasks and seeds may differ between the folders; whatever else decides a number must agree. A run that lies in
several folders must have the same rows in all of them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from baselines.runs.checkpoint import replace_file
from baselines.runs.run_config import config_hash, decisive, differing_values
from baselines.runs.run_folder import CONFIG, LOCK, ROWS, lock
from benchmarks.analysis.read_rows import Row, parse_line
from benchmarks.analysis.training_runs import ladder_rank
from benchmarks.experiment.grid import decisive_settings
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.provenance import CONTROL
from benchmarks.experiment.results_folder import FAILURES, HEAD, RUNS, ResultsFolder, last_update

_OF_THE_MACHINE = ("wall_s", "seconds")  # what differs between two machines that do the same run
_MODEL = ("name", "revision", "sha256", "dtype", "quantization")
_LONGEST = 60  # characters of a value in a message
_NAMED = 3  # fields of a row in a message


@dataclass(frozen=True)
class Part:
    """One of the folders to merge.

    Attributes:
        folder: Path of the results folder.
        head: Content of its grid.json.
        runs: Name of a run's folder -> the run's complete rows, the head first.
    """

    folder: Path
    head: Mapping[str, Any]
    runs: Mapping[str, Sequence[Row]]


def merge(folders: Sequence[Path], out: Path) -> str:
    """Merge results folders into a new one, which ``compare.py --resume`` can resume. The folders stay as they are.

    Args:
        folders: Results folders of ``compare.py``, at least two.
        out: The merged folder: a new or empty one. It appears when it is complete.

    Returns:
        What the merged folder holds, as a sentence.

    Raises:
        GridError: The folders cannot be merged; the message names the field that differs and both values.
        ReportError: A row of a run is malformed.
        ValueError: Another process uses one of the folders.
        OSError: A file cannot be read or written, for example because the disk is full.
    """
    _check_paths(folders, out)
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_locked(folder))
        parts = [_read(folder) for folder in folders]
        for first, second in combinations(parts, 2):
            _check_pair(first, second)
        head = merged_head(parts)
        chosen = {name: _furthest(name, parts) for name in sorted({name for part in parts for name in part.runs})}
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
            made = Path(temporary) / out.name  # a folder inside, so that its permissions are the usual ones
            _write(made, head, chosen, parts)
            made.replace(out)  # over an empty folder, too
    return _sentence(head, [out / RUNS / name for name in chosen])


def _check_paths(folders: Sequence[Path], out: Path) -> None:
    named = [folder.resolve() for folder in folders]
    if len(set(named)) < 2 or len(set(named)) < len(named):
        raise GridError(f"--merge {' '.join(map(str, folders))}: expected two or more results folders, each once")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise GridError(f"--out {out} exists: expected a new or empty folder for the merged results")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against a comparison that would write into it; a folder that cannot be written needs no lock."""
    release = None
    if (folder / HEAD).is_file():
        with contextlib.suppress(OSError):
            release = lock(folder)
    try:
        yield
    finally:
        if release is not None:
            release()


def _read(folder: Path) -> Part:
    head = ResultsFolder(folder).head()
    runs = {path.parent.name: _complete_rows(path) for path in sorted((folder / RUNS).glob(f"*/{ROWS}"))}
    return Part(folder, head, {name: rows for name, rows in runs.items() if rows})


def _complete_rows(path: Path) -> list[Row]:
    """Return the rows of a run without a line that was being written when the run was killed."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [parse_line(line, f"{path}, line {n}") for n, line in enumerate(lines, start=1) if line.endswith("\n")]


# ---- what must agree


def _check_pair(first: Part, second: Part) -> None:
    """Raise GridError if two folders differ in a setting, their problems, versions or models, or a shared run."""
    configs, data = (first.head["config"], second.head["config"]), (first.head["data"], second.head["data"])
    found = [
        *differing_values(_shared_settings(*configs), _shared_settings(*reversed(configs))),
        *differing_values(_shared_problems(*data), _shared_problems(*reversed(data))),
        *_differing_software(_software(first), _software(second)),
    ]
    if found:
        listed = "; ".join(_difference(first, second, *each) for each in found)
        raise GridError(
            f"{first.folder} and {second.folder} cannot be merged: {listed}: expected folders that differ in their "
            "arms, tasks and seeds only"
        )
    for name in first.runs:
        if name in second.runs:
            _check_rows(name, first, second)


def _difference(first: Part, second: Part, field: str, one: str, other: str) -> str:
    one, other = (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..." for text in (one, other))
    return f"{field} is {one} in {first.folder} and {other} in {second.folder}"


def _shared_settings(config: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one comparison that another one must have: all but arms, seeds and unshared tasks."""
    tasks = {}
    for task in (task for task in config["tasks"] if task in other["tasks"]):
        entry, arms = config["tasks"][task], other["tasks"][task]["learners"]
        of_arms = {key: {arm: value for arm, value in entry[key].items() if arm in arms}
                   for key in ("learners", "learning_rates")}  # fmt: skip
        tasks[task] = {**decisive(entry), "updates": entry["updates"], **of_arms}
    others = {key: value for key, value in decisive_settings(config).items() if key not in ("arms", "seeds")}
    return {**others, "tasks": tasks}


def _shared_problems(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {"problems": {task: {**found, CONTROL: None} for task, found in data.items() if task in other}}


def _software(part: Part) -> dict[str, list[str]]:
    """Return field -> all values that the sessions and runs of a folder have: code, versions and base models."""
    found: dict[str, set[str]] = {}
    for session in part.head["sessions"]:
        found.setdefault("sources", set()).add(session["sources"])
    heads = [rows[0] for rows in part.runs.values()]
    for row in (*part.head["sessions"], *heads):
        for package, version in row["versions"].items():
            found.setdefault(f"versions.{package}", set()).add(version)
    for row in heads:
        for name, model in row["models"].items():
            for key in (key for key in _MODEL if key in model):
                found.setdefault(f"models.{row['config']['task']}.{name}.{key}", set()).add(model[key])
    return {field: sorted(values) for field, values in found.items()}


def _differing_software(first: Mapping[str, list[str]], second: Mapping[str, list[str]]) -> list[tuple[str, str, str]]:
    """Return the fields of ``_software`` that both folders have with different values."""
    return [
        (field, " and ".join(first[field]), " and ".join(second[field]))
        for field in first
        if field in second and first[field] != second[field]
    ]


def _check_rows(name: str, first: Part, second: Part) -> None:
    """Raise GridError if the rows that a run has in both folders differ in more than times.

    A run that is unfinished in one folder has a part of the rows of the other.
    """
    pairs = zip(first.runs[name][1:], second.runs[name][1:], strict=False)
    hashes = [{"config_hash": part.runs[name][0]["config_hash"]} for part in (first, second)]
    for one, other in ((hashes[0], hashes[1]), *pairs):
        first_row, second_row = ({k: v for k, v in row.items() if k not in _OF_THE_MACHINE} for row in (one, other))
        found = differing_values(first_row, second_row)
        if found:
            where = f" in the {one['kind']} row of update {one['update']}" if "update" in one else ""
            listed = "; ".join(_difference(first, second, *each) for each in found[:_NAMED])
            raise GridError(
                f"run {name} lies in both folders and differs{where}: {listed}: expected the same rows; delete the run "
                "in one of the folders to merge the other one"
            )


# ---- the merged folder


def merged_head(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the head of the merged comparison, whose arms, tasks and seeds are those of all parts.

    Raises:
        GridError: The parts make no grid: a task lacks an arm, or arms have different numbers of learning rates.
    """
    configs = [part.head["config"] for part in parts]
    tasks: dict[str, dict[str, Any]] = {}
    for config in configs:
        for task, entry in config["tasks"].items():
            tasks[task] = _joined(tasks[task], entry) if task in tasks else entry
    orders = {tuple(config["arms"]) for config in configs}
    arms = orders.pop() if len(orders) == 1 else sorted({arm for each in orders for arm in each}, key=ladder_rank)
    for task, entry in tasks.items():
        _check_grid(task, entry, arms)
    config = {
        **{key: value for each in reversed(configs) for key, value in each.items()},
        "arms": list(arms),
        "seeds": max((c["seeds"] for c in configs), key=len),
        "tasks": tasks,
    }
    sessions = {json.dumps(session): session for part in parts for session in part.head["sessions"]}
    return {
        "kind": "comparison",
        "config": config,
        "config_hash": config_hash(decisive_settings(config)),
        "data": {task: found for part in reversed(parts) for task, found in part.head["data"].items()},
        "sessions": sorted(sessions.values(), key=lambda session: str(session["started"])),
    }


def _joined(entry: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a task with the arms of both folders, and the larger limit of a prompt's tokens."""
    of_arms = {key: {**entry[key], **other[key]} for key in ("learners", "learning_rates")}
    limits = [each["decoding"]["max_prompt_tokens"] for each in (entry, other)]
    return {**entry, **of_arms, "decoding": {**entry["decoding"], "max_prompt_tokens": max(limits)}}


def _check_grid(task: str, entry: Mapping[str, Any], arms: Sequence[str]) -> None:
    missing = [arm for arm in arms if arm not in entry["learners"]]
    if missing:
        raise GridError(
            f"no folder has task {task} with arm {', '.join(missing)}, which another task has: expected every arm for "
            "every task"
        )
    counts = {arm: len(rates) for arm, rates in entry["learning_rates"].items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{arm} has {count}" for arm, count in counts.items())
        raise GridError(f"tasks.{task}.learning_rates: {listed}; expected the same number of rates for every arm")


def _furthest(name: str, parts: Sequence[Part]) -> Path:
    """Return the folder of a run, from the part in which it is furthest."""
    found = [part for part in parts if name in part.runs]
    best = max(found, key=lambda part: (last_update(part.folder / RUNS / name), len(part.runs[name])))
    return best.folder / RUNS / name


def _write(folder: Path, head: Mapping[str, Any], chosen: Mapping[str, Path], parts: Sequence[Part]) -> None:
    """Write the merged folder: copies of the chosen runs, failures of runs that are not finished, head and rows."""
    (folder / RUNS).mkdir(parents=True)
    (folder / FAILURES).mkdir()
    for name, path in chosen.items():
        shutil.copytree(path, folder / RUNS / name, ignore=shutil.ignore_patterns(LOCK))
    for path in (path for part in reversed(parts) for path in sorted((part.folder / FAILURES).glob("*.json"))):
        if path.stem not in chosen or not _finished(chosen[path.stem]):
            shutil.copy2(path, folder / FAILURES)
    replace_file(folder / HEAD, json.dumps(head).encode())
    ResultsFolder(folder).write_rows()


def _finished(run_folder: Path) -> bool:
    """Return whether a run has its last checkpoint."""
    config = json.loads((run_folder / CONFIG).read_text(encoding="utf-8"))
    return last_update(run_folder) >= int(config["updates"])


def _sentence(head: Mapping[str, Any], runs: Sequence[Path]) -> str:
    """Return how many runs of the merged comparison are finished."""
    seeds = len(head["config"]["seeds"])
    planned = sum(max(1, len(entry["learning_rates"].get(arm, ()))) * seeds
                  for entry in head["config"]["tasks"].values() for arm in entry["learners"])  # fmt: skip
    finished = sum(map(_finished, runs))
    rest = "" if finished == planned else "; --resume with the options of the comparison does the others"
    return f"{finished} of {planned} runs are finished{rest}"
