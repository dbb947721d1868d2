"""Tasks from rows, the same for mathematics and programs: order, limits, unusable rows, errors of arguments."""

import json

import pytest

from marft_envs.coding import datasets as programs
from marft_envs.datasets.files import DataError
from marft_envs.mathematics import datasets as mathematics
from marft_envs.mathematics.datasets import load
from marft_envs.verdict import Outcome
from tests.marft_envs.datasets.gsm8k_rows import GOLDS, ROWS, write_rows

pytestmark = pytest.mark.usefixtures("no_data_folder")


def golds(task):
    return [task.problem(index).gold for index in range(task.size)]


def test_a_task_reports_its_rows_and_grades_them(tmp_path):
    task = load("gsm8k", path=write_rows(tmp_path / "a.jsonl", ROWS))
    assert (task.name, task.split, task.size, task.rows, task.excluded) == ("gsm8k", "test", 6, 6, {})
    problem = task.problem(3)
    assert (problem.prompt, problem.gold) == ("What is 1000 + 1?", "1001")  # 1,001 in the file
    assert dict(problem.notes) == {"row": 3, "split": "test"}
    assert task.grade(r"\boxed{1001}", problem).outcome is Outcome.CORRECT
    assert task.grade("1001.", problem).outcome is Outcome.CORRECT
    assert task.grade(r"\boxed{1000}", problem).outcome is Outcome.WRONG
    assert str(tmp_path / "a.jsonl") in task.origin and "sha256" in task.origin


def test_limit_and_seed(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", ROWS)
    assert golds(load("gsm8k", path=path, limit=4)) == GOLDS[:4]
    assert golds(load("gsm8k", path=path, limit=40)) == GOLDS
    shuffled = [golds(load("gsm8k", path=path, seed=seed)) for seed in (1, 1, 2)]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[0], key=int) == GOLDS
    assert golds(load("gsm8k", path=path, seed=1, limit=2)) == shuffled[0][:2]


def test_rows_that_are_left_out_are_counted_listed_and_logged(tmp_path, caplog):
    answers = ["#### 3", "none", "#### ", "#### "]
    rows = [{"question": "Q", "answer": answer} for answer in answers]
    task = load("gsm8k", path=write_rows(tmp_path / "a.jsonl", rows))
    assert (task.size, task.rows, task.excluded) == (1, 4, {"no #### in the answer": 3})
    assert task.unusable == tuple((row, "no #### in the answer") for row in (1, 2, 3))
    assert caplog.messages == ["gsm8k test: 3 of 4 rows left out: 3 no #### in the answer"]


def test_no_usable_row_is_an_error_with_the_reasons(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", [{"question": "q", "answer": "five"}])
    with pytest.raises(DataError, match="no usable row among 1: 1 no #### in the answer"):
        load("gsm8k", path=path)


def test_a_wrong_index_is_named(tmp_path):
    task = load("gsm8k", path=write_rows(tmp_path / "a.jsonl", ROWS))
    for index in (-1, 6):
        with pytest.raises(IndexError, match=f"index={index} of gsm8k: expected 0 to 5"):
            task.problem(index)
    with pytest.raises(TypeError, match="expected int"):
        task.problem(1.0)


@pytest.mark.parametrize(
    ("subject", "name", "misspelt", "splits"),
    [(mathematics, "gsm8k", "gsm8", "train, test"), (programs, "mbpp", "mbp", "train, test, validation, prompt")],
)
def test_wrong_arguments_are_named_the_same_way_for_every_subject(subject, name, misspelt, splits):
    def message(kind, dataset=name, **arguments):
        with pytest.raises(kind) as error:
            subject.load(dataset, **arguments)
        return str(error.value)

    assert f"dataset='{misspelt}': unknown, expected one of {', '.join(subject.NAMES)}" in message(DataError, misspelt)
    assert f"(did you mean '{name}'?)" in message(DataError, misspelt)
    assert "got int, expected str" in message(TypeError, 5)
    assert f"split='dev': expected one of {splits} (the splits of {name})" in message(ValueError, split="dev")
    assert "limit=0: expected at least 1" in message(ValueError, limit=0)
    assert "limit='3': got str, expected int" in message(TypeError, limit="3")
    assert "seed=-1: expected at least 0" in message(ValueError, seed=-1)
    assert "revision='': expected a commit of " in message(ValueError, revision="")


def test_a_data_set_that_is_not_on_the_hub_takes_no_revision():
    for load_it, name in ((mathematics.load, "custom"), (programs.load, "livecodebench")):
        with pytest.raises(ValueError, match=f"revision='abc': expected None, {name} is not read from the hub"):
            load_it(name, revision="abc")


def test_a_lazy_data_set_converts_a_row_when_its_problem_is_read(tmp_path):
    row = {"id": "1/A", "title": "Add", "description": "Add them.", "official_tests": [{"input": "1 2", "output": "3"}]}
    rows = [row, row | {"official_tests": []}]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = programs.load("codeforces", path=tmp_path)
    assert (task.size, task.rows, task.unusable) == (2, 2, ())
    assert task.problem(0).notes["row"] == 0
    with pytest.raises(DataError, match="codeforces: row 1 cannot be graded: there are no tests"):
        task.problem(1)
