"""Random LaTeX answers and mutated replies: no error, no long wait, and no answer with another value is accepted."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.equality import equal
from marft_envs.mathematics.grader.symbolic import shared_pool
from marft_envs.verdict import Verdict

WITHIN_S = 2.5
REPLIES = [
    r"We add the parts, so the answer is $\boxed{\frac{3}{4}}$.",
    "So 3 + 4 = 7, and 7 * 6 = 42.\n#### 42",
    r"Hence \[ x = \boxed{2\sqrt{3} - 1} \] as claimed.",
    "<think>maybe 41</think> The final answer is: **42** apples.",
    r"The solution set is \boxed{(-\infty, 2) \cup [3, \infty)}.",
    r"\boxed{x = 3, y = -2} \text{ and so on}",
    "答案是42。",
    "<answer>1,234.50 dollars</answer>",
]
GOLDS = [
    "42",
    r"\frac{3}{4}",
    r"2\sqrt{3}-1",
    r"(-\infty,2)\cup[3,\infty)",
    "(3,-2)",
    r"x^2+1",
    "1010_2",
    r"\text{east}",
]
LETTERS = "abcnxyz"

numbers = st.integers(0, 999).map(str) | st.sampled_from(["0.5", "1.25", r"\pi", "10^{12}", r"\infty", "007", "፩", "½"])
letters = st.sampled_from([*LETTERS, r"\theta", "a_1", r"\mathrm{e}", r"\mathrm i", "N", r"\text{x}"])


def grown(inner):
    """Return a strategy of expressions over smaller ones."""
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"{p[0]}+{p[1]}"),
        pair.map(lambda p: f"{p[0]} - {p[1]}"),
        pair.map(lambda p: f"{p[0]} \\cdot {p[1]}"),
        pair.map(lambda p: f"({p[0]})({p[1]})"),
        pair.map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        pair.map(lambda p: f"({p[0]})^{{{p[1]}}}"),
        pair.map(lambda p: f"{p[0]}{p[1]}"),
        pair.map(lambda p: f"{p[0]} = {p[1]}"),
        pair.map(lambda p: f"{p[0]} \\approx {p[1]}"),
        pair.map(lambda p: f"{p[0]} \\in {p[1]}"),
        pair.map(lambda p: f"{p[0]}, {p[1]}"),
        pair.map(lambda p: f"({p[0]}, {p[1]}]"),
        pair.map(lambda p: f"\\{{{p[0]}, {p[1]}\\}}"),
        pair.map(lambda p: f"\\binom{{{p[0]}}}{{{p[1]}}}"),
        pair.map(lambda p: f"{p[0]}_{{{p[1]}}}"),
        inner.map(lambda e: f"\\sqrt{{{e}}}"),
        inner.map(lambda e: f"\\sqrt[3]{{{e}}}"),
        inner.map(lambda e: f"\\ln({e})"),
        inner.map(lambda e: f"\\arcsin {e}"),
        inner.map(lambda e: f"|{e}|"),
        inner.map(lambda e: f"\\lfloor {e} \\rfloor"),
        inner.map(lambda e: f"({e})!"),
        inner.map(lambda e: f"{e}!!"),
        inner.map(lambda e: f"{e}\\%"),
        inner.map(lambda e: f"{e}^\\circ"),
        inner.map(lambda e: f"{e} \\text{{ cm}}"),
        inner.map(lambda e: f"\\sum_{{k=1}}^{{{e}}} k"),
        inner.map(lambda e: f"\\overline{{{e}}}"),
        inner.map(lambda e: f"\\begin{{pmatrix}} {e} \\\\ 1 \\end{{pmatrix}}"),
    )


answers = st.recursive(numbers | letters, grown, max_leaves=8)
rational = st.recursive(
    st.integers(1, 99).map(str) | st.sampled_from(LETTERS),
    lambda inner: st.tuples(
        inner, inner, st.sampled_from(["{}+{}", "({})({})", r"\frac{{{}}}{{{}}}", "({})-({})"])
    ).map(lambda t: f"({t[2].format(t[0], t[1])})"),
    max_leaves=6,
)
SETTINGS = settings(suppress_health_check=list(HealthCheck))


def check_verdict(reply, gold):
    started = time.process_time()
    verdict = grade(reply, gold)
    assert isinstance(verdict, Verdict)
    assert time.process_time() - started < WITHIN_S


@given(answers, answers)
@SETTINGS
def test_random_latex_gets_a_verdict(answer, gold):
    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    check_verdict(rf"\boxed{{{answer}}}", gold)


@given(
    st.sampled_from(REPLIES),
    st.sampled_from(GOLDS),
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 8), st.sampled_from([
            "", "\\", "{", "}", "$", "\\boxed{", "=", "\\approx", "\\in", "^{9^9}", "፩", "²", "\ud83d", "\x00",
            "\u200b", "not", "\\text{", "(A)", " or ", "!!", "%", "\\$", "\\infty", ",", "_", "/", "'", "|", "&",
            "\\\\",
        ])),
        max_size=6,
    ),
)  # fmt: skip
@SETTINGS
def test_mutated_replies_get_a_verdict(reply, gold, edits):
    for at, length, piece in edits:
        reply = reply[:at] + piece + reply[at + length :]
    check_verdict(reply, gold)


@given(rational, st.sampled_from(["x", "2", r"\frac{1}{7}", "x y z", "n^2"]))
@SETTINGS
def test_a_gold_with_something_added_is_not_accepted(gold, term):
    assert equal(gold, f"({gold})")
    for other in (f"{gold}+{term}", f"{gold}-({term})", f"{gold} + {term}(1+{term})^2(3+{term})"):
        if "\\frac{1}{0}" not in gold:
            assert equal(other, gold) is False or equal(f"({other})-({gold})", "0"), (other, gold)


@given(
    st.integers(2, 10**6), st.sampled_from(["plus one", "or so", "is it", "squared", "and a half", "thirds", "below"])
)
@SETTINGS
def test_words_behind_a_number_are_not_dropped(number, words):
    assert not equal(rf"{number} \text{{ {words}}}", str(number))
    assert not equal(f"{number} {words}", str(number))


def setup_module():
    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    shared_pool().warm_up()
