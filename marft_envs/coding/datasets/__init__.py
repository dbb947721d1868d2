"""Programming data sets by name: ``load("mbpp", split="test")`` returns a ``Task``.

| name | splits | source |
|---|---|---|
| humaneval | test 164 | openai/openai_humaneval, MIT |
| humanevalplus | test 164 | evalplus/humanevalplus, or EvalPlus's own file, Apache-2.0 |
| mbpp | prompt 10, test 500, validation 90, train 374, by task_id | google-research-datasets/mbpp, CC BY 4.0 |
| livecodebench | test; ``since``, ``until`` or a ``release`` select the days | files of livecodebench, CC BY 4.0 |
| deepcoder | train, test; ``part``: primeintellect, taco, lcbv5, codeforces | agentica-org, DeepCoder-Preview, MIT |
| codeforces | train, test | open-r1/codeforces, CC BY 4.0 |
| apps | train 5000, test 5000 | codeparrot/apps, MIT |
| code_contests | train, validation, test | deepmind/code_contests, CC BY 4.0 |

A row that cannot be graded is left out; ``task.unusable`` lists it with the reason. The rows of the last five are
converted only when their problem is read, because converting all of them takes minutes; there, an unusable row raises
``DataError`` at its index.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from marft_envs.coding.code_task import CodeOptions, with_code_options
from marft_envs.coding.datasets.code_dataset_task import CodeDatasetTask
from marft_envs.coding.datasets.contest_dates import RELEASES, contest_dates
from marft_envs.coding.datasets.specs import NAMES, SPECS
from marft_envs.datasets.dataset_spec import spec_named
from marft_envs.datasets.dataset_task import ProblemOrder
from marft_envs.datasets.files import DataError
from marft_envs.datasets.usable_rows import load_rows

__all__ = ["NAMES", "RELEASES", "SPECS", "CodeDatasetTask", "DataError", "load"]

CODE = (Path(__file__).parents[1],)
"""The package whose code decides what a row becomes, for the key in the cache: row readers and checks of tests."""


@with_code_options
def load(
    name: str,
    *,
    path: str | os.PathLike[str] | None = None,
    split: str = "test",
    part: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    since: str | None = None,
    until: str | None = None,
    release: str | None = None,
    revision: str | None = None,
    **options: Any,
) -> CodeDatasetTask:
    """Return a data set as a task.

    Args:
        name: One of ``NAMES``; see the table above.
        path: A file, or a folder with the data. By default the folder in the environment variable MARFT_DATA is read,
            and if it does not have the data set, the hub or its cache.
        split: One of the data set's splits; see the table above.
        part: The part of deepcoder to load; None for the others.
        limit: Largest number of problems, taken after shuffling.
        seed: Shuffles the problems; None keeps the order of the file.
        since: First day of livecodebench's problems, such as "2024-08-01".
        until: Last day of livecodebench's problems.
        release: Release of livecodebench, "v1" to "v6", in place of ``until``.
        revision: A commit of the hub, in place of the pinned one.
        options: The fields of ``CodeOptions``: scoring, feedback, limits and sandbox.

    Raises:
        TypeError, ValueError: An argument is not allowed; the message names it and what was expected.
        FileNotFoundError: ``path`` or MARFT_DATA does not exist, or ``path`` holds no file of the split.
        DataError: The data set is unknown, was not found or is corrupt, or no problem is usable.
    """
    spec = spec_named(name, SPECS).at_revision(revision).of_part(part)
    if dates := contest_dates(name, since, until, release):
        spec = replace(spec, keep=dates.contains, variant=f"{spec.variant} {dates}")
    order = ProblemOrder(seed, limit)
    CodeOptions(**options)  # validated before the rows are read, which may take minutes
    rows = load_rows(spec, split=split, path=path, code=CODE)
    return CodeDatasetTask(name, rows, split=split, order=order, **options)
