"""Grading recorded episodes again: what changed, with which reason, and what cannot be graded."""

import json

import pytest

import marft_envs
from marft_envs.__main__ import main
from marft_envs.batch import BatchRunner
from marft_envs.traces import Recorder, TraceError, read, regrade, with_policy

ARGUMENTS = {"dataset": "report", "team": "panel_2"}


def reply(request):
    """The sum, evaluated by agent_0 and copied by agent_1."""
    a, b = request.observation["messages"][-1]["content"].rstrip("=").split("+")
    return str(int(a) + int(b)) if request.agent == "agent_0" else f"The answer is {a}+{b}"


@pytest.fixture
def trace(tmp_path):
    env = marft_envs.math_v0.env(**ARGUMENTS)
    with Recorder(tmp_path / "t.jsonl", env, arguments=ARGUMENTS, notes={"update": 3}) as recorder:
        for episode in BatchRunner(env, 2).stream(lambda requests: [reply(r) for r in requests], indices=range(3)):
            recorder.record(episode)
    return tmp_path / "t.jsonl"


def test_the_same_grader_changes_nothing(trace, capsys):
    assert main(["regrade", str(trace)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "6 answers of 3 episodes graded again, 0 verdicts changed; 0 truncated episodes not graded",
        "mean score of the 3 episodes graded both times: 0.5000 -> 0.5000",
        "episodes that could not be graded: 0 -> 0",
    ]


def test_another_policy_shows_its_effect(trace, capsys):
    assert main(["regrade", str(trace), "--policy", "arithmetic=any"]) == 1
    out = capsys.readouterr().out
    assert out.count("agent_1: wrong -> correct") == 3
    assert "agent_0" not in out
    assert "0.5000 -> 1.0000" in out


def test_a_recorded_verdict_that_the_grader_does_not_share_is_found(trace):
    rows = read(trace).episodes
    rows[1]["verdicts"]["agent_0"] = {"outcome": "wrong", "score": 0.0, "isolation": ""}
    rows[1]["score"] = 0.0
    found = regrade(marft_envs.math_v0.env(**ARGUMENTS), rows)
    (change,) = found.changed
    assert (change.episode, change.agent, change.before, change.after.outcome) == (1, "agent_0", "wrong", "correct")
    assert found.scores == [(0.5, 0.5), (0.0, 0.5), (0.5, 0.5)]


def test_truncated_episodes_are_counted_and_faults_are_tried_again(trace):
    rows = read(trace).episodes
    rows[0]["truncated"] = "the budget of 1 turns is spent"
    rows[1].update(score=None, not_graded="agent_0: disk full")
    rows[1]["verdicts"]["agent_0"] = {"outcome": "not_graded", "score": 0.0, "isolation": "", "reason": "disk full"}
    found = regrade(marft_envs.math_v0.env(**ARGUMENTS), rows)
    assert (found.truncated, found.episodes, found.not_graded_before, found.not_graded_after) == (1, 2, 1, 0)
    assert [c.before for c in found.changed] == ["not_graded"]
    assert found.scores == [(0.5, 0.5)]  # a fault is in no mean


def test_another_environment_is_refused(trace, capsys):
    assert main(["regrade", str(trace), "--env-arg", "seed=5"]) == 2
    assert "episode 0: problem 0 has the private" in capsys.readouterr().err
    rows = read(trace).episodes
    with pytest.raises(TraceError, match="verdicts on agent_0, agent_1: expected some of actor_0"):
        rows[0]["private"].pop("agent_1")
        env = marft_envs.math_v0.env(**ARGUMENTS)
        env.reset(seed=0, options={"index": 0})
        solo = marft_envs.math_v0.env(dataset="word_problems", team="solo")
        solo.reset(options={"index": 0})
        problem = solo.unwrapped.problem
        rows[0].update(prompt=problem.prompt, private=dict(problem.private))
        regrade(solo, rows[:1])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"arithmetik": "any"}, "did you mean 'arithmetic'"), ({"arithmetic": "never"}, "arithmetic='never'")],
)
def test_a_wrong_policy_is_refused(change, message):
    env = marft_envs.math_v0.env(**ARGUMENTS)
    with pytest.raises(ValueError, match=message):
        with_policy(env, change)


def test_a_task_without_a_policy_is_named():
    env = marft_envs.code_v0.env()
    with pytest.raises(ValueError, match="'list_programs' has no grading policy"):
        with_policy(env, {"arithmetic": "any"})


@pytest.mark.parametrize("dataset", ["curriculum", "relay", "word_problems"])
def test_the_policy_of_every_generator_changes_for_one_environment_only(dataset):
    first, second = marft_envs.math_v0.env(dataset=dataset), marft_envs.math_v0.env(dataset=dataset)
    with_policy(first, {"arithmetic": "any"})
    assert first.unwrapped.task.policy.arithmetic == "any"
    assert second.unwrapped.task.policy.arithmetic == "evaluated"


def test_notes_are_in_the_header(trace):
    assert json.loads(trace.read_text().splitlines()[0])["notes"] == {"update": 3}
