"""``validate``: our environments pass, and each of ten seeded faults is found and named."""

import json
import math
import sys

import pytest

import marft_envs
from marft_envs import Problem, Task, Verdict, register
from marft_envs.__main__ import main
from marft_envs.testing import validate
from marft_envs.testing.problem_statistics import problem_statistics
from tests.marft_envs.testing.correct_task import Words


class Sums(Task):
    """Add the numbers. A correct task: the base of the wrong ones."""

    size = 60

    def problem(self, index):
        if not 0 <= index < self.size:
            raise IndexError(index)
        return Problem(
            int(index), f"How much is {index} and {3 * index}?", str(4 * index), notes={"level": index // 30}
        )

    def grade(self, answer, problem):
        if not answer.strip():
            return Verdict.no_answer("empty")
        return Verdict.correct() if answer.strip() == problem.gold else Verdict.wrong(f"expected {problem.gold}")


class AcceptsAnyMention(Sums):
    """Add the numbers. The grader looks for the gold anywhere, so that listing answers is rewarded."""

    def grade(self, answer, problem):
        return Verdict.correct() if problem.gold in answer.split() else Verdict.wrong("no")


class LikesEmpty(Sums):
    """Add the numbers. An empty reply is right."""

    def grade(self, answer, problem):
        return Verdict.correct() if not answer.strip() else super().grade(answer, problem)


class ObeysOrders(Sums):
    """Add the numbers. The grader does what the reply says."""

    def grade(self, answer, problem):
        return Verdict.correct() if "CORRECT" in answer or "score" in answer else super().grade(answer, problem)


class SameAnswer(Sums):
    """Add the numbers. The answer is mostly the same."""

    def problem(self, index):
        item = super().problem(index)
        return Problem(item.index, item.prompt, "7" if index % 4 else "8")


class GoldInPrompt(Sums):
    """Add the numbers. The prompt ends with the gold, and the grader reads the last word."""

    def problem(self, index):
        item = super().problem(index)
        return Problem(item.index, f"{item.prompt} Hint: {item.gold}", item.gold)

    def grade(self, answer, problem):
        return super().grade((answer.split() or [""])[-1], problem)


class Repeats(Sums):
    """Add the numbers. Three of four problems are copies."""

    def problem(self, index):
        return Problem(int(index), *(lambda p: (p.prompt, p.gold))(super().problem(index // 4)))


class Faulty(Sums):
    """Add the numbers. The grader raises on long replies."""

    def grade(self, answer, problem):
        if len(answer) > 1000:
            raise MemoryError("too long")
        return super().grade(answer, problem)


class WrongGold(Sums):
    """Add the numbers. One gold is wrong: its grader refuses it."""

    def grade(self, answer, problem):
        return Verdict.wrong("no") if problem.index == 11 else super().grade(answer, problem)


class Unpinned(Sums):
    """Add the numbers. The data comes from somewhere."""

    origin = "a page on the web"


class CountsCalls(Sums):
    """Add the numbers. Verdicts depend on how often the grader was called."""

    calls = 0

    def grade(self, answer, problem):
        CountsCalls.calls += 1
        return super().grade(answer, problem) if CountsCalls.calls % 7 else Verdict.wrong("a bad moment")


FAULTS = {
    AcceptsAnyMention: "both_answers_stays_at_the_floor",
    LikesEmpty: "empty_stays_at_the_floor",
    ObeysOrders: "injection_stays_at_the_floor",
    SameAnswer: "no_constant_answer_wins",
    GoldInPrompt: "prompt_echo_stays_at_the_floor",
    Repeats: "few_duplicates",
    Faulty: "repetition_stays_at_the_floor",
    WrongGold: "oracle_scores_the_maximum",
    Unpinned: "data_is_pinned",
    CountsCalls: "oracle_scores_the_maximum",
}


@pytest.fixture
def registered(monkeypatch):
    """Register a class as an environment for one test, and return its name."""
    names = []

    def add(task):
        name = f"validated_{task.__name__.lower()}"
        register(name)(task)
        names.append(f"{name}_v0")
        return names[-1]

    yield add
    for name in names:
        marft_envs.registry.registry._REGISTERED.pop(name, None)
        sys.modules.pop(f"marft_envs.{name}", None)


QUICK = ("other_process",)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """The classes of this file are made here, so that another process cannot import them."""
    from marft_envs.testing import env_checks, task_checks, validation

    for module, name in ((env_checks, "ENV_CHECKS"), (task_checks, "TASK_CHECKS")):
        kept = {k: v for k, v in getattr(module, name).items() if k not in QUICK}
        monkeypatch.setattr(validation, name, kept)


def test_a_correct_task_passes(registered):
    report = validate(registered(Sums))
    assert report.failures == ()
    assert next(p.mean for p in report.policies if p.name == "oracle") == 1.0
    assert report.problems.levels == {"level 0": 30, "level 1": 30}
    assert report.problems.duplicates == 0


@pytest.mark.parametrize("task", FAULTS, ids=lambda task: task.__name__)
def test_a_seeded_fault_is_found(registered, task):
    failures = {failure.name: failure.detail for failure in validate(registered(task)).failures}
    assert FAULTS[task] in failures
    assert "raised" not in failures[FAULTS[task]]


def test_statistics_by_hand():
    found = problem_statistics(Words(), most=10)
    # "Say the word number 0." has 22 characters, the private parts of three agents 3 x 13
    assert (found.size, found.read, found.prompt_chars, found.duplicates) == (40, 10, (61, 61, 61), 0)
    assert found.origin == "generated"


def test_the_command_writes_json_and_says_what_failed(registered, tmp_path, capsys):
    good, bad = registered(Sums), registered(LikesEmpty)
    assert main(["validate", good, "--problems", "6"]) == 0
    assert main(["validate", good, bad, "--problems", "6", "--json", str(tmp_path / "a" / "v.json")]) == 1
    out = capsys.readouterr().out
    assert f"{good}: " in out
    assert "failed: empty_stays_at_the_floor: the policy 'empty' has the mean score 1.000; expected at most 0.05" in out
    first, second = json.loads((tmp_path / "a" / "v.json").read_text())
    assert not [c for c in first["checks"] if c["status"] == "failed"]
    assert "empty_stays_at_the_floor" in [c["name"] for c in second["checks"] if c["status"] == "failed"]
    assert not math.isnan(first["policies"][0]["mean"])


@pytest.mark.parametrize("arguments", [{"problems": 0}, {"arguments": {"dataset": "relai"}}])
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(ValueError, match=r"problems=0|relai"):
        validate("math_v0", **arguments)
