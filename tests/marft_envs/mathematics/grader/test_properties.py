"""Properties of equality: equivalent forms of random numbers and expressions are equal, other values differ."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from marft_envs.mathematics.grader.equality import equal
from marft_envs.mathematics.grader.expression_equality import same_value
from marft_envs.mathematics.grader.expression_parser import parse
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY

NAMES = st.sampled_from(["x", "y", "n", r"\theta", "a_1"])
SMALL = st.integers(-12, 12)


@st.composite
def polynomials(draw):
    """Draw the terms of a polynomial, each (coefficient, variable, exponent)."""
    return draw(st.lists(st.tuples(SMALL.filter(bool), NAMES, st.integers(0, 3)), min_size=1, max_size=4))


def written(terms, form):
    """Return a polynomial in one of three notations."""
    power = ("{n}^{{{k}}}", "{n}^{k}", "{n} ** {k}")[form]
    times = ("", r" \cdot ", "*")[form]
    parts = [f"({c}){times}{power.format(n=n, k=k)}" if k else f"({c})" for c, n, k in terms]
    return " + ".join(parts)


@given(polynomials(), st.randoms(use_true_random=False), st.integers(0, 2), st.integers(0, 2))
def test_the_order_and_notation_of_terms_do_not_matter(terms, rng, one, other):
    shuffled = list(terms)
    rng.shuffle(shuffled)
    assert equal(written(shuffled, one), written(terms, other))
    assert not equal(written([*shuffled, (1, "x", 0)], one), written(terms, other))


@given(polynomials(), polynomials())
def test_a_product_equals_its_expansion(p, q):
    expanded = " + ".join(f"({a * b}) ({m}^{{{j}}}) ({n}^{{{k}}})" for a, m, j in p for b, n, k in q)
    factored = rf"\left({written(p, 0)}\right)\left({written(q, 0)}\right)"
    assert equal(factored, expanded)
    assert not equal(factored, f"{expanded} + x^7")


@given(st.integers(2, 400), st.integers(1, 60), st.integers(1, 60))
def test_square_roots(n, a, b):
    assert equal(rf"{a}\sqrt{{{n}}}", rf"\sqrt{{{a * a * n}}}")
    assert equal(rf"\frac{{{a}}}{{\sqrt{{{n}}}}}", rf"\frac{{{a}\sqrt{{{n}}}}}{{{n}}}")
    assert equal(rf"({a}+\sqrt{{{n}}})({b}-\sqrt{{{n}}})", rf"{a * b - n}+({b - a})\sqrt{{{n}}}")
    assert not equal(rf"{a}\sqrt{{{n}}}", rf"\sqrt{{{a * a * n + 1}}}")
    assert not equal(rf"\sqrt{{{n}}}", str(round(n**0.5, 12))) or round(n**0.5) ** 2 == n


@given(st.fractions(max_denominator=500), st.fractions(max_denominator=500), st.booleans(), st.booleans())
def test_inequalities_equal_their_intervals(a, b, left, right):
    low, high = sorted((a, b))
    opening, closing = "(["[left], ")]"[right]
    sign = ["<", r"\le"]
    interval = f"{opening}{low}, {high}{closing}"
    if low < high:
        assert equal(f"{low} {sign[left]} x {sign[right]} {high}", interval)
        assert not equal(f"{low} {sign[not left]} x {sign[right]} {high}", interval)
        assert not equal(f"{low} {sign[left]} x {sign[right]} {high + 1}", interval)


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_lists_and_sets_have_no_order_and_tuples_have_one(numbers, rng):
    shuffled = list(numbers)
    rng.shuffle(shuffled)
    text, other = ", ".join(map(str, numbers)), ", ".join(map(str, shuffled))
    assert equal(other, text)
    assert equal(rf"\{{{other}\}}", rf"\{{{text}\}}")
    assert equal(f"({other})", f"({text})") == (shuffled == numbers)
    assert not equal(", ".join(map(str, numbers[:-1])), text)
    assert not equal(f"{text}, 100", text)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(-5, 5).filter(bool), st.integers(1, 9))
def test_multiples_of_a_linear_equation_are_equal(a, b, c, k):
    assert equal(f"{a * k}x + {b * k}y = {c * k}", f"{a}x + {b}y - ({c}) = 0")
    assert equal(rf"y = -\frac{{{a}}}{{{b}}}x + \frac{{{c}}}{{{b}}}", f"{a}x + {b}y = {c}")
    assert not equal(f"{a}x + {b}y = {c + 1}", f"{a}x + {b}y = {c}")


@given(st.fractions(), st.fractions())
def test_fractions_are_compared_exactly_without_the_worker(a, b):
    def tree(f: Fraction):
        return parse(rf"\frac{{{f.numerator}}}{{{f.denominator}}}")

    def no_worker(*_):
        raise AssertionError("fractions do not need the worker")

    assert same_value(tree(a), tree(b), DEFAULT_POLICY, no_worker) is (a == b)


@given(
    st.text(alphabet=r"\{}()[]^_+-*/=<>,.|! 0123456789xyiefracsqrtpmulo", max_size=60),
    st.sampled_from(["x", r"\frac12"]),
)
def test_no_string_raises(answer, gold):
    equal(answer, gold)
    equal(gold, answer or "0")
