"""The data sets that are known by name: where their rows are, and how a row becomes a problem.

To add one: write a function from a row to an ``Item``, and an entry of ``SPECS``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from marft_envs.datasets.files import DataError, Row
from marft_envs.datasets.specs import DatasetSpec, HubSource, Item, Unusable, hashed_split
from marft_envs.mathematics.grader.answer_extraction import last_box
from marft_envs.mathematics.grader.gold_check import why_unusable
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.number import parse_number


@dataclass(frozen=True)
class MathDatasetSpec(DatasetSpec):
    """A data set of mathematics problems. policy: how its golds are compared."""

    policy: GradingPolicy = DEFAULT_POLICY


def item(prompt: Any, gold: str, notes: Mapping[str, Any] | None = None) -> Item:
    """An item with a prompt and a gold that can be graded; Unusable otherwise."""
    text, gold = str(prompt).strip(), gold.strip()
    if not text:
        raise Unusable("the problem is empty")
    if reason := why_unusable(gold):
        raise Unusable(reason)
    return Item(text, gold, notes or {})


def _read_gsm8k(row: Row) -> Item:
    """The gold is what follows ``####``, without thousands separators."""
    _, mark, gold = str(row["answer"]).rpartition("####")
    if not mark or not gold.strip():
        raise Unusable("no #### in the answer")
    return item(row["question"], gold.replace(",", ""))


def _read_svamp(row: Row) -> Item:
    """The question is body and question; the gold, a float in the file, is 145 for 145.0."""
    number = parse_number(str(row["Answer"]))
    if number is None:
        raise Unusable("the answer is not a number")
    prompt = f"{str(row['Body']).strip()} {str(row['Question']).strip()}"
    return item(prompt, str(number.value), {"id": str(row["ID"]), "subject": str(row.get("Type", ""))})


def svamp_split(row: Row) -> str:
    """SVAMP comes as one file: 211 of 1000 rows are "test"."""
    return hashed_split(str(row["ID"]))


def _read_math(row: Row) -> Item:
    r"""The gold is the last \boxed of the solution."""
    gold = last_box(str(row["solution"]))
    if not gold:
        raise Unusable("no answer in a balanced \\boxed")
    return item(row["problem"], gold, _level(row["level"]) | {"subject": str(row["type"])})


def _read_math500(row: Row) -> Item:
    notes = _level(row["level"]) | {"subject": str(row["subject"]), "id": str(row.get("unique_id", ""))}
    return item(row["problem"], str(row["answer"]), notes)


def _read_contest(row: Row) -> Item:
    """AIME, AMC: a whole number, a float in some files."""
    prompt = row.get("problem") or row.get("question") or ""
    return item(prompt, _number_text(row["answer"]), {"id": str(row.get("id", ""))})


def _read_olympiadbench(row: Row) -> Item:
    """The gold is the list of final answers, each with its $; an accepted error or a missing unit is left out."""
    golds = row["final_answer"] if isinstance(row["final_answer"], list) else [row["final_answer"]]
    if row.get("error"):
        raise Unusable("the answer is an approximation with a tolerance of its own")
    context = f"{row['context'].strip()}\n\n" if row.get("context") else ""
    notes = {"id": str(row.get("id", "")), "subject": str(row.get("subfield", "")), "kind": str(row.get("answer_type"))}
    return item(context + str(row["question"]), ", ".join(str(gold).replace("$", "") for gold in golds), notes)


def _read_cmath(row: Row) -> Item:
    """Chinese primary school; the level is the grade, 1 to 6."""
    prompt, gold = row.get("problem") or row.get("question"), row.get("final_answer")
    gold = row.get("golden") if gold in (None, "") else gold
    if prompt is None or gold is None:
        raise Unusable(f"neither problem and final_answer nor question and golden; columns found: {', '.join(row)}")
    notes = _level(row.get("grade")) | {"steps": row.get("reasoning_steps") or row.get("reasoning_step")}
    return item(prompt, str(gold), notes)


def _read_minerva(row: Row) -> Item:
    """The answer column where there is one, else the last box of the solution."""
    return item(row.get("problem") or row.get("question") or "", _answer_or_box(row))


def _read_deepscaler(row: Row) -> Item:
    return item(row["problem"], str(row["answer"]))


def _read_numina(row: Row) -> Item:
    """NuminaMath: proofs and rows without an answer are left out."""
    gold = _answer_or_box(row)
    if gold.strip().lower() in ("proof", "notfound", "not found", "none"):
        raise Unusable("no final answer: a proof, or none was found")
    return item(row["problem"], gold, {"subject": str(row.get("problem_type") or row.get("source") or "")})


def _answer_or_box(row: Row) -> str:
    answer = row.get("answer")
    gold = str(answer) if answer not in (None, "") else last_box(str(row.get("solution") or ""))
    if not gold:
        raise Unusable("neither an answer nor a balanced \\boxed in the solution")
    return gold


def _number_text(value: Any) -> str:
    """27.0 as 27, 033 as 33."""
    number = parse_number(str(value))
    return str(value) if number is None or number.unit or number.percent else str(number.value)


def _level(value: Any) -> dict[str, Any]:
    digits = re.search(r"\d+", str(value))
    return {"level": int(digits.group())} if digits else {}


_MATH_SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra",
    "precalculus",
)  # fmt: skip
_CONTEST = ("train", "test")

SPECS: dict[str, MathDatasetSpec] = {
    spec.name: spec
    for spec in (
        MathDatasetSpec(
            "gsm8k", "MIT", "openai/gsm8k", ("question", "answer"), _read_gsm8k,
            HubSource("openai/gsm8k", ("main",), "740312add88f781978c0658806c59bc2815b9866"),
        ),
        MathDatasetSpec(
            "svamp", "MIT", "Patel et al. 2021", ("ID", "Body", "Question", "Answer"), _read_svamp,
            HubSource("ChilleD/SVAMP", ("default",), "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef"), member=svamp_split,
        ),
        MathDatasetSpec(
            "math", "MIT", "Hendrycks et al. 2021", ("problem", "solution", "level", "type"), _read_math,
            HubSource("EleutherAI/hendrycks_math", _MATH_SUBJECTS, "21a5633873b6a120296cce3e2df9d5550074f4a3"),
        ),
        MathDatasetSpec(
            "math500", "MIT", "Lightman et al. 2023", ("problem", "answer", "level", "subject"), _read_math500,
            HubSource("HuggingFaceH4/MATH-500", revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"), ("test",),
        ),
        MathDatasetSpec(
            "aime2024", "public problems", "AIME 2024", ("problem", "answer"), _read_contest,
            HubSource(
                "HuggingFaceH4/aime_2024", ("default",), "2fe88a2f1091d5048c0f36abc874fb997b3dd99a", {"test": "train"}
            ), ("test",),
        ),
        MathDatasetSpec(
            "aime2025", "public problems", "AIME 2025", ("problem", "answer"), _read_contest,
            HubSource("math-ai/aime25", revision="563bb8404243c5f09de6ec262f2db674fe5bce9b"), ("test",),
        ),
        MathDatasetSpec(
            "amc23", "public problems", "AMC 12, 2023", ("question", "answer"), _read_contest,
            HubSource("math-ai/amc23", revision="80815d37005feb82cd7f8fbc6901d5d3eff43057"), ("test",),
        ),
        MathDatasetSpec(
            "olympiadbench", "Apache-2.0", "He et al. 2024", ("question", "final_answer"), _read_olympiadbench,
            HubSource(
                "Hothan/OlympiadBench", ("OE_TO_maths_en_COMP",), "91184b52131e7fc9455fef848035173aea8cc01a",
                {"test": "train"},
            ), ("test",),
        ),
        MathDatasetSpec(
            "minerva_math", "see its page", "Lewkowycz et al. 2022", (), _read_minerva,
            HubSource("math-ai/minervamath", revision="ee46ddc498933b1977577953250ca5c66be64f96"), ("test",),
            policy=replace(DEFAULT_POLICY, rounding=0.01),
        ),
        MathDatasetSpec(
            "cmath", "CC BY 4.0", "Wei et al. 2023", (), _read_cmath,
            HubSource("weitianwen/cmath"), ("validation", "test"),
        ),
        MathDatasetSpec(
            "deepscaler", "MIT", "agentica-org, 2025", ("problem", "answer"), _read_deepscaler,
            HubSource("agentica-org/DeepScaleR-Preview-Dataset", revision="b6ae8c60f5c1f2b594e2140b91c49c9ad0949e29"),
            ("train",),
        ),
        MathDatasetSpec(
            "numina", "Apache-2.0", "AI-MO/NuminaMath-1.5", ("problem", "solution"), _read_numina,
            HubSource("AI-MO/NuminaMath-1.5", revision="1b05109f9e5c1ad06c0663519502416c30b300f8"), ("train",),
        ),
    )
}  # fmt: skip
NAMES = (*SPECS, "custom")
_COLUMN_ROLES = ("prompt", "answer", "level", "subject")


def find_spec(name: str, columns: Mapping[str, str] | None = None, *, folder: bool = False) -> MathDatasetSpec:
    """The spec of a known data set, or of your own rows; DataError with the nearest name otherwise.

    folder: whether your own rows are a folder, whose files are the splits.
    """
    if not isinstance(name, str):
        raise TypeError(f"dataset={name!r}: got {type(name).__name__}, expected str")
    if name == "custom":
        spec = custom_spec(columns or {})
        return replace(spec, splits=("train", "test"), member=None) if folder else spec
    if columns is not None:
        raise ValueError(f"columns={columns!r}: only name='custom' takes a column map, got name={name!r}")
    if name in SPECS:
        return SPECS[name]
    near = difflib.get_close_matches(name.lower(), NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise DataError(f"dataset={name!r}: unknown, expected one of {', '.join(NAMES)}{hint}")


def custom_spec(columns: Mapping[str, str]) -> MathDatasetSpec:
    """Your own rows. columns: role -> the column's name; roles: prompt, answer, and if you like level and subject.

    In a folder train.* and test.* are the splits; one file is split here by the SHA-256 of the prompt, "test" getting a
    fifth, and split="all" reads all of it.
    """
    unknown = sorted(set(columns) - set(_COLUMN_ROLES))
    if unknown:
        raise ValueError(f"columns={dict(columns)!r}: unknown roles {unknown}, expected some of {_COLUMN_ROLES}")
    names = {"prompt": "prompt", "answer": "answer", **columns}

    def read(row: Row) -> Item:
        notes: dict[str, Any] = {role: row[names[role]] for role in ("level", "subject") if role in names}
        if "level" in notes:
            notes |= _level(notes["level"])
        return item(row[names["prompt"]], str(row[names["answer"]]), notes)

    def member(row: Row) -> str:
        return hashed_split(str(row[names["prompt"]]))

    return MathDatasetSpec(
        "custom",
        "yours",
        "your file",
        tuple(names.values()),
        read,
        None,
        ("train", "test", "all"),
        member,
        variant=repr(sorted(names.items())),
    )
