"""Decisions of the layers: equal, different or unknown; undecided answers are counted; work is bounded."""

import time

import pytest

from marft_envs.mathematics import fault_counts, grade
from marft_envs.mathematics.grader import reply_grader
from marft_envs.mathematics.grader.decision import EQUAL, all_equal, any_equal, different, unknown
from marft_envs.mathematics.grader.equality import compare
from marft_envs.mathematics.grader.expression_parser import parse
from marft_envs.mathematics.grader.number_systems import Modular, prime
from marft_envs.mathematics.grader.sample_points import domain_points, integer_points, sign_points
from marft_envs.mathematics.grader.tree_cost import OutOfWork, Work, digits_needed, weight
from marft_envs.verdict import Outcome

DIFFERENT = [  # answer, gold, part of the reason
    ("6", "5", "the numbers are different"),
    (r"\frac{1}{3}", "0.33", "the numbers are different"),
    ("5 cm", "5 kg", "the units are different"),
    (r"\sqrt{2}", r"\sqrt{3}", "the values are different"),
    ("x + 1", "x + 2", "the values are different"),
    ("(0, 1)", "[0, 1]", "belongs to one interval only"),
    ("x > 3", "x < 3", "the values are different"),
    ("1, 2, 3", "1, 2", "numbers of elements"),
    ("(B)", "(C)", "the choices are different"),
    ("east", r"\text{west}", "the words are different"),
    (r"\$5", r"5\%", "an amount of money"),
]
UNKNOWN = [
    ("n!!!", "n!", "no layer can read"),
    (r"\frac{\partial f}{\partial x}", "0", "does not understand"),
    ("5 zorks", "5", "neither a known unit nor a neutral noun"),
    (r"\hat{x}", "x", "does not understand"),
    (r"x \in 5", "5", "not a set"),
    (r"x = y \approx 3", "3", ""),
]


@pytest.mark.parametrize(("answer", "gold", "reason"), DIFFERENT)
def test_a_difference_is_proved(answer, gold, reason):
    found = compare(answer, gold)
    assert found.equal is False and reason in found.reason
    verdict = grade(rf"\boxed{{{answer}}}", gold)
    assert verdict.outcome is Outcome.WRONG and found.reason in verdict.reason


@pytest.mark.parametrize(("answer", "gold", "reason"), UNKNOWN)
def test_an_undecided_answer_is_wrong_and_counted(answer, gold, reason):
    before = fault_counts()
    verdict = grade(rf"\boxed{{{answer}}}", gold)
    assert verdict.outcome is Outcome.WRONG
    assert "nothing could decide" in verdict.reason and reason in verdict.reason
    counted = verdict.reason[verdict.reason.index("nothing could decide") :]
    assert fault_counts()[counted] == before.get(counted, 0) + 1


def test_decisions_of_parts():
    no, open_ = different("no"), unknown("open")
    assert all_equal([EQUAL, EQUAL]) is EQUAL
    assert all_equal([EQUAL, open_, no]) is no
    assert all_equal([open_, EQUAL]) is open_
    assert any_equal([no, open_, EQUAL]) is EQUAL
    assert any_equal([no, open_]) is open_
    assert any_equal([no, no]) is no
    assert any_equal([]).equal is None


def test_an_error_inside_a_comparison_is_an_undecided_answer(monkeypatch):
    def broken(*_):
        raise IndexError("list index out of range")

    monkeypatch.setattr(reply_grader, "compare", broken)
    verdict = grade(r"\boxed{4}", "5")
    assert verdict.outcome is Outcome.WRONG
    assert "nothing could decide: an internal error, IndexError" in verdict.reason


@pytest.mark.parametrize("names", ["x", "xy", "xyz", "uvxyz"])
@pytest.mark.parametrize("seed", range(20))
def test_the_points_have_all_patterns_of_signs(names, seed):
    """A product over any set of names is negative at a point and positive at another, so |xz| y is not x y z."""
    points = list(sign_points(frozenset(names), seed))
    for chosen in ("x", "xz", "xyz", "uv", names):
        if set(chosen) <= set(names):
            signs = {sum(point[name] < 0 for name in chosen) % 2 for point in points}
            assert signs == {0, 1}, (chosen, seed)


def test_points_and_primes_depend_on_the_seed_alone():
    names = frozenset("xy")
    assert list(sign_points(names, 1)) == list(sign_points(names, 1)) != list(sign_points(names, 2))
    assert prime(1) == prime(1) != prime(2)
    for points in (integer_points, domain_points):
        assert list(points(names, 3)) == list(points(names, 3)) != list(points(names, 4))
    assert {int(point["x"]) % 2 for point in integer_points(names, 5)} == {0, 1}  # (-1)^n is not 1


@pytest.mark.parametrize(
    "text", [r"\sqrt{(x-3)(4-x)}", r"\ln(x-5)", r"\arcsin(2x)", r"\sqrt{9-x^2-y^2}", r"\sqrt{x-90}"]
)
def test_points_are_found_in_the_domain(text):
    from marft_envs.mathematics.grader.number_systems import Floats
    from marft_envs.mathematics.grader.tree_value import Unknown, symbols

    tree, valid = parse(text), 0
    for point in domain_points(symbols(tree), 7, tree):
        try:
            Floats().run(tree, point)
            valid += 1
        except (Unknown, ValueError, ArithmeticError):
            continue
    assert valid >= 4


def test_numbers_that_vanish_modulo_a_known_prime_are_not_zero():
    for p in (2**61 - 31, 2**89 - 31, 2**61 - 1, 2**89 - 1):
        for seed in range(20):
            assert Modular(seed).run(parse(f"{p} \\cdot {p} + 5"), {}) != 5
        assert compare(rf"x + {p} \cdot {p}", "x").equal is False
        assert compare(rf"5 + {p} \cdot {p}", "5").equal is False
        assert compare(f"x^{{{p - 1}}}", "1").equal is not True


def test_the_digits_that_are_compared_grow_with_the_digits_that_are_written():
    assert digits_needed(parse(r"\sqrt{2}")) < 40
    assert digits_needed(parse("10^{-70}")) > 200
    assert digits_needed(parse("6882627592338442563")) > 80


HEAVY = [
    ("+".join(["5000!"] * 130), r"\sqrt{2}+x"),
    (", ".join(["+".join(["5000!"] * 100)] * 4), r"\sqrt{2}+x, 1, 2, 3"),
    (r"\sqrt{" + "+".join(["5000!"] * 120) + "}", r"\sqrt{2}"),
    ("+".join(["x^{9999}"] * 90), "x"),
    (", ".join(rf"\sqrt{{{i}}}+x" for i in range(190)), ", ".join(rf"x+\sqrt{{{i + 1}}}" for i in range(190))),
    (r"\binom{5000}{2500}" * 40, "x"),
    ("+".join(rf"\frac{{1}}{{{10**30 + i}}}" for i in range(60)), r"\sqrt{2}"),
    ("+".join(rf"\sqrt{{{10**200 + i}}}" for i in range(15)), r"\sqrt{2}+\pi"),
    (rf"2^{{{'9' * 500}}}x", "x"),
    (rf"\ln({'7' * 590})", r"\ln 3"),
    ("x!" * 90, "x!"),
    (r"\sqrt{2}" * 90, "3"),
    ("(" * 50 + "x+1" + ")^{9}" * 50, "x"),
    ("e^{" * 30 + "x" + "}" * 30, "x+1"),
]


@pytest.mark.parametrize(("answer", "gold"), HEAVY, ids=lambda text: ascii(text[:12]))
def test_work_is_bounded_in_the_process_of_the_caller(answer, gold):
    started = time.process_time()
    assert compare(answer, gold).equal is not True
    assert time.process_time() - started < 1.5


def test_work_that_is_spent_ends_the_comparison():
    work = Work(10)
    work.spend(10)
    with pytest.raises(OutOfWork, match="too much work"):
        work.spend(1)
    assert weight(parse("5000!")) > 100 * weight(parse("5"))
