"""Mathematics data sets by name: ``load("gsm8k", split="test")`` returns a ``Task``.

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
| deepscaler | problem, answer | train, test: one problem in 40, by its SHA-256 | DeepScaleR-Preview-Dataset, MIT |
| numina | problem, solution, answer, problem_type | train, test: as deepscaler | AI-MO/NuminaMath-1.5, Apache-2.0 |
| custom | yours: ``columns={"prompt": ..., "answer": ...}`` | train, test, all | a file or folder of your own |

A row whose gold answer cannot be graded is left out; ``task.unusable`` lists it with the reason. A problem of "train"
that is also in the "test" file beside it is left out of "train". ``duplicates(train, evaluation)`` finds the problems
that any two data sets share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from marft_envs.datasets.dataset_task import ProblemOrder
from marft_envs.datasets.duplicates import duplicates
from marft_envs.datasets.files import DataError
from marft_envs.datasets.usable_rows import load_rows
from marft_envs.mathematics.datasets.filters import Choice, Filters
from marft_envs.mathematics.datasets.math_dataset_task import MathDatasetTask
from marft_envs.mathematics.datasets.specs import NAMES, find_spec

__all__ = ["NAMES", "DataError", "Filters", "MathDatasetTask", "duplicates", "load"]

CODE = (Path(__file__).parents[1],)
"""The package whose code decides what a row becomes, for the key in the cache: row readers and grader."""


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
) -> MathDatasetTask:
    """Return a data set as a task.

    Args:
        name: One of ``NAMES``; see the table above.
        path: A file, or a folder with the data (``test.jsonl`` or ``gsm8k/test.jsonl``). By default the folder in the
            environment variable MARFT_DATA is read, and if it does not have the data set, the hub or its cache.
        split: One of the data set's splits; see the table above.
        limit: Largest number of problems, taken after filtering and shuffling.
        seed: Shuffles the problems; None keeps the order of the file.
        level: Allowed level, or several.
        subject: Allowed subject, or several.
        max_chars: Largest length of a prompt, in characters.
        integer: True keeps the problems whose answer is an integer, False the others.
        columns: For "custom": column name of each role, which are "prompt", "answer", "level" and "subject".
        revision: A commit of the hub, in place of the pinned one.

    Raises:
        TypeError, ValueError: An argument is not allowed; the message names it and what was expected.
        FileNotFoundError: ``path`` or MARFT_DATA does not exist, or ``path`` holds no file of the split.
        DataError: The data set is unknown, was not found or is corrupt, or no problem is usable or passes the filters.
    """
    spec = find_spec(name, columns, folder=path is not None and Path(path).is_dir()).at_revision(revision)
    order = ProblemOrder(seed, limit)
    filters = Filters(level, subject, max_chars, integer)
    rows = load_rows(spec, split=split, path=path, code=CODE)
    return MathDatasetTask(name, rows, split=split, policy=spec.policy, filters=filters, order=order)
