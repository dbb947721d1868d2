"""The data sets that are known by name: where their rows are, and how a row becomes a problem.

To add one: write a function from a row to an ``Item``, and an entry of ``SPECS``.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marft_envs.datasets.files import DataError, Row
from marft_envs.mathematics import is_number
from marft_envs.mathematics.answer import last_box
from marft_envs.mathematics.number import parse_number


@dataclass(frozen=True)
class Item:
    """One usable row. notes: level, subject and the like."""

    prompt: str
    gold: str
    notes: Mapping[str, Any] = field(default_factory=dict)


class Unusable(ValueError):
    """Why a row cannot be graded yet; such rows are left out and counted."""


@dataclass(frozen=True)
class HubSource:
    """A data set of the hub. configs: read one after another. revision: a commit, None for the newest."""

    repository: str
    configs: tuple[str, ...]
    revision: str | None


@dataclass(frozen=True)
class DatasetSpec:
    """name, licence, source: as in the docs. columns: what a row must have. read: row to item.

    splits: the parts, as files and hub name them. member: the split of a row, for a data set that is split here: then
    all parts that are found are read as one.
    """

    name: str
    licence: str
    source: str
    columns: tuple[str, ...]
    read: Callable[[Row], Item]
    hub: HubSource
    splits: tuple[str, ...] = ("train", "test")
    member: Callable[[Row], str] | None = None


def _read_gsm8k(row: Row) -> Item:
    """The gold is what follows ``####``, without thousands separators."""
    _, mark, gold = str(row["answer"]).rpartition("####")
    if not mark or not gold.strip():
        raise Unusable("no #### in the answer")
    return _numeric(str(row["question"]), gold.strip().replace(",", ""))


def _read_svamp(row: Row) -> Item:
    """The question is body and question; the gold, a float in the file, is 145 for 145.0."""
    number = parse_number(str(row["Answer"]))
    if number is None:
        raise Unusable("the answer is not a number")
    gold = str(number.value)
    prompt = f"{str(row['Body']).strip()} {str(row['Question']).strip()}"
    return _numeric(prompt, gold, {"id": str(row["ID"]), "type": str(row.get("Type", ""))})


def svamp_split(row: Row) -> str:
    """The split for good: SVAMP comes as one file. SHA-256 of the ID, a multiple of 5 for "test": 211 of 1000 rows."""
    return "test" if int(hashlib.sha256(str(row["ID"]).encode()).hexdigest(), 16) % 5 == 0 else "train"


def _read_math(row: Row) -> Item:
    r"""The gold is the last \boxed of the solution."""
    gold = last_box(str(row["solution"]))
    if not gold:
        raise Unusable("no answer in a balanced \\boxed")
    return _numeric(str(row["problem"]), gold, {"level": str(row["level"]), "type": str(row["type"])})


def _numeric(prompt: str, gold: str, notes: Mapping[str, Any] | None = None) -> Item:
    if not prompt.strip():
        raise Unusable("the problem is empty")
    if not is_number(gold):
        raise Unusable("the gold answer is not a number")
    return Item(prompt.strip(), gold, notes or {})


_MATH_SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra",
    "precalculus",
)  # fmt: skip

SPECS: dict[str, DatasetSpec] = {
    spec.name: spec
    for spec in (
        DatasetSpec(
            name="gsm8k",
            licence="MIT",
            source="openai/gsm8k",
            columns=("question", "answer"),
            read=_read_gsm8k,
            hub=HubSource("openai/gsm8k", ("main",), "740312add88f781978c0658806c59bc2815b9866"),
        ),
        DatasetSpec(
            name="svamp",
            licence="MIT",
            source="Patel et al. 2021, SVAMP",
            columns=("ID", "Body", "Question", "Answer"),
            read=_read_svamp,
            member=svamp_split,
            hub=HubSource("ChilleD/SVAMP", ("default",), "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef"),
        ),
        DatasetSpec(
            name="math",
            licence="MIT",
            source="Hendrycks et al. 2021, MATH",
            columns=("problem", "solution", "level", "type"),
            read=_read_math,
            hub=HubSource("EleutherAI/hendrycks_math", _MATH_SUBJECTS, "21a5633873b6a120296cce3e2df9d5550074f4a3"),
        ),
    )
}
NAMES = tuple(SPECS)


def find_spec(name: str) -> DatasetSpec:
    """The spec of a known data set; DataError with the nearest name otherwise."""
    if not isinstance(name, str):
        raise TypeError(f"dataset={name!r}: got {type(name).__name__}, expected str")
    if name in SPECS:
        return SPECS[name]
    near = difflib.get_close_matches(name.lower(), NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise DataError(f"dataset={name!r}: unknown, expected one of {', '.join(NAMES)}{hint}")
