"""Data sets by name: ``load("gsm8k", split="test")`` is a ``Task``.

| name | columns | splits | source |
|---|---|---|---|
| gsm8k | question, answer (after ``####``) | train 7473, test 1319 | openai/gsm8k, MIT |
| svamp | ID, Body, Question, Answer | train 789, test 211: by the SHA-256 of the ID | SVAMP, MIT |
| math | problem, solution (last ``\\boxed``), level, type | train, test | Hendrycks, MIT |
| math500 | problem, answer, level, subject | test 500 | HuggingFaceH4/MATH-500, MIT |
| aime2024 | problem, answer | test 30 | HuggingFaceH4/aime_2024 |
| aime2025 | problem, answer | test 30 | math-ai/aime25 |
| amc23 | question, answer | test 40 | math-ai/amc23 |
| olympiadbench | question, context, final_answer, subfield, error | test | Hothan/OlympiadBench, OE_TO_maths_en_COMP |
| minerva_math | problem or question, answer or solution | test 272 | math-ai/minervamath; numbers within 1 % |
| cmath | problem, final_answer (or question, golden), grade | validation, test 1098 | weitianwen/cmath; Chinese |
| deepscaler | problem, answer | train 40315 | agentica-org/DeepScaleR-Preview-Dataset, MIT |
| numina | problem, solution, answer, problem_type | train | AI-MO/NuminaMath-1.5, Apache-2.0 |
| custom | yours: ``columns={"prompt": ..., "answer": ...}`` | train, test, all | a file or folder of your own |

A row whose gold cannot be graded is left out; ``task.unusable`` lists it with the reason. A problem of "train" that is
also in the "test" beside it is left out of "train". ``duplicates(train, evaluation)`` finds shared problems of any two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from marft_envs.arguments import check_integer
from marft_envs.datasets.build import stored_rows
from marft_envs.datasets.duplicates import duplicates
from marft_envs.datasets.files import DataError
from marft_envs.datasets.specs import at_revision
from marft_envs.mathematics.datasets.dataset_task import Choice, DatasetTask, Filters
from marft_envs.mathematics.datasets.specs import NAMES, find_spec

__all__ = ["NAMES", "DataError", "DatasetTask", "Filters", "duplicates", "load"]


def load(
    name: str,
    *,
    path: str | os.PathLike[str] | None = None,
    split: str = "test",
    limit: int | None = None,
    seed: int | None = None,
    level: Choice = None,
    subject: Choice = None,
    max_chars: int | None = None,
    integer: bool | None = None,
    columns: Mapping[str, str] | None = None,
    revision: str | None = None,
) -> DatasetTask:
    """The data set ``name`` as a task.

    path: a file, or a folder with the data (``test.jsonl`` or ``gsm8k/test.jsonl``). Without it the folder in the
    variable MARFT_DATA is read, and where the data set is not in it the hub or its cache. split: see the table.
    level, subject, max_chars, integer: see ``Filters``. limit: at most so many problems. seed: shuffles them, before
    the limit; None keeps the order of the file. columns: for "custom", role to column name; roles are prompt, answer,
    level, subject. revision: another commit of the hub than the one that is pinned here.
    """
    spec = find_spec(name, columns, folder=path is not None and Path(path).is_dir())
    if revision is not None:
        spec = replace(spec, hub=at_revision(spec.hub, revision, name))
    if split not in spec.splits:
        raise ValueError(f"split={split!r}: {name} has {', '.join(spec.splits)}")
    if limit is not None:
        limit = check_integer("limit", limit, 1, None)
    if seed is not None:
        seed = check_integer("seed", seed, 0, None)
    filters = Filters(level, subject, max_chars, integer)
    store = stored_rows(spec, split, path)
    return DatasetTask(spec, store, split=split, filters=filters, limit=limit, seed=seed)
