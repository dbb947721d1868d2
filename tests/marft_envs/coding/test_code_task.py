# ruff: noqa: E501
"""code_v0: conformance, the generator, feedback from public tests between rounds, scoring, faults of the sandbox."""

import functools
import inspect
import subprocess
import sys

import pytest

import marft_envs
from marft_envs.coding import datasets
from marft_envs.coding.code_task import CodeItem, CodeOptions, CodeTask
from marft_envs.coding.grader.program_extraction import extract_program, fenced
from marft_envs.coding.problems.list_programs import LEVELS, ListPrograms
from marft_envs.sandbox import ProgramRun, Result, RunStatus
from marft_envs.testing import check_env, check_task

ONE = CodeItem(
    "Double it.",
    "stdin",
    public=[{"input": "1\n", "output": "2\n"}],
    hidden=[{"input": "21\n", "output": "42\n"}, {"input": "0\n", "output": "0\n"}],
    solution="print(2 * int(input()))",
)


class Doubling(CodeTask):
    name = "doubling"
    size = 1

    def problem(self, index):
        return ONE.problem(index)


@pytest.mark.parametrize("arguments", [{}, {"team": "trio", "rounds": 2}, {"team": "quartet_anonymous"}])
def test_the_environment_conforms(arguments):
    check_env(functools.partial(marft_envs.make, "code_v0", **arguments))


@pytest.mark.parametrize("style", ["stdin", "function"])
@pytest.mark.parametrize(
    "level", [1, *(pytest.param(level, marks=pytest.mark.slow) for level in range(2, LEVELS)), LEVELS]
)
def test_the_generator_conforms(level, style):
    check_task(functools.partial(ListPrograms, level=level, style=style), problems=3)


def test_splits_share_no_problem_and_levels_have_their_steps():
    keys = {
        split: {task.problem(i).notes["key"] for i in range(100)}
        for split in ("train", "test")
        for task in [ListPrograms(split=split, level=3)]
    }
    assert not keys["train"] & keys["test"]
    assert all(key.count(";") == 2 for key in keys["test"])


def test_the_reference_solution_returns_the_expected_values():
    problem = ListPrograms(level=2, style="function").problem(0)
    program = extract_program(ListPrograms(level=2, style="function").reference_answer(problem))
    space = {}
    exec(program, space)  # written by our own generator
    for test in problem.gold["hidden"]:
        assert space["solve"](*test["args"]) == test["expected"]
    assert problem.prompt.count("returns") == 3


@pytest.mark.parametrize(
    ("argument", "message"),
    [({"level": 6}, "level=6: expected 1 to 5"), ({"style": "x"}, "style='x'"), ({"scoring": "x"}, "scoring='x'"),
     ({"feedback": "x"}, "feedback='x'"), ({"time_limit_s": 0}, "time_limit_s=0: expected a positive number"),
     ({"scoring": "x", "dataset": "mbpp"}, "scoring='x': expected one of all, fraction"), ({"dataset": "mbp"}, "did you mean 'mbpp'"),
     ({"levle": 1}, "did you mean 'level'")],
)  # fmt: skip
def test_wrong_arguments_are_named(argument, message):
    with pytest.raises(ValueError, match=message):
        marft_envs.code_v0.env(**argument)


def test_a_sandbox_without_run_is_refused():
    with pytest.raises(TypeError, match="sandbox=3: got int, expected None, the words of a command or an object"):
        marft_envs.code_v0.env(sandbox=3)


@pytest.mark.parametrize("function", [Doubling, ListPrograms, functools.partial(datasets.load, "mbpp")])
def test_signatures_list_every_option(function):
    parameters = inspect.signature(function).parameters
    for name, option in inspect.signature(CodeOptions).parameters.items():
        assert (parameters[name].default, parameters[name].kind) == (option.default, option.KEYWORD_ONLY)
    assert "options" not in parameters
    with pytest.raises(TypeError, match="unexpected keyword argument 'scorin'"):
        function(scorin="all")


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            "print(int(input()) / 0)",
            "Test 1 failed on input '1\\n': runtime error (ZeroDivisionError: division by zero)",
        ),
        ("while True: pass", "Test 1 failed on input '1\\n': time limit exceeded"),
    ],
)
def test_feedback_names_the_failure(program, line):
    task = Doubling(time_limit_s=0.2)
    assert task.feedback(fenced(program), task.problem(0)).splitlines()[1].startswith(line)
    assert (
        task.feedback("print(1)", task.problem(0)) == "Feedback: the reply contains no complete ```python code block."
    )


def play_rounds(*programs, **arguments):
    env = marft_envs.code_v0.env(Doubling(**arguments.pop("task", {})), rounds=len(programs), **arguments)
    env.reset(seed=0)
    observations = []
    for program in programs:
        env.step("reasoning")
        observations.append(env.observe("actor_0")["messages"])
        env.step(fenced(program))
    return env, observations


def test_feedback_is_on_public_tests_and_only_between_rounds():
    env, observations = play_rounds("print(3)", "print(2)", "print(2 * int(input()))")
    assert [message["name"] for message in observations[0]] == ["actor_0", "task", "reasoner_0"]
    first = next(message["content"] for message in observations[1] if message["content"].startswith("Feedback"))
    assert first == (
        "Feedback: the program passed 0 of 1 public tests.\nTest 1 failed on input '1\\n': wrong answer "
        "(output '3\\n', expected '2\\n')"
    )
    second = [m["content"] for m in observations[2] if m["content"].startswith("Feedback")]
    assert second == [first, "Feedback: the program passed 1 of 1 public tests."]
    assert "42" not in str(observations)
    assert env.unwrapped.outcome.score == 1.0
    assert len(env.unwrapped.feedback) == 2


def test_an_agent_that_does_not_remember_the_program_reads_no_feedback():
    for memory, messages in (("none", 0), ("own", 1), ("all", 1)):
        env, observations = play_rounds("print(3)", "print(2)", memory=memory)
        assert sum(m["content"].startswith("Feedback") for m in observations[1]) == messages
        reasoner = env.unwrapped.observe("reasoner_0")["messages"]
        assert sum(m["content"].startswith("Feedback") for m in reasoner) == (memory == "all")


def test_feedback_can_be_counts_or_none():
    _, observations = play_rounds("print(3)", "print(2)", task={"feedback": "counts"})
    assert observations[1][-2]["content"] == "Feedback: the program passed 0 of 1 public tests."
    _, observations = play_rounds("print(3)", "print(2)", task={"feedback": "none"})
    assert "Feedback" not in str(observations)


def test_the_rendering_shows_feedback_after_the_reply():
    env, _ = play_rounds("print(3)", "print(2)", render_mode="ansi")
    lines = env.render().splitlines()
    position = lines.index("[task to actor_0 (round 0)] Feedback: the program passed 0 of 1 public tests.")
    assert lines[position + 2].startswith("[reasoner_0 (round 1)]")


class Broken:
    """A sandbox that reports a fault."""

    def run(self, program, tests, limits, *, prelude=False):
        return Result((ProgramRun(RunStatus.FAULT, detail="no sandbox today"),), "broken")


class Absent:
    """A sandbox that raises."""

    def run(self, program, tests, limits, *, prelude=False):
        raise OSError("no sandbox at all")


@pytest.mark.parametrize("sandbox", [Broken(), Absent()])
@pytest.mark.parametrize("rounds", [1, 2])
def test_a_fault_of_the_sandbox_truncates_and_is_not_graded(sandbox, rounds):
    task = Doubling(sandbox=sandbox)
    env = marft_envs.code_v0.env(task, team="solo", rounds=rounds)
    env.reset(seed=0)
    while not any(env.truncations.values()):
        env.step(fenced("print(1)"))
    assert "no sandbox" in env.infos["actor_0"]["not_graded"]
    assert not any(env.terminations.values())


def test_the_fraction_of_passed_tests_is_the_score():
    env, _ = play_rounds("n = int(input())\nprint(2 * n if n < 20 else 0)", task={"scoring": "fraction"})
    assert env.unwrapped.outcome.score == pytest.approx(2 / 3, abs=1e-12)


def test_programs_may_use_the_code_before_them_but_no_prelude():
    item = CodeItem("", "call", [], [{"fn": "f", "args": [[2, 3]], "expected": 5}], before="def g(x): return sum(x)\n")

    class Before(Doubling):
        def problem(self, index):
            return item.problem(index)

    task = Before()
    assert task.grade(fenced("def f(x): return g(x)"), task.problem(0)).score == 1.0
    assert task.grade(fenced("def f(x): return Counter(x)"), task.problem(0)).score == 0.0


def test_making_the_environment_starts_no_thread_and_no_process():
    code = "import marft_envs.code_v0, threading, sys; e = marft_envs.code_v0.env(); e.reset(seed=0); " \
           "import os; print(len(os.listdir('/proc/self/task')), os.path.exists(f'/proc/{os.getpid()}/task/{os.getpid()}/children') " \
           "and open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read())"  # fmt: skip
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert out.stdout.split() == ["1"], out
