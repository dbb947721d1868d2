"""Golds of the real data sets: each is graded as correct, and a changed one as wrong; and the check of golds."""

import importlib.util
from pathlib import Path

import pytest

from marft_envs.mathematics import grade
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.grader.gold_check import check_gold, why_unusable
from marft_envs.task import Problem
from marft_envs.verdict import Outcome

SETS = [
    ("gsm8k", "train"), ("gsm8k", "test"), ("math", "train"), ("math", "test"), ("math500", "test"),
    ("aime2024", "test"), ("amc23", "test"), ("olympiadbench", "test"), ("svamp", "train"),
    ("svamp", "test"), ("cmath", "test"),
]  # fmt: skip


def load_perturb():
    spec = importlib.util.spec_from_file_location("perturb", Path(__file__).with_name("perturb.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.perturb


perturb = load_perturb()


def check_golds(data_folder, name, split, step):
    """Grade every ``step``-th gold and its perturbation."""
    if name == "gsm8k":
        pytest.importorskip("pyarrow", reason="gsm8k is parquet: pip install '.[data]'")
    task = load(name, path=data_folder, split=split)
    for index in range(0, task.size, step):
        problem = task.problem(index)
        gold, other = problem.gold, perturb(problem.gold)
        assert task.grade(rf"Therefore \boxed{{{gold}}}.", problem).outcome is Outcome.CORRECT, problem
        assert task.grade(rf"Therefore \boxed{{{other}}}.", problem).outcome is Outcome.WRONG, (problem, other)


@pytest.mark.parametrize(("name", "split"), SETS)
def test_every_25th_gold(data_folder, name, split):
    check_golds(data_folder, name, split, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split"), SETS)
def test_every_gold(data_folder, name, split):
    check_golds(data_folder, name, split, 1)


@pytest.mark.slow
def test_reference_solutions_of_math_are_correct(data_folder):
    """A reference solution is a whole reply with a correct answer."""
    from marft_envs.datasets.files import read_rows

    task = load("math", path=data_folder, split="test")
    rows = read_rows(data_folder / "math" / "test.jsonl.gz")
    problems = [task.problem(i) for i in range(task.size)]
    assert [p.notes["row"] for p in problems if grade(rows[p.notes["row"]]["solution"], p.gold).score != 1.0] == []


UNUSABLE = [  # gold, part of the reason
    ("", "is empty"),
    ("  \n", "is empty"),
    (5, "of type int"),
    (None, "of type NoneType"),
    (r"t(0,4]", "cannot read"),
    (r"\frac{1}{7}\triangle ABC", "cannot read"),
    (r"\input{/etc/passwd}", "cannot read"),
    (r"\sum_{k=1}^{10^{9}} k", "too costly"),
    ("{" * 5 + "1", "not equal to itself"),
    ("1/0", "has no value"),
    ("9^{9^{9^{9}}}", "has no value"),
    ("9" * 5_000, "longer than"),
]


@pytest.mark.parametrize(("gold", "reason"), UNUSABLE)
def test_unusable_golds(gold, reason):
    assert reason in why_unusable(gold)


@pytest.mark.parametrize(
    "gold",
    ["42", r"\frac12", r"\text{east}", "C", "3:30", "2:3", "1010_2", "(1,2]", r"x \ne 0", r"\emptyset", r"1 \pm \sqrt2",
     r"\begin{pmatrix}1\\2\end{pmatrix}", "y=2x+1", r"\sum_{k=1}^{n} k", r"\frac{1}{2004!}", r"\infty", "3+4i",
     r"5\text{ cm}"],
)  # fmt: skip
def test_usable_golds(gold):
    assert why_unusable(gold) == ""


def test_check_gold_accepts_tasks_problems_rows_and_strings():
    from marft_envs.mathematics.problems.arithmetic import Arithmetic

    assert check_gold(Arithmetic(), limit=20) == []
    with pytest.raises(ValueError, match="limit=None: expected an integer, because the task arithmetic has no size"):
        check_gold(Arithmetic())
    golds = ["1", "1/0", Problem(0, "p", "2"), Problem(1, "p", ""), {"gold": "3"}, {"answer": None}]
    assert [(bad.index, bad.reason) for bad in check_gold(golds)] == [
        (1, "the gold answer has no value"),
        (3, "the gold answer is empty"),
        (5, "the gold answer is of type NoneType, expected a string"),
    ]
    assert check_gold(["1/0"] * 5, limit=2)[-1].index == 1
