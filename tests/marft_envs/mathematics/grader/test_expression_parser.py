"""The expression parser: values of its trees in every number system, unreadable strings, and the cost limits."""

import decimal
from fractions import Fraction

import pytest

from marft_envs.mathematics.grader.expression_parser import MAX_TOKENS, TooDeep, Unreadable, parse
from marft_envs.mathematics.grader.input_limits import too_costly, wants_worker
from marft_envs.mathematics.grader.normalization import normalize
from marft_envs.mathematics.grader.number_systems import Complexes, Decimals, Floats, Modular, context, prime
from marft_envs.mathematics.grader.tree_cost import costly
from marft_envs.mathematics.grader.tree_value import TooCostly, Unknown, exact

X = Fraction(7, 3)
EXACT = [  # expression, value at x = 7/3
    ("2x^2 - 3x + 1", Fraction(98, 9) - 7 + 1),
    ("-x^2", -Fraction(49, 9)),
    ("(-x)^2", Fraction(49, 9)),
    ("1/2x", Fraction(7, 6)),  # from left to right
    (r"\frac12 x", Fraction(7, 6)),
    ("2-3-4", -5),
    ("12/3/2", 2),
    ("2^{3^2}", 512),  # from right to left
    ("2^-1", Fraction(1, 2)),
    ("3!", 6),
    ("2^3!", 40320),  # LaTeX sets the 3 alone as exponent, so this is (2^3)!
    (r"\binom{5}{2}", 10),
    (r"4\frac{2}{3}", Fraction(14, 3)),
    (r"2\frac{3}{2}", 3),  # not a mixed number
    ("2(3)", 6),
    ("(2)(3)-1", 5),
    ("3 - -2", 5),
    (r"6 \div 2 \cdot 3", 9),
    ("2 ** 3", 8),
    (".5 + 1.25", Fraction(7, 4)),
    (r"10^{-3}", Fraction(1, 1000)),
]
REAL = [  # expression, value
    (r"\sqrt{2}", 2**0.5),
    (r"\sqrt[3]{-8}", -2),
    (r"(-8)^{1/3}", -2),
    (r"\sin 30^\circ", 0.5),
    (r"\sin \pi/6", 0.5),
    (r"\sin^2 1 + \cos^2 1", 1),
    (r"\sin 2 \cos 3", -0.9001976297355174),
    (r"\sin^{-1} 1", 1.5707963267948966),
    (r"\log_2 8", 3),
    (r"\ln e^2", 2),
    (r"\lg 1000", 3),
    (r"|2-5|", 3),
    (r"\lfloor -1.5 \rfloor + \lceil 1.2 \rceil", 0),
    (r"\left| |1-3| - 5 \right|", 3),
    ("e^2", 7.38905609893065),
    (r"\tan \frac{\pi}{4}", 1),
]


@pytest.mark.parametrize(("text", "value"), EXACT)
def test_rational_values_in_every_number_system(text, value):
    tree, point = parse(normalize(text)), {"x": X}
    value = Fraction(value)
    for seed in (1, 2):
        p, _ = prime(seed)
        assert Modular(seed).run(tree, point) == value.numerator * pow(value.denominator, -1, p) % p
    number, error = Floats().run(tree, point)
    assert abs(number - float(value)) <= max(error, 1e-15)
    with decimal.localcontext(context(60)):
        number, error = Decimals(60).run(tree, point)
        assert abs(number - Decimals(60).num(value)) <= 2 * error
    assert exact(tree, point) == value


@pytest.mark.parametrize(("text", "value"), REAL)
def test_real_values(text, value):
    from marft_envs.mathematics.grader.expression_equality import number_of

    assert number_of(parse(normalize(text))) == pytest.approx(value, abs=1e-12)


def test_complex_values():
    assert Complexes().run(parse("(1+i)^2"), {})[0] == pytest.approx(2j)
    assert Complexes().run(parse(r"\sqrt{-4}"), {})[0] == pytest.approx(2j)
    for seed in (1, 2):
        p, root = prime(seed)
        assert root * root % p == p - 1
        assert Modular(seed).run(parse("(1+2i)(1-2i)"), {}) == 5


@pytest.mark.parametrize("text", [r"\sqrt{-4}", r"\ln(-1)", "1/(2-2)", "(-1)^{1/2}", r"\log_1 5", "0^{-1}"])
def test_expressions_without_a_real_value(text):
    for numbers in (Floats(), Decimals(60)):
        with decimal.localcontext(context(60)), pytest.raises((Unknown, ArithmeticError, ValueError)):
            numbers.run(parse(text), {})


@pytest.mark.parametrize(
    "text",
    ["", "x_", "x_{", "x^", "2 3", "x 3", "(1", "1)", "1+", "*2", "\\frac{1}", "\\sqrt", "hello", "seat", r"\text{two}",
     r"\sum x", "1,2", "a=b", "|1", "\\", "\x00", "\ud800", "x''_", r"\frac", "{}", "()", "9" * 601],
)  # fmt: skip
def test_unreadable_strings(text):
    with pytest.raises(Unreadable):
        parse(text)


def test_bounds_on_depth_and_cost():
    for text in ("(" * 61 + "1" + ")" * 61, "+".join("1" * MAX_TOKENS), r"\frac{1}{" * 61 + "x" + "}" * 61):
        with pytest.raises(TooDeep):
            parse(text)
    for text in ("9^{9^{9}}", "(10^9)!", r"\binom{1000000}{5}", "2^{10^{5}}", "1 + 3^{99999}"):
        assert costly(parse(text)), text
    for text in ("2^{100}", "20!", "x^{y^{z}}", r"\sqrt{10^{12}}"):
        assert not costly(parse(text)), text
    with pytest.raises(TooCostly):
        exact(parse("9^{9^{9}}"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (r"\lim_{x \to 0} x^{x^{x^{x}}}", "a tower of powers"),
        (r"\sum_{k=1}^{10^{9}} k", "a large number"),
        (r"\sum_{k=1}^{12345} k", "a large number"),
        (r"\int_0^1 5000! dx", "a large number"),
        (r"\int " * 3, "more than two sums"),
        ("<" * 501, "longer than"),
        ("<" + "(" * 9 + "1", "nested deeper"),
        (r"\int_0^1 x^2 dx", ""),
        (r"x^2 < 4", ""),
    ],
)
def test_the_limits_of_the_worker_name_their_reason(text, reason):
    assert wants_worker(text)
    cost = too_costly(text)
    assert (reason in cost) if reason else not cost


def test_strings_that_are_never_sent_to_the_worker():
    for text in (r"\input{/etc/passwd} < 1", r"\write18{ls} \sum", "hello", "__import__('os')", r"\frac12"):
        assert not wants_worker(text)
