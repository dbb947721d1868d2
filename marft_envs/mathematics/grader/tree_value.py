"""The value of a tree of ``syntax`` in an arithmetic, with a bound on its rounding error. Standard library only: the
symbolic worker loads this file by its path.

Four arithmetics: integers modulo a prime (exact where there are only fractions and whole powers), floats (quick,
decides what differs), decimals of 60 digits (decides what is equal), and in the worker mpmath with everything else.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

Node = tuple[Any, ...]
MAX_FACTORIAL = 5_000
MAX_POWER_BITS = 4_096


class Unknown(ArithmeticError):
    """No value in this arithmetic: undefined there, unsupported, or too costly."""


class TooCostly(Unknown):
    """A factorial, power or tower beyond the bounds."""


def whole(node: Node) -> int:
    """The integer that a tree without symbols is; bounded in bits. Unknown for anything else."""
    value = exact(node)
    if value.denominator != 1:
        raise Unknown("not a whole number")
    return value.numerator


def small(node: Node) -> int:
    number = whole(node)
    if not 0 <= number <= MAX_FACTORIAL:
        raise TooCostly(f"factorial or binomial of {'a large' if number > 0 else 'a negative'} number")
    return number


def exact(node: Node, point: Mapping[str, Fraction] | None = None) -> Fraction:
    """The fraction that a tree is at ``point``, all steps within MAX_POWER_BITS."""
    kind = node[0]
    if kind == "num":
        return Fraction(node[1])
    if kind == "sym" and point and node[1] in point:
        return point[node[1]]
    if kind == "fact":
        number = small(node[1])
        if number > 400:
            raise TooCostly("a large factorial")
        return Fraction(math.factorial(number))
    if kind == "pow":
        base, power = exact(node[1], point), whole(node[2])
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(power) * size > MAX_POWER_BITS:
            raise TooCostly("a large power")
        if base == 0 and power < 0:
            raise Unknown("division by zero")
        return base**power
    if kind not in ("add", "mul", "div", "neg"):
        raise Unknown(kind)
    values = [exact(part, point) for part in node[1:]]
    if kind == "neg":
        return -values[0]
    if kind == "div" and values[1] == 0:
        raise Unknown("division by zero")
    a, b = values
    return a + b if kind == "add" else a * b if kind == "mul" else a / b


def is_rational(node: Node) -> bool:
    """Whether a tree holds only fractions, symbols, i and whole powers."""
    if node[0] in ("num", "sym") or node == ("const", "i"):
        return True
    if node[0] == "pow":
        return is_rational(node[1]) and not symbols(node[2]) and is_rational(node[2])
    return node[0] in ("add", "mul", "div", "neg", "fact", "binom") and all(map(is_rational, node[1:]))


def symbols(node: Node) -> frozenset[str]:
    """The names of the symbols in a tree."""
    if node[0] == "sym":
        return frozenset([node[1]])
    return frozenset().union(*(symbols(part) for part in node[1:] if isinstance(part, tuple)))


def costly(node: Node) -> bool:
    """Whether a tree holds a power or factorial of a constant that is beyond computing with all digits."""
    if node[0] in ("fact", "binom", "pow") and not symbols(node[-1] if node[0] == "pow" else node[1]):
        try:
            size = abs(exact(node[-1] if node[0] == "pow" else node[1]))
        except TooCostly:
            return True
        except Unknown:
            size = Fraction(0)
        if size > (10**4 if node[0] == "pow" else MAX_FACTORIAL):
            return True
    return any(costly(part) for part in node[1:] if isinstance(part, tuple))


def has(node: Node, *kinds: str) -> bool:
    """Whether a tree holds a node whose kind, or constant or function name, is one of ``kinds``."""
    if node[0] in kinds or (node[0] in ("const", "fn") and node[1] in kinds):
        return True
    return any(has(part, *kinds) for part in node[1:] if isinstance(part, tuple))


class Reals:
    """Arithmetic with an error bound. Subclasses give the numbers: eps, num, const, fn, power, root, log, fact."""

    eps: Any
    exact_sums = True  # False once a sum lost a summand that was not zero

    def num(self, value: Fraction) -> Any: ...
    def const(self, name: str) -> Any: ...
    def fn(self, name: str, value: Any) -> Any: ...
    def power(self, base: Any, exponent: Any, node: Node) -> Any: ...
    def root(self, index: int, value: Any) -> Any: ...
    def ln(self, value: Any) -> Any: ...
    def factorial(self, value: Any) -> Any: ...

    def run(self, node: Node, point: Mapping[str, Fraction]) -> tuple[Any, Any]:
        """(value, error bound). Unknown where there is none."""
        kind = node[0]
        if kind == "num":
            value = self.num(node[1])
        elif kind == "sym":
            value = self.num(point[node[1]])
        elif kind == "const":
            value = self.const(node[1])
        elif kind == "fn":
            return self._function(node[1], *self.run(node[2], point))
        else:
            return self._operation(kind, node, [self.run(part, point) for part in node[1:]])
        return value, abs(value) * self.eps

    def _operation(self, kind: str, node: Node, parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        (a, ea), (b, eb) = parts[0], parts[-1]
        if kind == "neg":
            return a * 0 - a, ea  # not -a: a complex zero keeps its sign, and the root of -1 would be -i
        if kind == "add":
            value = a + b
            low, high = sorted((abs(a), abs(b)))
            self.exact_sums = self.exact_sums and (low == 0 or low > high * self.eps * 10**20)
            return value, ea + eb + abs(value) * self.eps
        if kind == "mul":
            value = a * b
            return value, abs(a) * eb + abs(b) * ea + ea * eb + abs(value) * self.eps
        if kind == "div":
            if abs(b) <= eb:
                raise Unknown("division by zero")
            value = a / b
            return value, (ea + abs(value) * eb) / (abs(b) - eb) + abs(value) * self.eps
        return self._higher(kind, node, a, ea, b, eb)

    def _higher(self, kind: str, node: Node, a: Any, ea: Any, b: Any, eb: Any) -> tuple[Any, Any]:
        if kind == "pow":
            if a == 0 and ea == 0:
                return self._power_of_zero(b)
            value = self.power(a, b, node)
            spread = abs(b) * ea / abs(a)
            if eb and a != 0:
                spread += abs(self.ln(abs(a))) * (eb + abs(b) * self.eps)
            return value, abs(value) * (spread + 4 * self.eps)
        if kind == "root":
            index = whole(node[1])
            if not 2 <= index <= 1000:
                raise Unknown("index of a root")
            value = self.root(index, b)
            return value, (eb / (abs(b) * index) if b else 0) * abs(value) + 4 * abs(value) * self.eps
        if kind == "log":
            bottom = self.ln(a)
            if bottom == 0 or abs(b) <= eb:
                raise Unknown("logarithm")
            value = self.ln(b) / bottom
            return value, (eb / abs(b) + abs(value) * ea / abs(a)) / abs(bottom) + (abs(value) + 1) * 8 * self.eps
        if kind == "fact":
            value = self.factorial(a)
            return value, abs(value) * (self.eps * 16 + 10 * ea)
        if kind == "binom":
            value = self.factorial(a) / (self.factorial(b) * self.factorial(a - b))
            return value, abs(value) * (self.eps * 48 + 20 * (ea + eb))
        raise Unknown(kind)

    def _power_of_zero(self, exponent: Any) -> tuple[Any, Any]:
        if isinstance(exponent, complex) or exponent < 0:
            raise Unknown("a power of zero")
        value = self.num(Fraction(exponent == 0))
        return value, value * 0

    def _function(self, name: str, a: Any, ea: Any) -> tuple[Any, Any]:
        if name == "abs":
            return abs(a), ea
        if name in ("floor", "ceil"):
            if isinstance(a, complex):
                raise Unknown("a complex number")
            nearest = self.num(Fraction(round(a)))
            if abs(a - nearest) <= 16 * ea:
                return nearest, ea * 0
            return self.num(Fraction(math.floor(a) if name == "floor" else math.ceil(a))), ea * 0
        value = self.fn(name, a)
        slope = abs(value) if name == "exp" else 1 + abs(value) * abs(value)
        if name in ("arcsin", "arccos"):
            slope = 1 / max(abs(1 - a * a), self.eps) ** (self.num(Fraction(1, 2)))
        return value, ea * slope * 2 + (abs(value) + 1) * 8 * self.eps


def signed_root(index: int, value: Any, root: Callable[[Any], Any]) -> Any:
    """The real root: of a negative number for odd indices only."""
    if value >= 0:
        return root(value) if value else value
    if index % 2 == 0:
        raise Unknown("even root of a negative number")
    return -root(-value)


def signed_power(exponent: Node, base: Any, power: Callable[[Any], Any]) -> Any:
    """A negative number to a fraction with an odd denominator; anything else is not real."""
    value = exact(exponent)
    if value.denominator % 2 == 0:
        raise Unknown("power of a negative number")
    return power(-base) * (-1 if value.numerator % 2 else 1)


def points(names: Iterable[str]) -> list[dict[str, Fraction]]:
    """Where two expressions are compared: two places of positive numbers, two of both signs, four of whole numbers."""
    ordered = sorted(names)
    if not ordered:
        return [{}]
    places: list[dict[str, Fraction]] = [{} for _ in range(8)]
    for number, name in enumerate(ordered):
        step = Fraction(7919 * (number + 1) % 104_729, 104_729)
        sign = -1 if number % 2 else 1
        places[0][name] = Fraction(1013, 1009) + step * 2
        places[1][name] = Fraction(331, 997) + step * 5 / 3
        places[2][name] = sign * (Fraction(-1511, 1009) - step)
        places[3][name] = sign * (Fraction(701, 1013) + step * 2)
        for k in range(4):
            places[4 + k][name] = Fraction(k + 2 + (number * (3 + k)) % 7)
    return places


def agree(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool | None:
    """False: two values with error bounds differ. True: they agree to 30 digits and more. None: cannot tell."""
    difference, error = abs(a[0] - b[0]), a[1] + b[1]
    if difference != difference or error != error:
        return None
    if difference > 8 * error:
        return False
    size = max(abs(a[0]), abs(b[0]))
    tiny = type(size)("1e-30") if isinstance(size, decimal.Decimal) else type(size)(1e-30)
    return True if error <= size * tiny or (size <= 8 * error and error < tiny) else None
