"""Exact polynomials and rational functions of expression trees, with a bound on the work.

A polynomial is a mapping from a monomial, sorted pairs of a symbol and its power, to its coefficient.
"""

from __future__ import annotations

from fractions import Fraction

from marft_envs.mathematics.grader.tree_value import Node, Unknown, integer

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

MAX_TERMS = 120
MAX_DEGREE = 12
MAX_BITS = 2_000

_ONE: Polynomial = {(): Fraction(1)}


def rational_function(node: Node) -> tuple[Polynomial, Polynomial]:
    """Return (numerator, denominator) of a tree; common factors are not removed.

    Raises:
        Unknown: The tree is not a rational function with rational coefficients, divides by zero, or is too large.
    """
    kind = node[0]
    if kind == "num":
        return _constant(Fraction(node[1])), _ONE
    if kind == "sym":
        return {((node[1], 1),): Fraction(1)}, _ONE
    if kind == "neg":
        top, bottom = rational_function(node[1])
        return {monomial: -c for monomial, c in top.items()}, bottom
    if kind == "pow":
        return _power(rational_function(node[1]), integer(node[2]))
    if kind not in ("add", "mul", "div"):
        raise Unknown(kind)
    (a, b), (c, d) = rational_function(node[1]), rational_function(node[2])
    if kind == "add":
        return (_add(a, c), b) if b == d else (_add(_multiply(a, d), _multiply(c, b)), _multiply(b, d))
    if kind == "mul":
        return _multiply(a, c), _multiply(b, d)
    if not c:
        raise Unknown("division by zero")
    return _multiply(a, d), _multiply(b, c)


def coefficients(polynomial: Polynomial, name: str) -> list[Fraction]:
    """Return the coefficients of a polynomial in one symbol, the constant first; raise Unknown for other symbols."""
    values = [Fraction(0)] * (MAX_DEGREE + 1)
    for monomial, coefficient in polynomial.items():
        if any(symbol != name for symbol, _ in monomial):
            raise Unknown("another symbol")
        values[monomial[0][1] if monomial else 0] = coefficient
    while values and not values[-1]:
        values.pop()
    return values


def same_zeros(f: Node, g: Node) -> bool | None:
    """Return whether f = 0 and g = 0 are the same equation after both are multiplied by their denominators.

    Returns:
        Whether one numerator is a constant multiple of the other; None if one tree is not a rational function.
    """
    try:
        (a, _), (b, _) = rational_function(f), rational_function(g)
    except Unknown:
        return None
    if not a or a.keys() != b.keys() or set(a) == {()}:
        return False
    first = next(iter(a))
    return all(a[monomial] * b[first] == b[monomial] * a[first] for monomial in a)


def _constant(value: Fraction) -> Polynomial:
    return {(): value} if value else {}


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return _checked({monomial: c for monomial, c in total.items() if c})


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) * len(b) > 10 * MAX_TERMS:
        raise Unknown("too many terms")
    product: Polynomial = {}
    for left, p in a.items():
        for right, q in b.items():
            powers = dict(left)
            for symbol, power in right:
                powers[symbol] = powers.get(symbol, 0) + power
            monomial = tuple(sorted(powers.items()))
            product[monomial] = product.get(monomial, Fraction(0)) + p * q
    return _checked({monomial: c for monomial, c in product.items() if c})


def _power(base: tuple[Polynomial, Polynomial], exponent: int) -> tuple[Polynomial, Polynomial]:
    if abs(exponent) > MAX_DEGREE:
        raise Unknown("a large power")
    top, bottom = base if exponent >= 0 else base[::-1]
    if not bottom:
        raise Unknown("division by zero")
    numerator = denominator = _ONE
    for _ in range(abs(exponent)):
        numerator, denominator = _multiply(numerator, top), _multiply(denominator, bottom)
    return numerator, denominator


def _checked(polynomial: Polynomial) -> Polynomial:
    """Return a polynomial within the bounds; raise Unknown for a larger one."""
    if len(polynomial) > MAX_TERMS:
        raise Unknown("too many terms")
    for monomial, coefficient in polynomial.items():
        if sum(power for _, power in monomial) > MAX_DEGREE:
            raise Unknown("a large degree")
        if max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length()) > MAX_BITS:
            raise Unknown("large coefficients")
    return polynomial
