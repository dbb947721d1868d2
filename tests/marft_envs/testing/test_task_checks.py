"""``check_task``: correct tasks pass, and each check rejects tasks that are wrong on purpose."""

import functools

import pytest

from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.team_report import Report
from marft_envs.testing import TASK_CHECKS, ConformanceError, check_env, check_task, task_checks
from tests.marft_envs.testing import wrong_tasks
from tests.marft_envs.testing.correct_task import Game, Words


@pytest.mark.parametrize(
    ("check", "message", "task"),
    [
        ("attributes", "name is None; expected an identifier", wrong_tasks.Unnamed),
        ("attributes", "size is 0; expected None or an int of at least 1", wrong_tasks.Empty),
        ("problem_types", "problem(0).index is 1; expected 0", wrong_tasks.WrongIndex),
        ("problem_types", "problem(0).prompt is a bytes; expected str", wrong_tasks.BytesPrompt),
        ("problem_types", "problem(0).prompt contains lone surrogates", wrong_tasks.SurrogatePrompt),
        ("problem_types", "problem(0).private is ['secret']; expected a mapping", wrong_tasks.PrivateList),
        ("problem_types", "problem(0) has neither a prompt nor a private part", wrong_tasks.Nothing),
        ("pure_problem", "a second time differs at ['prompt']", wrong_tasks.OneGenerator),
        ("other_process", "the problems differ in another process at [0]['prompt']", wrong_tasks.HashSeed),
        ("index_errors", "problem(40) of a task of size 40 is Problem(index=40", wrong_tasks.NoEnd),
        ("index_errors", "problem(4) raised IndexError: tuple index out of range; size is 5", wrong_tasks.TooLarge),
        ("problem_types", "problem(4) raised IndexError: tuple index out of range; size is 5", wrong_tasks.TooLarge),
        ("problem_types", "size is None, which means unlimited; expected a Problem for", wrong_tasks.WithoutSize),
        ("index_errors", "problem(2147483647) raised IndexError: tuple index out of range", wrong_tasks.WithoutSize),
        (
            "gold_is_correct",
            "no form of the gold 'cedgfabh' of problem 0 is a correct reply ('cedgfabh' is partial); expected score 1",
            wrong_tasks.GoldIsPartial,
        ),
        (
            "gold_is_correct",
            "the gold 4 of problem 0 is of type int, and the reply '4' is wrong",
            wrong_tasks.IntegerGold,
        ),
        ("garbage_is_not_correct", "an empty reply scores 0.1; expected 0", wrong_tasks.LikesEmpty),
        (
            "garbage_is_not_correct",
            "ReturnsBool.grade returned False for the reply ''; expected a Verdict",
            wrong_tasks.ReturnsBool,
        ),
        (
            "gold_is_correct",
            "ReturnsFloat.grade returned 1.0 for the reply 'cedgfabh'; expected a Verdict",
            wrong_tasks.ReturnsFloat,
        ),
        (
            "gold_is_correct",
            "ReturnsNone.grade returned None for the reply 'cedgfabh'; expected a Verdict",
            wrong_tasks.ReturnsNone,
        ),
        ("garbage_is_not_correct", "expected wrong, no answer or partial", wrong_tasks.FaultsOnUnicode),
        ("garbage_is_not_correct", "raises UnicodeEncodeError", wrong_tasks.RaisesOnSurrogates),
        ("garbage_is_not_correct", "expected wrong, no answer or partial", wrong_tasks.CorrectOnGarbage),
        ("garbage_is_not_correct", "expected the same", wrong_tasks.Moody),
        ("huge_replies", "s; expected under 0.2 s, in linear time", wrong_tasks.Slow),
        ("seeds_differ", "seeds 0 and 1 share 198 of 200 items, unrelated seeds at most 2", wrong_tasks.AddedSeed),
        (
            "splits_apart",
            "problem 0 of split='test' is problem 0 of split='train', 'Say the word number 0.'; expected no problem in "
            "two splits",
            wrong_tasks.OneForBoth,
        ),
        ("splits_apart", "problem 3 of split='dev' is problem 5 of split='train', 'b 4'", wrong_tasks.Overlapping),
        (
            "no_gold_in_public",
            "the text of every problem contains its gold following '. It is ', 'cedgfabh' in the first",
            wrong_tasks.TellsGold,
        ),
        (
            "no_gold_in_public",
            "contains its gold following 'swer is ', '0' in the first; expected a hidden gold",
            wrong_tasks.TellsNumber,
        ),
        (
            "no_gold_in_public",
            "the text of every problem contains its gold at the end, '0' in the first",
            wrong_tasks.EndsWithNumber,
        ),
        ("no_gold_in_public", "contains its gold before ' is righ', 'no' in the first", wrong_tasks.TellsOneAgent),
        (
            "no_gold_in_public",
            "the text of every problem contains its whole gold, {'tests': ['cedgfabh', '",
            wrong_tasks.TellsTests,
        ),
        (
            "progress_before_turns",
            "turns on problem 0 is []; expected one integer for each turn",
            wrong_tasks.KnowsNothing,
        ),
        ("progress_before_turns", "is [0.5, 0.5, 0.5", wrong_tasks.KnowsFloats),
        (
            "progress_before_turns",
            "turn 0 is the last and has another text; expected numbers that depend",
            wrong_tasks.KnowsItsText,
        ),
        ("progress_before_turns", "but is [1] if turn 0 is the last", wrong_tasks.KnowsTheEnd),
    ],
)
def test_each_check_rejects_a_wrong_task(monkeypatch, check, message, task):
    monkeypatch.setattr(task_checks, "HUGE_SECONDS", 0.2)
    with pytest.raises(ConformanceError) as caught:
        check_task(task, only=[check])
    assert message in str(caught.value)
    assert f"fails the check '{check}': " in str(caught.value)


def test_check_env_reports_a_grader_that_returns_no_verdict():
    with pytest.raises(
        ConformanceError, match=r"ReturnsFloat\.grade returned 1\.0 for the reply .*; expected a Verdict"
    ):
        check_env(lambda: Game(wrong_tasks.ReturnsFloat()), only=["gold_scores_one"])
    with pytest.raises(ConformanceError, match=r"ReturnsFloat\.grade returned 0\.0, expected a Verdict"):
        check_env(lambda: Game(wrong_tasks.ReturnsFloat()), only=["wrong_answer_terminates"])


def test_every_check_of_tasks_has_been_seen_to_fail():
    (parameters,) = (m.args[1] for m in test_each_check_rejects_a_wrong_task.pytestmark if m.name == "parametrize")
    assert {check for check, *_ in parameters} == set(TASK_CHECKS)


def test_correct_tasks_pass_every_check():
    assert check_task(Words).passed == tuple(TASK_CHECKS)
    report = check_task(Words())
    assert set(report.not_checked) == {"seeds_differ", "splits_apart"}


class WithoutArguments(Words):
    def __init__(self):
        super().__init__()


@pytest.mark.parametrize(("check", "parameter"), [("seeds_differ", "seed"), ("splits_apart", "split")])
def test_the_reason_for_a_class_without_a_parameter(check, parameter):
    reason = check_task(WithoutArguments, only=[check]).not_checked[check]
    assert reason == f"WithoutArguments has no parameter {parameter}"


def test_too_few_problems_to_find_their_gold_are_not_checked():
    reasons = check_task(wrong_tasks.TellsGold, problems=9, only=["no_gold_in_public"]).not_checked
    assert reasons == {"no_gold_in_public": "fewer than 10 problems"}


@pytest.mark.parametrize("task", [wrong_tasks.Numbers, wrong_tasks.YesOrNo, wrong_tasks.Choices])
def test_a_gold_that_occurs_by_chance_or_among_choices_is_no_leak(task):
    assert check_task(task, only=["no_gold_in_public"]).passed == ("no_gold_in_public",)


class Knows(Words):
    """Progress: whether the word was said before each turn."""

    def progress(self, problem, turns):
        return [int(any(t.text == problem.gold for t in turns[:k])) for k in range(len(turns))]


@pytest.mark.parametrize("task", [Knows, Words, Relay, functools.partial(Report, agents=("a_0", "b_0", "c_0"))])
def test_progress_that_depends_on_earlier_turns_only_passes(task):
    assert check_task(task, only=["progress_before_turns"]).passed == ("progress_before_turns",)
