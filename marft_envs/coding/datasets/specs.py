"""The programming data sets that are known by name.

To add one, write a function from a row to a ``CodeItem`` in ``row_readers``, and add an entry to ``SPECS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from marft_envs.coding.code_task import CodeItem
from marft_envs.coding.datasets import row_readers
from marft_envs.coding.grader.check_tests import check_tests
from marft_envs.datasets.dataset_spec import DatasetSpec, HubDataset, Unusable
from marft_envs.datasets.files import Row


@dataclass(frozen=True)
class CodeDatasetSpec(DatasetSpec[CodeItem]):
    """A data set of programming problems."""

    item_type = CodeItem


def mbpp_split(row: Row) -> str:
    """Return the published split of a row: the first ten are for prompts, then come test, validation and train."""
    number = int(row["task_id"])
    return "prompt" if number <= 10 else "test" if number <= 510 else "validation" if number <= 600 else "train"


def _read_usable(read: Callable[[Row], CodeItem], row: Row) -> CodeItem:
    """Return the item of a row. Malformed values and tests are Unusable, too."""
    try:
        item = read(row)
        check_tests([*item.public, *item.hidden], item.kind)
    except ValueError as reason:
        raise Unusable(str(reason)) from reason
    return item


def _spec(name: str, licence: str, source: str, read: Callable[[Row], CodeItem], **fields: Any) -> CodeDatasetSpec:
    return CodeDatasetSpec(name, licence, source, read=partial(_read_usable, read), **fields)


SPECS: dict[str, CodeDatasetSpec] = {
    spec.name: spec
    for spec in (
        _spec(
            "humaneval", "MIT", "Chen et al. 2021", row_readers.read_humaneval,
            columns=("task_id", "prompt", "canonical_solution", "test", "entry_point"), splits=("test",),
            files=("HumanEval", "{split}"),
            hub=HubDataset(
                "openai/openai_humaneval", ("openai_humaneval",), "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"
            ),
        ),
        _spec(
            "humanevalplus", "Apache-2.0", "Liu et al. 2023", row_readers.read_humanevalplus,
            columns=("task_id", "prompt", "canonical_solution", "entry_point"), splits=("test",),
            files=("HumanEvalPlus-Mini", "HumanEvalPlus", "{split}"),
            hub=HubDataset("evalplus/humanevalplus", revision="d32357cf319e50e9c8d8dab5ea876c72b0fd321b"),
        ),
        _spec(
            "mbpp", "CC BY 4.0", "Austin et al. 2021", row_readers.read_mbpp,
            columns=("task_id", "code", "test_list"), splits=("train", "test", "validation", "prompt"),
            files=("mbpp", "{split}"), split_of=mbpp_split,
            hub=HubDataset(
                "google-research-datasets/mbpp", ("full",), "4bb6404fdc6cacfda99d4ac4205087b89d32030c"
            ),
        ),
        _spec(
            "livecodebench", "CC BY 4.0", "Jain et al. 2024", row_readers.read_livecodebench,
            columns=("question_content", "question_id", "contest_date", "public_test_cases"), splits=("test",),
            files=("{split}*",), hub=None, lazy=True,
        ),
        _spec(
            "deepcoder", "MIT", "agentica-org, 2025", row_readers.read_deepcoder,
            columns=("problem", "tests"), files=("{part}/{split}*", "{split}*"),
            parts=("primeintellect", "taco", "lcbv5", "codeforces"), lazy=True,
            hub=HubDataset(
                "agentica-org/DeepCoder-Preview-Dataset", revision="177913a7bd43791646ef6a43645caa3c871ab3db"
            ),
        ),
        _spec(
            "codeforces", "CC BY 4.0", "open-r1, 2025", row_readers.read_codeforces,
            columns=("id", "title", "description"), files=("{split}*",), lazy=True,
            hub=HubDataset("open-r1/codeforces", revision="fbe3f6e903ee854eec2e69e9d96d0306cde59baf"),
        ),
        _spec(
            "apps", "MIT", "Hendrycks et al. 2021", row_readers.read_apps,
            columns=("problem_id", "question", "input_output"), files=("{split}*",), lazy=True,
            hub=HubDataset(
                "codeparrot/apps", revision="21e74ddf8de1a21436da12e3e653065c5213e9d1", files="{split}.jsonl"
            ),
        ),
        _spec(
            "code_contests", "CC BY 4.0", "Li et al. 2022", row_readers.read_code_contests,
            columns=("name", "description", "public_tests", "private_tests", "generated_tests"),
            splits=("train", "validation", "test"), files=("{split}*",), lazy=True,
            hub=HubDataset(
                "deepmind/code_contests", revision="802411c3010cb00d1b05bad57ca77365a3c699d6",
                split_names={"validation": "valid"},
            ),
        ),
    )
}  # fmt: skip
NAMES = tuple(SPECS)
