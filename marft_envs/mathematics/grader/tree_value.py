"""Values of expression trees, with a bound on their rounding error.

``Reals.run`` evaluates a tree of ``expression_parser`` in a number system: floats, complex floats and decimals
(``number_systems``), and mpmath in the symbolic worker. Every value comes with a bound on its absolute error, which
``agree`` needs to tell a difference from a rounding error.

Only the standard library is imported, because the symbolic worker loads this file by its path, without the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Node = tuple[Any, ...]
MAX_FACTORIAL = 5_000
MAX_BITS = 8_192
_KEEP_ZERO = frozenset(["sin", "tan", "arcsin", "arctan", "sinh", "tanh", "exp"])
"""Functions whose relative error is small, also near 0."""
_EXACT_FUNCTIONS: dict[str, Callable[[Fraction], Any]] = {"abs": abs, "floor": math.floor, "ceil": math.ceil}


class Unknown(ArithmeticError):
    """The tree has no value in this number system: undefined, unsupported, or too costly."""


class TooCostly(Unknown):
    """The tree contains a factorial, power or tower of powers beyond the bounds."""


def integer(node: Node, point: Mapping[str, Fraction] | None = None) -> int:
    """Return the exact value of a tree at ``point`` as an int.

    Raises:
        Unknown: The value is not an integer, or is too costly to compute.
    """
    value = exact(node, point)
    if value.denominator != 1:
        raise Unknown("not an integer")
    return value.numerator


def bounded_integer(node: Node, point: Mapping[str, Fraction] | None = None) -> int:
    """Return the integer value of a tree, from 0 to MAX_FACTORIAL; raise TooCostly for any other integer."""
    number = integer(node, point)
    if not 0 <= number <= MAX_FACTORIAL:
        raise TooCostly(f"factorial or binomial of {'a large' if number > 0 else 'a negative'} number")
    return number


@lru_cache(maxsize=256)
def factorial(number: int, step: int = 1) -> int:
    """Return number (number - step) (number - 2 step) ...: the factorial for step 1, the double factorial for 2."""
    return math.factorial(number) if step == 1 else math.prod(range(number, 0, -step))


def whole_number(node: Node, point: Mapping[str, Fraction] | None = None) -> int:
    """Return the value of a factorial, double factorial or binomial at ``point``.

    Raises:
        Unknown: An operand is not an integer, or it is the binomial of a smaller number over a larger one, whose value
            0 at every small point would prove nothing.
        TooCostly: An operand is negative or larger than MAX_FACTORIAL.
    """
    top = bounded_integer(node[1], point)
    if node[0] != "binom":
        return factorial(top, 1 if node[0] == "fact" else 2)
    bottom = bounded_integer(node[2], point)
    if bottom > top:
        raise Unknown("a binomial that is zero")
    return math.comb(top, bottom)


def exact(node: Node, point: Mapping[str, Fraction] | None = None) -> Fraction:
    """Return the exact value of a rational tree.

    Args:
        node: The tree.
        point: The value of each symbol; None for a tree without symbols.

    Raises:
        Unknown: The tree is not rational, has an unknown symbol, or divides by zero.
        TooCostly: A value has more than MAX_BITS bits, or a factorial is too large.
    """
    kind = node[0]
    if kind == "num":
        return Fraction(node[1])
    if kind == "sym" and point and node[1] in point:
        return point[node[1]]
    if kind in ("fact", "fact2", "binom"):
        value = Fraction(whole_number(node, point))
    elif kind == "pow":
        value = _exact_power(exact(node[1], point), integer(node[2], point))
    elif kind == "fn" and node[1] in _EXACT_FUNCTIONS:
        value = Fraction(_EXACT_FUNCTIONS[node[1]](exact(node[2], point)))
    elif kind == "call":
        value = _exact_call(node[1], [exact(part, point) for part in node[2:]])
    elif kind in ("add", "mul", "div", "neg"):
        value = _exact_operation(kind, [exact(part, point) for part in node[1:]])
    else:
        raise Unknown(kind)
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise TooCostly("a large number")
    return value


def _exact_operation(kind: str, values: list[Fraction]) -> Fraction:
    if kind == "neg":
        return -values[0]
    a, b = values
    if kind == "div" and b == 0:
        raise Unknown("division by zero")
    return a + b if kind == "add" else a * b if kind == "mul" else a / b


def _exact_power(base: Fraction, power: int) -> Fraction:
    # Estimate the size before computing: (10^9)^(10^9) would never finish.
    if abs(power) * max(base.numerator.bit_length(), base.denominator.bit_length()) > MAX_BITS and abs(base) != 1:
        raise TooCostly("a large power")
    if base == 0 and power < 0:
        raise Unknown("division by zero")
    return Fraction(-1 if base == -1 and power % 2 else 1) if abs(base) == 1 else base**power


def _exact_call(name: str, values: list[Fraction]) -> Fraction:
    """Return the value of a function of several arguments: max, min, gcd, lcm, or mod (the remainder)."""
    if name in ("max", "min"):
        return max(values) if name == "max" else min(values)
    if any(value.denominator != 1 for value in values):
        raise Unknown("not an integer")
    numbers = [value.numerator for value in values]
    if name == "mod":
        if numbers[1] <= 0:
            raise Unknown("a modulus that is not positive")
        return Fraction(numbers[0] % numbers[1])
    return Fraction(math.gcd(*numbers) if name == "gcd" else math.lcm(*numbers))


def is_rational(node: Node) -> bool:
    """Return whether a tree consists of fractions, symbols, i, powers, factorials, binomials and functions of these."""
    if node[0] in ("num", "sym") or node == ("const", "i"):
        return True
    if node[0] == "fn":
        return node[1] in _EXACT_FUNCTIONS and is_rational(node[2])
    if node[0] not in ("add", "mul", "div", "neg", "pow", "fact", "fact2", "binom", "call"):
        return False
    return all(is_rational(part) for part in node[1:] if isinstance(part, tuple))


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the symbols in a tree."""
    if node[0] == "sym":
        return frozenset([node[1]])
    return frozenset().union(*(symbols(part) for part in node[1:] if isinstance(part, tuple)))


def has(node: Node, *kinds: str) -> bool:
    """Return whether a tree contains a node whose kind, or constant or function name, is one of ``kinds``."""
    if node[0] in kinds or (node[0] in ("const", "fn", "call") and node[1] in kinds):
        return True
    return any(has(part, *kinds) for part in node[1:] if isinstance(part, tuple))


def has_symbolic_exponent(node: Node) -> bool:
    """Return whether a tree contains a power whose exponent has symbols."""
    if node[0] == "pow" and symbols(node[2]):
        return True
    return any(has_symbolic_exponent(part) for part in node[1:] if isinstance(part, tuple))


class Reals:
    """Evaluation of trees with an error bound, in the number system of a subclass.

    The bounds follow from running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition
    2002, section 3.3): each operation propagates the errors of its operands to first order and adds its own rounding
    error, ``abs(value) * eps``. Constant factors such as 4, 8 and 16 cover library functions that are less accurate
    than half a unit in the last place.

    A subclass defines ``eps`` and the methods from ``num`` to ``ln``. They raise ``Unknown`` or an
    ``ArithmeticError`` or ``ValueError`` of their library if there is no value.

    Attributes:
        eps: A bound on the relative rounding error of one operation.
        exact_sums: False as soon as a sum has absorbed a nonzero summand, as 1 + 10^-80 does with 60 digits, or a
            function its argument, as cos(10^-80) does. Such values may agree to all digits and still differ, so they
            are no evidence of equality. The caller sets it to True before each point.
    """

    eps: Any
    exact_sums = True

    def num(self, value: Fraction) -> Any: ...
    def const(self, name: str) -> Any: ...
    def fn(self, name: str, value: Any) -> Any: ...
    def power(self, base: Any, exponent: Any, node: Node) -> Any: ...
    def root(self, index: int, value: Any) -> Any: ...
    def ln(self, value: Any) -> Any: ...

    def run(self, node: Node, point: Mapping[str, Fraction]) -> tuple[Any, Any]:
        """Evaluate a tree.

        Args:
            node: The tree.
            point: The value of each symbol.

        Returns:
            (value, bound on its absolute error).

        Raises:
            Unknown: The tree has no value here. The number system's own errors may also be raised.
        """
        kind = node[0]
        if kind == "num":
            value = self.num(node[1])
        elif kind == "sym":
            value = self.num(point[node[1]])
        elif kind == "const":
            value = self.const(node[1])
        elif kind == "fn":
            return self._function(node[1], *self.run(node[2], point))
        elif kind in ("fact", "fact2", "binom"):
            value = self.num(Fraction(whole_number(node, point)))
        elif kind == "call":
            value = self.num(exact(node, point))
        elif kind == "inf":
            raise Unknown("infinity")
        else:
            return self._operation(kind, node, [self.run(part, point) for part in node[1:]])
        return value, abs(value) * self.eps

    def _operation(self, kind: str, node: Node, parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        """Evaluate an operation on one or two (value, error) pairs; with one, a and b are the same."""
        (a, ea), (b, eb) = parts[0], parts[-1]
        if kind == "neg":
            # Not -a, which would negate the zero imaginary part of a complex number: sqrt(-1) would become -i.
            return a * 0 - a, ea
        if kind == "add":
            value = a + b
            low, high = sorted((abs(a), abs(b)))
            # The smaller summand must keep 20 or more of its digits in the sum to count as present.
            self.exact_sums = self.exact_sums and (low == 0 or low > high * self.eps * 10**20)
            return value, ea + eb + abs(value) * self.eps
        if kind == "mul":
            value = a * b
            return value, abs(a) * eb + abs(b) * ea + ea * eb + abs(value) * self.eps
        if kind == "div":
            if abs(b) <= eb:  # the divisor may be zero within its error, as in 1 / (sqrt(2)^2 - 2)
                raise Unknown("division by zero")
            value = a / b
            return value, (ea + abs(value) * eb) / (abs(b) - eb) + abs(value) * self.eps
        return self._higher(kind, node, a, ea, b, eb)

    def _higher(self, kind: str, node: Node, a: Any, ea: Any, b: Any, eb: Any) -> tuple[Any, Any]:
        """Evaluate powers, roots and logarithms of operands a and b with errors ea and eb."""
        if kind == "pow":
            if a == 0 and ea == 0:
                if symbols(node[2]):  # 0^n is 0 at almost all points, and not at n = 0
                    raise Unknown("a power of zero")
                return self._power_of_zero(b)
            value = self.power(a, b, node)
            if abs(b) > eb and abs(b) < self.eps * 10**20:  # 2^(10^-80) is 1 with 60 digits
                self.exact_sums = False
            # d(a^b) / a^b = b da / a + ln(a) db
            relative = abs(b) * ea / abs(a)
            if eb and a != 0:
                relative += abs(self.ln(abs(a))) * (eb + abs(b) * self.eps)
            return value, abs(value) * (relative + 4 * self.eps)
        if kind == "root":
            index = integer(node[1])
            if not 2 <= index <= 1000:
                raise Unknown("index of a root")
            value = self.root(index, b)
            # the relative error of an n-th root is 1 / n of its operand's
            return value, (eb / (abs(b) * index) if b else 0) * abs(value) + 4 * abs(value) * self.eps
        if kind == "log":
            bottom = self.ln(a)
            if bottom == 0 or abs(b) <= eb:
                raise Unknown("logarithm")
            value = self.ln(b) / bottom
            # d(ln b) = db / b; the quotient rule for ln b / ln a gives the rest
            return value, (eb / abs(b) + abs(value) * ea / abs(a)) / abs(bottom) + (abs(value) + 1) * 8 * self.eps
        raise Unknown(kind)

    def _power_of_zero(self, exponent: Any) -> tuple[Any, Any]:
        if isinstance(exponent, complex) or exponent < 0:
            raise Unknown("a power of zero")
        value = self.num(Fraction(exponent == 0))
        return value, value * 0

    def _function(self, name: str, a: Any, ea: Any) -> tuple[Any, Any]:
        """Evaluate a function at a, which has the error ea. The new error is ea times twice the derivative's size."""
        if name == "abs":
            return abs(a), ea
        if name in ("floor", "ceil"):
            if isinstance(a, complex):
                raise Unknown("a complex number")
            nearest = self.num(Fraction(round(a)))
            # A value that is an integer within its error is taken for that integer: floor(log_2 8) is 3, whatever
            # side of 3 the rounded logarithm is on.
            if abs(a - nearest) <= 16 * ea:
                return nearest, ea * 0
            return self.num(Fraction(math.floor(a) if name == "floor" else math.ceil(a))), ea * 0
        value = self.fn(name, a)
        if abs(a) > ea:
            self.exact_sums = self.exact_sums and not self._absorbs(name, abs(a), abs(value))
        # The size of the derivative: |exp'| = |exp|; for the trigonometric and hyperbolic functions it is at most
        # 1 + value^2 (tan' = 1 + tan^2), and for arctan at most 1.
        slope = abs(value) if name == "exp" else 1 + abs(value) * abs(value)
        if name in ("arcsin", "arccos"):  # 1 / sqrt(1 - a^2), which is unbounded near -1 and 1
            slope = 1 / max(abs(1 - a * a), self.eps) ** (self.num(Fraction(1, 2)))
        own = abs(value) if name in _KEEP_ZERO else abs(value) + 1
        return value, ea * slope * 2 + own * 8 * self.eps

    def _absorbs(self, name: str, size: Any, value: Any) -> bool:
        """Return whether a function's value says nothing about its argument: cos(10^-40) is 1 with 60 digits."""
        tiny = self.eps * 10**20
        if name in ("cos", "sec", "cosh"):
            return bool(size * size < tiny)
        if name in ("exp", "arccos"):
            return bool(size < tiny)
        return name in ("arctan", "tanh") and bool(size > 1) and bool(size * tiny > 1 or abs(1 - value) < tiny)


def signed_root(index: int, value: Any, root: Callable[[Any], Any]) -> Any:
    """Return the real root, which exists for a negative number only if the index is odd.

    Args:
        index: The index of the root.
        value: The number.
        root: The root of this index for positive numbers.

    Raises:
        Unknown: The root is not real.
    """
    if value >= 0:
        return root(value) if value else value
    if index % 2 == 0:
        raise Unknown("even root of a negative number")
    return -root(-value)


def signed_power(exponent: Node, base: Any, power: Callable[[Any], Any]) -> Any:
    """Return the real power of a negative number, which exists for an exponent with an odd denominator only.

    Args:
        exponent: The tree of the exponent.
        base: The negative base.
        power: The power with this exponent for positive numbers.

    Raises:
        Unknown: The power is not real, or the exponent is not rational.
    """
    value = exact(exponent)
    if value.denominator % 2 == 0:
        raise Unknown("power of a negative number")
    return power(-base) * (-1 if value.numerator % 2 else 1)


def agree(a: tuple[Any, Any], b: tuple[Any, Any], tiny: Any) -> bool | None:
    """Return whether two values, each (value, error bound), are equal.

    Args:
        a: A value.
        b: Another value.
        tiny: The largest relative error with which equality is certain; see ``tree_cost.digits_needed``.

    Returns:
        False if they differ by more than their errors allow. True if they agree and the errors are small enough. None
        if the errors are too large to decide, as always with floats.
    """
    difference, error = abs(a[0] - b[0]), a[1] + b[1]
    if difference != difference or error != error:  # NaN
        return None
    if difference > 8 * error:
        return False
    size = max(abs(a[0]), abs(b[0]))
    # The second condition is for two values that are zero within their errors: no relative error exists for them.
    return True if error <= size * tiny or (size <= 8 * error and error < tiny) else None
