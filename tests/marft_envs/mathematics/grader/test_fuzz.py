"""Mutated LaTeX, and replies that try to exhaust time or memory: each gets a verdict within the time limit."""

import random
import time

import pytest

from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.symbolic import shared_pool
from marft_envs.verdict import Outcome, Verdict

WITHIN_S = 2.5
BUSY = "the machine was too busy"  # depends on the load of the machine, so it is not an error of the grader
SEEDS = [
    r"\frac{1}{2}", r"2\sqrt{5}", r"(-\infty,0) \cup [1,2)", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"x = 5",
    r"\sin^2(x)+\cos^2(x)", r"\{1,2,3\}", r"1 \pm \sqrt{19}", r"5\text{ cm}^2", r"90^\circ", r"e^{i\pi}", r"3:30",
    r"\sum_{k=1}^{n} k^2", r"\int_0^1 x^2 dx", r"2x+4y-3=0", r"-2 \le x < 7", r"\binom{5}{2}", r"1010_2", "28\\%",
    r"\text{east}", r"f(x)=x^2", r"|x-1|<2", r"\lim_{x\to 0} \frac{\sin x}{x}", r"\mathbb{R}\setminus\{0\}",
]  # fmt: skip
PIECES = [
    "{", "}", "(", ")", "[", "]", "\\", "^", "_", "&", "|", "!", "%", "$", ",", "=", "<", ">", "+", "-", "*", "/", ".",
    " ", "9", "99", "x", "e", "i", "\\frac", "\\sqrt", "\\pi", "\\left(", "\\right)", "\\cup", "\\pm", "\\infty",
    "\\text{or}", "\\boxed{", "\\sum", "\\int", "\\begin{pmatrix}", "\\end{pmatrix}", "\\\\", "\x00",
    "\ud800", "٣", "½", "√",
    "²", "−", "\\circ", "\\log", "\\sin", "\\binom", "\\lfloor", "^{9^{9}}", "(x+1)^{99}", "\\mathbb{R}",
    "\\in", "\\ne", "\n",
]  # fmt: skip


def mutated(rng):
    """Return a seed or the empty string, with pieces inserted, deleted and moved."""
    text = rng.choice([*SEEDS, ""])
    for _ in range(rng.randint(1, 8)):
        at, action = rng.randint(0, len(text)), rng.random()
        if action < 0.6:
            text = text[:at] + rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 30)) + text[at:]
        elif action < 0.8:
            text = text[:at] + text[at + rng.randint(0, 5) :]
        else:
            text = text[at:] + text[:at]
    return text


def check_verdicts(count, seed):
    """Grade ``count`` mutated replies; each must be graded within WITHIN_S."""
    shared_pool().warm_up()
    rng = random.Random(seed)
    slowest = (0.0, "", "")
    for _ in range(count):
        answer, gold = mutated(rng), rng.choice(SEEDS)
        reply = rng.choice(["\\boxed{%s}", "The answer is %s", "%s", "<answer>%s</answer>"]) % answer
        started = time.perf_counter()
        verdict = grade(reply, gold)
        slowest = max(slowest, (time.perf_counter() - started, reply, gold))
        assert isinstance(verdict, Verdict)
        assert verdict.graded or BUSY in verdict.reason, (reply, gold, verdict)
    assert slowest[0] < WITHIN_S, slowest


@pytest.mark.parametrize(("count", "seed"), [(300, 1), pytest.param(5_000, 2, marks=pytest.mark.slow)])
def test_mutated_latex(count, seed):
    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    check_verdicts(count, seed)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 1_000_000, "}" * 1_000_000, "(" * 1_000_000, "\\" * 1_000_000, "\\frac" * 200_000, "9" * 1_000_000,
        "\\boxed{" * 100_000, "1," * 500_000, "\x00" * 1_000_000, "\ud800" * 1_000_000, "٣" * 1_000_000, "=" * 100_000,
        "\\begin{pmatrix}" * 50_000, "\\pm" * 100_000, "+1" * 100_000, "\\text{" * 100_000, "x^" * 100_000,
        "| " * 100_000,
    ],
    ids=lambda text: ascii(text[:8]),
)  # fmt: skip
@pytest.mark.parametrize("around", ["%s", "\\boxed{%s}", "The answer is %s."])
def test_replies_of_a_megabyte_take_little_time(text, around):
    started = time.perf_counter()
    for part in (text, text[:3_900]):
        assert grade(around % part, "42").outcome in (Outcome.WRONG, Outcome.NO_ANSWER)
        assert grade(around % part, r"\frac{x}{\sqrt{2}}").outcome in (Outcome.WRONG, Outcome.NO_ANSWER)
    assert time.perf_counter() - started < WITHIN_S


def test_hostile_answers_are_wrong_within_the_time_limit():
    from benchmarks.graders.inputs import HOSTILE

    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    shared_pool().warm_up()
    for text in HOSTILE:
        started = time.perf_counter()
        verdict = grade(rf"\boxed{{{text}}}", "42")
        assert verdict.outcome in (Outcome.WRONG, Outcome.NO_ANSWER) or BUSY in verdict.reason, text[:60]
        assert time.perf_counter() - started < WITHIN_S, text[:60]
