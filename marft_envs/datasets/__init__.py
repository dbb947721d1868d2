"""Data sets by name: ``load("gsm8k", split="test")`` is a ``Task``.

| name | columns | splits | source |
|---|---|---|---|
| gsm8k | question, answer (after ``####``) | train 7473, test 1319 | openai/gsm8k, MIT |
| svamp | ID, Body, Question, Answer | train 789, test 211: by the SHA-256 of the ID | SVAMP, MIT |
| math | problem, solution (last ``\\boxed``), level, type | train 6098, test 4049: numeric golds | Hendrycks, MIT |
"""

from __future__ import annotations

import os

from marft_envs.datasets.files import DataError
from marft_envs.datasets.source import rows_of
from marft_envs.datasets.specs import NAMES, find_spec
from marft_envs.datasets.task import DatasetTask
from marft_envs.mathematics.draw import whole_number

__all__ = ["NAMES", "DataError", "DatasetTask", "load"]


def load(
    name: str,
    *,
    path: str | os.PathLike[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    seed: int | None = None,
) -> DatasetTask:
    """The data set ``name`` as a task.

    path: a file, or a folder with the data (``test.jsonl`` or ``gsm8k/test.jsonl``). Without it the folder in the
    variable MARFT_DATA is read, and where the data set is not in it the hub or its cache. split: "train" or "test".
    limit: at most so many problems. seed: shuffles them, before the limit; None keeps the order of the file.
    """
    spec = find_spec(name)
    if split not in spec.splits:
        raise ValueError(f"split={split!r}: {name} has {', '.join(spec.splits)}")
    if limit is not None:
        limit = whole_number("limit", limit, 1, None)
    if seed is not None:
        seed = whole_number("seed", seed, 0, None)
    rows, origin = rows_of(spec, split, path)
    return DatasetTask(spec, rows, split=split, origin=origin, limit=limit, seed=seed)
