"""Programming problems by name: ``load("mbpp", split="test")`` is a ``CodeTask``.

| name | splits | source |
|---|---|---|
| humaneval | test 164 | openai/openai_humaneval, MIT |
| humanevalplus | test 164 | evalplus/humanevalplus, or EvalPlus's own file, Apache-2.0 |
| mbpp | prompt 10, test 500, validation 90, train 374, by task_id | google-research-datasets/mbpp, CC BY 4.0 |
| livecodebench | test; ``since``, ``until``, or a ``release`` choose the days | files of livecodebench |
| deepcoder | train, test; ``part``: primeintellect, taco, lcbv5, codeforces | agentica-org, DeepCoder-Preview, MIT |
| codeforces | train, test | open-r1/codeforces, CC BY 4.0 |
| apps | train 5000, test 5000 | codeparrot/apps, MIT |
| code_contests | train, validation, test | deepmind/code_contests, CC BY 4.0 |

Without ``path`` the folder in MARFT_DATA is read, then the hub or its cache. A row that cannot be graded is left out;
``task.unusable`` lists it with the reason.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from marft_envs.coding.code_task import CodeItem, CodeTask, FeedbackKind
from marft_envs.coding.datasets import columns
from marft_envs.coding.grader.run_tests import Scoring
from marft_envs.datasets.files import SUFFIXES, DataError, Row, check_columns, read_rows
from marft_envs.datasets.hub import read_hub
from marft_envs.datasets.source import VARIABLE, not_found
from marft_envs.datasets.specs import HubSource, at_revision, counted
from marft_envs.sandbox import Sandbox
from marft_envs.task import Problem, check_index

RELEASES = {
    "v1": "2024-03-31", "v2": "2024-05-31", "v3": "2024-07-31", "v4": "2024-09-30", "v5": "2025-01-31",
    "v6": "2025-04-30",
}  # fmt: skip
"""LiveCodeBench's releases: all problems up to this day."""
_Date = str | None


@dataclass(frozen=True)
class Spec:
    """columns: what a row must have. files: names without suffix, of files that hold a split ("{split}") or all of
    them; a trailing * takes several. member: the split of a row where one file holds all. slow: rows are not read
    through when the data set is loaded, because that takes minutes.
    """

    name: str
    read: Callable[[Row], CodeItem]
    columns: tuple[str, ...]
    splits: tuple[str, ...]
    files: tuple[str, ...]
    hub: HubSource | None
    member: Callable[[Row], str] | None = None
    slow: bool = False


def mbpp_split(row: Row) -> str:
    """As published: the first ten for prompts, then test, validation, train."""
    number = int(row["task_id"])
    return "prompt" if number <= 10 else "test" if number <= 510 else "validation" if number <= 600 else "train"


_DEEPCODER = "agentica-org/DeepCoder-Preview-Dataset"
PARTS = ("primeintellect", "taco", "lcbv5", "codeforces")
SPECS = {
    spec.name: spec
    for spec in (
        Spec("humaneval", columns.humaneval, ("task_id", "prompt", "canonical_solution", "test", "entry_point"),
             ("test",), ("HumanEval", "{split}"), HubSource("openai/openai_humaneval", ("openai_humaneval",),
                                                     "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544")),
        Spec("humanevalplus", columns.humanevalplus, ("task_id", "prompt", "canonical_solution", "entry_point"),
             ("test",), ("HumanEvalPlus-Mini", "HumanEvalPlus", "{split}"),
             HubSource("evalplus/humanevalplus", revision="d32357cf319e50e9c8d8dab5ea876c72b0fd321b")),
        Spec("mbpp", columns.mbpp, ("task_id", "code", "test_list"), ("train", "test", "validation", "prompt"),
             ("mbpp", "{split}"),
             HubSource("google-research-datasets/mbpp", ("full",), "4bb6404fdc6cacfda99d4ac4205087b89d32030c"),
             mbpp_split),
        Spec("livecodebench", columns.livecodebench,
             ("question_content", "question_id", "contest_date", "public_test_cases"), ("test",),
             ("test*",), None, slow=True),
        Spec("deepcoder", columns.deepcoder, ("problem", "tests"), ("train", "test"), ("{part}/{split}*", "{split}*"),
             HubSource(_DEEPCODER, revision="177913a7bd43791646ef6a43645caa3c871ab3db"), slow=True),
        Spec("codeforces", columns.codeforces, ("id", "title", "description"), ("train", "test"), ("{split}*",),
             HubSource("open-r1/codeforces", revision="fbe3f6e903ee854eec2e69e9d96d0306cde59baf"), slow=True),
        Spec("apps", columns.apps, ("problem_id", "question", "input_output"), ("train", "test"), ("{split}*",),
             HubSource("codeparrot/apps", revision="21e74ddf8de1a21436da12e3e653065c5213e9d1", files="{part}.jsonl"),
             slow=True),
        Spec("code_contests", columns.code_contests,
             ("name", "description", "public_tests", "private_tests", "generated_tests"),
             ("train", "validation", "test"), ("{split}*",),
             HubSource("deepmind/code_contests", revision="802411c3010cb00d1b05bad57ca77365a3c699d6",
                       parts={"validation": "valid"}), slow=True),
    )
}  # fmt: skip
NAMES = tuple(SPECS)


def load(
    name: str,
    *,
    path: str | os.PathLike[str] | None = None,
    split: str = "test",
    part: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    since: _Date = None,
    until: _Date = None,
    release: str | None = None,
    scoring: Scoring = "all",
    feedback: FeedbackKind = "tests",
    time_limit_s: float = 5.0,
    memory_mib: int = 1024,
    allow_unsafe: bool = False,
    sandbox: Sandbox | Sequence[str] | None = None,
    revision: str | None = None,
) -> CodeRows:
    """The data set ``name`` as a task.

    path: a file, or a folder with the data. split, part: see the table. limit: at most so many problems. seed: shuffles
    them, before the limit. since, until: days such as "2024-08-01", both included, of problems with a date. release:
    of livecodebench, "v1" to "v6", in place of until. revision: another commit of the hub than the one that is pinned
    here. The others: see ``CodeTask``.
    """
    if name not in SPECS:
        raise ValueError(f"dataset={name!r}: expected one of {', '.join(NAMES)}")
    spec = SPECS[name]
    if revision is not None:
        spec = replace(spec, hub=at_revision(spec.hub, revision, name))
    if split not in spec.splits:
        raise ValueError(f"split={split!r}: {name} has {', '.join(spec.splits)}")
    if (part is not None) != (name == "deepcoder") or part not in (None, *PARTS):
        wanted = f"one of {', '.join(PARTS)}" if name == "deepcoder" else f"None, {name} has no parts"
        raise ValueError(f"part={part!r}: expected {wanted}")
    rows, origin = _rows(spec, split, part, path)
    check_columns(rows, spec.columns, f"{name} from {origin}")
    if spec.member is not None:
        rows = [row for row in rows if spec.member(row) == split]
    rows = [row for row in rows if _within(row, *_window(name, since, until, release))]
    return CodeRows(
        spec, rows, origin, limit=limit, seed=seed, scoring=scoring, feedback=feedback, time_limit_s=time_limit_s,
        memory_mib=memory_mib, allow_unsafe=allow_unsafe, sandbox=sandbox,
    )  # fmt: skip


class CodeRows(CodeTask):
    """Problems from rows. origin: where they came from. unusable: (row, reason) of each row left out; excluded: reason
    -> how many. A data set that is slow to read is not read through first: an unusable row of it raises at its index.
    """

    def __init__(
        self, spec: Spec, rows: list[Row], origin: str, *, limit: int | None, seed: int | None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.name, self.origin = spec.name, origin
        self._read, self._rows = spec.read, rows
        self.unusable: tuple[tuple[int, str], ...] = () if spec.slow else tuple(_unusable(spec, rows))
        self.excluded = dict(Counter(reason for _, reason in self.unusable))
        left_out = {number for number, _ in self.unusable}
        kept = [number for number in range(len(rows)) if number not in left_out]
        if seed is not None:
            kept = [kept[i] for i in np.random.default_rng(seed).permutation(len(kept))]
        self._order = kept[:limit]
        if not self._order:
            raise DataError(f"{spec.name} from {origin}: no usable row among {len(rows)}: {counted(self.excluded)}")
        self.size: int = len(self._order)

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        row = self._order[number]
        try:
            problem = self._read(self._rows[row]).problem(number)
        except ValueError as reason:  # Unusable, or tests at fault
            raise DataError(f"{self.name}: row {row} cannot be graded: {reason}") from reason
        return Problem(number, problem.prompt, problem.gold, notes={**problem.notes, "row": row})


def _unusable(spec: Spec, rows: list[Row]) -> list[tuple[int, str]]:
    found = []
    for number, row in enumerate(rows):
        try:
            spec.read(row).problem(number)
        except ValueError as reason:  # Unusable, or tests at fault
            found.append((number, str(reason)))
    return found


def _window(name: str, since: _Date, until: _Date, release: str | None) -> tuple[str, str]:
    if release is not None:
        if name != "livecodebench" or release not in RELEASES or until is not None:
            raise ValueError(
                f"release={release!r} of {name} with until={until!r}: expected one of {', '.join(RELEASES)}, of "
                "livecodebench, without until"
            )
        until = RELEASES[release]
    for what, day in (("since", since), ("until", until)):
        try:
            datetime.date.fromisoformat(day or "2000-01-01")
        except (ValueError, TypeError):
            raise ValueError(f"{what}={day!r}: expected a day such as '2024-08-01'") from None
    if (since or until) and name != "livecodebench":
        raise ValueError(f"since={since!r}, until={until!r}: only livecodebench has dates, got name={name!r}")
    return since or "", until or "9999"


def _within(row: Mapping[str, Any], since: str, until: str) -> bool:
    day = str(row.get("contest_date") or "")[:10]
    return not day or since <= day <= until


def _rows(spec: Spec, split: str, part: str | None, path: str | os.PathLike[str] | None) -> tuple[list[Row], str]:
    """(rows, where they came from): ``path``, the folder in MARFT_DATA, the hub."""
    holds = _expected(spec, split, part)
    place, tried = path if path is not None else os.environ.get(VARIABLE), f"{VARIABLE} is not set"
    if place is not None:
        files = _files(spec, split, part, Path(place))
        if files:
            return [row for file in files for row in _cached_rows(file)], ", ".join(map(str, files))
        tried = f"{place}: no file of {spec.name}, split {split!r}; expected {holds}"
        if path is not None:
            raise DataError(tried)
    if spec.hub is None:
        raise not_found(spec.name, split, f"{tried}; it is not read from the hub", holds)
    hub = spec.hub if part is None else replace(spec.hub, configs=(part,))
    splits = (split,) if spec.member is None else spec.splits
    try:
        rows, commit = read_hub(spec.name, hub, tuple(hub.parts.get(name, name) for name in splits))
    except DataError as error:
        raise not_found(spec.name, split, f"{tried}; {error}", holds, at_hub=True) from error
    return rows, f"{hub.repository} ({commit})"


def _files(spec: Spec, split: str, part: str | None, place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: no such file or folder, expected the data of {spec.name}")
    folder = place / spec.name if (place / spec.name).is_dir() else place
    for pattern in spec.files:
        stem = pattern.format(split=split, part=part)
        if found := sorted(f for suffix in SUFFIXES for f in folder.glob(stem + suffix) if f.is_file()):
            return found
    return []


def _expected(spec: Spec, split: str, part: str | None) -> str:
    names = " or ".join(pattern.format(split=split, part=part) for pattern in spec.files)
    return f"a file {names} ending in {', '.join(SUFFIXES)}, in it or in {spec.name}/"


@lru_cache(maxsize=4)
def _read_once(file: Path, changed: float) -> list[Row]:
    return read_rows(file)


def _cached_rows(file: Path) -> list[Row]:
    """The rows of a file, read again when it has changed."""
    return _read_once(file, file.stat().st_mtime)
