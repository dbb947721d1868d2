"""The mathematics data sets that are known by name.

To add one, write a function from a row to a ``MathItem`` in ``row_readers``, and add an entry to ``SPECS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from marft_envs.datasets.dataset_spec import DatasetSpec, HubDataset, hashed_split, spec_named
from marft_envs.datasets.files import Row
from marft_envs.mathematics.datasets import row_readers
from marft_envs.mathematics.datasets.row_readers import MathItem, level_note, usable_item
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy


@dataclass(frozen=True)
class MathDatasetSpec(DatasetSpec[MathItem]):
    """A data set of mathematics problems. policy: how replies are compared with its golds."""

    item_type = MathItem

    policy: GradingPolicy = DEFAULT_POLICY


def svamp_split(row: Row) -> str:
    """Return the split of a row of SVAMP, which is published as one file: 211 of 1000 rows are "test"."""
    return hashed_split(str(row["ID"]))


def held_out_split(row: Row) -> str:
    """Return the split of a row of data that is published for training alone: one problem in 40 is "test"."""
    return hashed_split(str(row["problem"]), one_in=40)


_MATH_SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra",
    "precalculus",
)  # fmt: skip

SPECS: dict[str, MathDatasetSpec] = {
    spec.name: spec
    for spec in (
        MathDatasetSpec(
            "gsm8k", "MIT", "openai/gsm8k", ("question", "answer"), row_readers.read_gsm8k,
            HubDataset("openai/gsm8k", ("main",), "740312add88f781978c0658806c59bc2815b9866"),
        ),
        MathDatasetSpec(
            "svamp", "MIT", "Patel et al. 2021", ("ID", "Body", "Question", "Answer"), row_readers.read_svamp,
            HubDataset("ChilleD/SVAMP", ("default",), "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef"), split_of=svamp_split,
        ),
        MathDatasetSpec(
            "math", "MIT", "Hendrycks et al. 2021", ("problem", "solution", "level", "type"), row_readers.read_math,
            HubDataset("EleutherAI/hendrycks_math", _MATH_SUBJECTS, "21a5633873b6a120296cce3e2df9d5550074f4a3"),
        ),
        MathDatasetSpec(
            "math500", "MIT", "Lightman et al. 2023", ("problem", "answer", "level", "subject"),
            row_readers.read_math500,
            HubDataset("HuggingFaceH4/MATH-500", revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"), ("test",),
        ),
        MathDatasetSpec(
            "aime2024", "public problems", "AIME 2024", ("problem", "answer"), row_readers.read_contest,
            HubDataset(
                "HuggingFaceH4/aime_2024", ("default",), "2fe88a2f1091d5048c0f36abc874fb997b3dd99a", {"test": "train"}
            ), ("test",),
        ),
        MathDatasetSpec(
            "aime2025", "public problems", "AIME 2025", ("problem", "answer"), row_readers.read_contest,
            HubDataset("math-ai/aime25", revision="563bb8404243c5f09de6ec262f2db674fe5bce9b"), ("test",),
        ),
        MathDatasetSpec(
            "amc23", "public problems", "AMC 12, 2023", ("question", "answer"), row_readers.read_contest,
            HubDataset("math-ai/amc23", revision="80815d37005feb82cd7f8fbc6901d5d3eff43057"), ("test",),
        ),
        MathDatasetSpec(
            "olympiadbench", "Apache-2.0", "He et al. 2024", ("question", "final_answer"),
            row_readers.read_olympiadbench,
            HubDataset(
                "Hothan/OlympiadBench", ("OE_TO_maths_en_COMP",), "91184b52131e7fc9455fef848035173aea8cc01a",
                {"test": "train"},
            ), ("test",),
        ),
        MathDatasetSpec(
            "minerva_math", "see its page", "Lewkowycz et al. 2022", (), row_readers.read_minerva,
            HubDataset("math-ai/minervamath", revision="ee46ddc498933b1977577953250ca5c66be64f96"), ("test",),
            policy=replace(DEFAULT_POLICY, rounding=0.01),
        ),
        MathDatasetSpec(
            "cmath", "CC BY 4.0", "Wei et al. 2023", (), row_readers.read_cmath,
            HubDataset("weitianwen/cmath"), ("validation", "test"),
        ),
        MathDatasetSpec(
            "deepscaler", "MIT", "agentica-org, 2025", ("problem", "answer"), row_readers.read_deepscaler,
            HubDataset(
                "agentica-org/DeepScaleR-Preview-Dataset", revision="b6ae8c60f5c1f2b594e2140b91c49c9ad0949e29",
                split_names={"test": "train"},
            ), split_of=held_out_split,
        ),
        MathDatasetSpec(
            "numina", "Apache-2.0", "AI-MO/NuminaMath-1.5", ("problem", "solution"), row_readers.read_numina,
            HubDataset(
                "AI-MO/NuminaMath-1.5", revision="1b05109f9e5c1ad06c0663519502416c30b300f8",
                split_names={"test": "train"},
            ), split_of=held_out_split,
        ),
    )
}  # fmt: skip
NAMES = (*SPECS, "custom")
_COLUMN_ROLES = ("prompt", "answer", "level", "subject")


def find_spec(name: str, columns: Mapping[str, str] | None = None, *, folder: bool = False) -> MathDatasetSpec:
    """Return the spec of a known data set, or of your own rows.

    Args:
        name: One of ``NAMES``.
        columns: For "custom": see ``custom_spec``.
        folder: For "custom": whether the rows are in a folder, whose files are the splits.

    Raises:
        TypeError: ``name`` is not a string.
        DataError: There is no data set of that name.
        ValueError: ``columns`` has an unknown role, or belongs to another data set than "custom".
    """
    if name == "custom":
        spec = custom_spec(columns or {})
        return replace(spec, splits=("train", "test"), split_of=None) if folder else spec
    spec = spec_named(name, SPECS, also=("custom",))
    if columns is not None:
        raise ValueError(f"columns={columns!r}: only dataset='custom' takes column names, got dataset={name!r}")
    return spec


def custom_spec(columns: Mapping[str, str]) -> MathDatasetSpec:
    """Return the spec of rows of your own.

    In a folder, train.* and test.* are the splits. One file is split by the SHA-256 of the prompt, a fifth of it into
    "test"; split="all" reads the whole file.

    Args:
        columns: Column name of each role: "prompt" and "answer" (by default the columns of these names), and optionally
            "level" and "subject".

    Raises:
        ValueError: ``columns`` has an unknown role.
    """
    unknown = sorted(set(columns) - set(_COLUMN_ROLES))
    if unknown:
        raise ValueError(f"columns={dict(columns)!r}: unknown roles {unknown}, expected some of {_COLUMN_ROLES}")
    names = {"prompt": "prompt", "answer": "answer", **columns}

    def read(row: Row) -> MathItem:
        notes: dict[str, Any] = {role: row[names[role]] for role in ("level", "subject") if role in names}
        if "level" in notes:
            notes |= level_note(notes["level"])
        return usable_item(row[names["prompt"]], str(row[names["answer"]]), notes)

    def split_of(row: Row) -> str:
        return hashed_split(str(row[names["prompt"]]))

    return MathDatasetSpec(
        "custom",
        licence="yours",
        source="your file",
        columns=tuple(names.values()),
        read=read,
        hub=None,
        splits=("train", "test", "all"),
        split_of=split_of,
        variant=repr(sorted(names.items())),
    )
