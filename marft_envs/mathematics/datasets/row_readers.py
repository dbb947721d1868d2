"""Conversion of rows of published mathematics data sets: one function per data set.

A row whose gold answer cannot be graded raises ``Unusable`` with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marft_envs.datasets.dataset_spec import Unusable
from marft_envs.datasets.files import Row
from marft_envs.mathematics.grader.answer_extraction import last_box
from marft_envs.mathematics.grader.gold_check import why_unusable
from marft_envs.mathematics.grader.number import parse_number


@dataclass(frozen=True)
class MathItem:
    """A problem before it has an index.

    Attributes:
        prompt: The problem statement.
        gold: The reference answer.
        notes: Facts for people and filters: level (an integer where there is one), subject, id.
    """

    prompt: str
    gold: str
    notes: Mapping[str, Any] = field(default_factory=dict)


def usable_item(prompt: Any, gold: str, notes: Mapping[str, Any] | None = None) -> MathItem:
    """Return an item.

    Args:
        prompt: The problem statement; white space around it is removed.
        gold: The reference answer.
        notes: Facts about the problem.

    Raises:
        Unusable: The problem is empty, or its gold answer cannot be graded.
    """
    text, gold = str(prompt).strip(), gold.strip()
    if not text:
        raise Unusable("the problem is empty")
    if reason := why_unusable(gold):
        raise Unusable(reason)
    return MathItem(text, gold, notes or {})


def read_gsm8k(row: Row) -> MathItem:
    """Read the gold after ``####``, without thousands separators."""
    _, mark, gold = str(row["answer"]).rpartition("####")
    if not mark or not gold.strip():
        raise Unusable("no #### in the answer")
    return usable_item(row["question"], gold.replace(",", ""))


def read_svamp(row: Row) -> MathItem:
    """Join body and question; the gold, a float in the file, is 145 for 145.0."""
    number = parse_number(str(row["Answer"]))
    if number is None:
        raise Unusable("the answer is not a number")
    prompt = f"{str(row['Body']).strip()} {str(row['Question']).strip()}"
    return usable_item(prompt, str(number.value), {"id": str(row["ID"]), "subject": str(row.get("Type", ""))})


def read_math(row: Row) -> MathItem:
    r"""Read the gold from the last \boxed of the solution."""
    gold = last_box(str(row["solution"]))
    if not gold:
        raise Unusable("no answer in a balanced \\boxed")
    return usable_item(row["problem"], gold, level_note(row["level"]) | {"subject": str(row["type"])})


def read_math500(row: Row) -> MathItem:
    """Read a problem of MATH-500, whose answers are in a column of their own."""
    notes = level_note(row["level"]) | {"subject": str(row["subject"]), "id": str(row.get("unique_id", ""))}
    return usable_item(row["problem"], str(row["answer"]), notes)


def read_contest(row: Row) -> MathItem:
    """Read a problem of AIME or AMC, whose answer is an integer, in some files written as a float."""
    prompt = row.get("problem") or row.get("question") or ""
    return usable_item(prompt, _plain_number(row["answer"]), {"id": str(row.get("id", ""))})


def read_olympiadbench(row: Row) -> MathItem:
    """Join the list of final answers, without their $ signs. Rows with an accepted error are left out."""
    golds = row["final_answer"] if isinstance(row["final_answer"], list) else [row["final_answer"]]
    if row.get("error"):
        raise Unusable("the answer is an approximation with a tolerance of its own")
    context = f"{row['context'].strip()}\n\n" if row.get("context") else ""
    notes = {"id": str(row.get("id", "")), "subject": str(row.get("subfield", "")), "kind": str(row.get("answer_type"))}
    gold = ", ".join(str(gold).replace("$", "") for gold in golds)
    return usable_item(context + str(row["question"]), gold, notes)


def read_cmath(row: Row) -> MathItem:
    """Read a problem of Chinese primary schools; the level is the grade, 1 to 6."""
    prompt, gold = row.get("problem") or row.get("question"), row.get("final_answer")
    gold = row.get("golden") if gold in (None, "") else gold
    if prompt is None or gold is None:
        raise Unusable(f"neither problem and final_answer nor question and golden; columns found: {', '.join(row)}")
    notes = level_note(row.get("grade")) | {"steps": row.get("reasoning_steps") or row.get("reasoning_step")}
    return usable_item(prompt, str(gold), notes)


def read_minerva(row: Row) -> MathItem:
    """Read the gold from the answer, or from the last box of the solution where there is no answer."""
    return usable_item(row.get("problem") or row.get("question") or "", _answer_or_box(row))


def read_deepscaler(row: Row) -> MathItem:
    """Read a problem whose gold is its answer column."""
    return usable_item(row["problem"], str(row["answer"]))


def read_numina(row: Row) -> MathItem:
    """Read a problem of NuminaMath. Proofs and rows without an answer are left out."""
    gold = _answer_or_box(row)
    if gold.strip().lower() in ("proof", "notfound", "not found", "none"):
        raise Unusable("no final answer: a proof, or none was found")
    return usable_item(row["problem"], gold, {"subject": str(row.get("problem_type") or row.get("source") or "")})


def level_note(value: Any) -> dict[str, Any]:
    """Return {"level": 3} for "Level 3" or 3, and {} for a value without digits."""
    digits = re.search(r"\d+", str(value))
    return {"level": int(digits.group())} if digits else {}


def _answer_or_box(row: Row) -> str:
    answer = row.get("answer")
    gold = str(answer) if answer not in (None, "") else last_box(str(row.get("solution") or ""))
    if not gold:
        raise Unusable("neither an answer nor a balanced \\boxed in the solution")
    return gold


def _plain_number(value: Any) -> str:
    """Return 27 for 27.0, and 33 for 033."""
    number = parse_number(str(value))
    return str(value) if number is None or number.unit or number.percent else str(number.value)
