"""Rows in the columns of each published data set become problems with the right golds."""

import pytest

from marft_envs.mathematics import datasets
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.datasets.specs import SPECS
from marft_envs.verdict import Outcome
from tests.marft_envs.datasets.gsm8k_rows import write_rows


def test_svamp_rows(tmp_path):
    rows = [
        {"ID": f"chal-{i}", "Body": "Ann has 8 pens. ", "Question": "How many?", "Answer": answer, "Type": "Sum"}
        for i, answer in enumerate([8.0, "145.0", 14.5, -2.0, 7] * 4)
    ]
    path = write_rows(tmp_path / "all.jsonl", rows)
    parts = {split: load("svamp", path=path, split=split) for split in ("train", "test")}
    golds = {s: [t.problem(i).gold for i in range(t.size)] for s, t in parts.items()}
    assert set(golds["train"]) <= {"8", "145", "29/2", "-2", "7"}
    ids = [t.problem(i).notes["id"] for t in parts.values() for i in range(t.size)]
    assert sorted(ids) == sorted(row["ID"] for row in rows)  # each row in one split
    assert parts["train"].problem(0).prompt == "Ann has 8 pens. How many?"


def test_math_lists_rows_without_a_usable_gold(tmp_path, caplog):
    solutions = [
        r"so $\boxed{\frac{3}{4}}$",
        r"$\boxed{x+1}$",
        r"\boxed{}",
        r"\boxed 9$.",
        r"no \boxed{1, then \boxed{-2}",
        r"\boxed{\frac{1}{7}\triangle ABC}",
    ]
    rows = [{"problem": "p", "solution": s, "level": "Level 1", "type": "Algebra"} for s in solutions]
    with caplog.at_level("WARNING"):
        task = load("math", path=write_rows(tmp_path / "test.jsonl", rows))
    assert [task.problem(i).gold for i in range(task.size)] == [r"\frac{3}{4}", "x+1", "9", "-2"]
    assert task.excluded == {"the grader cannot read the gold answer": 1, r"no answer in a balanced \boxed": 1}
    assert task.unusable == ((2, r"no answer in a balanced \boxed"), (5, "the grader cannot read the gold answer"))
    assert dict(task.problem(2).notes) == {"level": 1, "subject": "Algebra", "row": 3, "split": "test"}
    assert task.grade(r"\boxed{1+x}", task.problem(1)).outcome is Outcome.CORRECT
    assert "2 of 6 rows left out" in caplog.text


HUB_ONLY = {  # name: (rows in the published columns, golds, number of unusable rows)
    "aime2025": (
        [{"problem": "P", "answer": "070", "id": "1"}, {"problem": "Q", "answer": 588, "id": "2"}],
        ["70", "588"], 0,
    ),
    "deepscaler": (
        [{"problem": "P", "answer": "-\\frac{2}{3}", "solution": ""}, {"problem": "Q", "answer": "0", "solution": "s"}],
        [r"-\frac{2}{3}", "0"], 0,
    ),
    "minerva_math": (
        [{"question": "Power?", "answer": "4.5e33"}, {"problem": "Angle?", "solution": r"\boxed{\arcsin{0.3}}."}],
        ["4.5e33", r"\arcsin{0.3}"], 0,
    ),
    "numina": (
        [
            {"problem": "P", "solution": r"so \boxed{3}", "answer": None, "source": "olympiads"},
            {"problem": "Q", "solution": "...", "answer": "proof", "problem_type": "Algebra"},
            {"problem": "R", "solution": "...", "answer": "x=1, y=2", "problem_type": "Algebra"},
            {"problem": "S", "solution": "nothing", "answer": "", "problem_type": "Algebra"},
        ],
        ["3", "x=1, y=2"], 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HUB_ONLY)
def test_rows_of_data_sets_that_are_only_on_the_hub(tmp_path, name):
    rows, golds, unusable = HUB_ONLY[name]
    split = SPECS[name].splits[0]
    task = load(name, path=write_rows(tmp_path / f"{split}.jsonl", rows), split=split)
    assert [task.problem(i).gold for i in range(task.size)] == golds
    assert len(task.unusable) == unusable
    for index, gold in enumerate(golds):
        assert task.grade(rf"\boxed{{{gold}}}", task.problem(index)).outcome is Outcome.CORRECT
        assert task.grade(r"\boxed{12345}", task.problem(index)).outcome is Outcome.WRONG


def test_minerva_accepts_a_relative_error_of_one_per_cent(tmp_path):
    task = load("minerva_math", path=write_rows(tmp_path / "test.jsonl", [{"question": "q", "answer": "4.5e33"}]))
    replies = [r"\boxed{4.46 \times 10^{33}}", r"\boxed{4.4 \times 10^{33}}"]
    assert [task.grade(reply, task.problem(0)).score for reply in replies] == [1.0, 0.0]


def test_olympiadbench_rows(tmp_path):
    rows = [
        {
            "question": "Q",
            "context": None,
            "final_answer": ["$(6,3),(9,3)$"],
            "error": None,
            "answer_type": "Tuple",
            "id": 1,
        },
        {
            "question": "Q",
            "context": "C",
            "final_answer": ["$\\frac{1}{2}$", "3"],
            "error": None,
            "subfield": "Algebra",
        },
        {"question": "Q", "context": None, "final_answer": ["3.1"], "error": "1e-1"},
    ]
    task = load("olympiadbench", path=write_rows(tmp_path / "test.jsonl.gz", rows))
    assert [task.problem(i).gold for i in range(task.size)] == ["(6,3),(9,3)", r"\frac{1}{2}, 3"]
    assert task.problem(1).prompt == "C\n\nQ"
    assert task.grade(r"\boxed{(9,3), (6,3)}", task.problem(0)).outcome is Outcome.CORRECT
    assert task.excluded == {"the answer is an approximation with a tolerance of its own": 1}


def test_zero_is_a_gold():
    row = {"problem": "3 - 3 = ?", "question": "3 - 3 = ?", "final_answer": 0, "golden": None}
    assert SPECS["cmath"].read(row).gold == SPECS["cmath"].read(row | {"final_answer": None, "golden": 0}).gold == "0"


def test_every_name_is_in_the_documentation():
    assert all(f"| {name} |" in datasets.__doc__ for name in datasets.NAMES)


def test_data_that_is_published_for_training_alone_has_a_held_out_split(tmp_path):
    path = write_rows(tmp_path / "train.jsonl", [{"problem": f"P{i}", "answer": str(i)} for i in range(400)])
    golds = {
        split: {task.problem(i).gold for i in range(task.size)}
        for split in ("train", "test")
        if (task := load("deepscaler", path=path, split=split))
    }
    assert golds["train"] | golds["test"] == {str(i) for i in range(400)} and not golds["train"] & golds["test"]
    assert len(golds["test"]) == 11  # those whose SHA-256 is a multiple of 40; 10 are expected
