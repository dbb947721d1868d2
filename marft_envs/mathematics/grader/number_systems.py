"""Number systems in which expression trees are evaluated: integers modulo a prime, floats, complex floats, decimals."""

from __future__ import annotations

import cmath
import decimal
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from marft_envs.mathematics.grader.tree_value import (
    MAX_FACTORIAL,
    Node,
    Reals,
    Unknown,
    bounded_integer,
    integer,
    signed_power,
    signed_root,
)

# Each prime is 1 modulo 4, so -1 has a square root, which represents i. The roots are values of this mapping.
PRIMES = {2**61 - 31: 583529827753931384, 2**89 - 31: 91917684975519951292599774}
_PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
CONTEXT = decimal.Context(
    prec=60, Emax=10**15, Emin=-(10**15), traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
)


class Modular:
    """Integers modulo a prime: fast, without rounding, for fractions, integer powers, factorials and i."""

    def __init__(self, prime: int) -> None:
        self.prime = prime
        self.eps = 0

    def num(self, value: Fraction) -> int:
        return value.numerator * self.inverse(value.denominator) % self.prime

    def inverse(self, value: int) -> int:
        if value % self.prime == 0:
            raise Unknown("division by zero")
        return pow(value, -1, self.prime)

    def run(self, node: Node, point: Mapping[str, Fraction]) -> int:
        """Return the value of a tree at ``point`` modulo the prime.

        Raises:
            Unknown: The tree has a node that is not rational, or divides by a multiple of the prime.
        """
        kind = node[0]
        if kind == "num":
            return self.num(node[1])
        if kind == "sym":
            return self.num(point[node[1]])
        if node == ("const", "i"):
            return PRIMES[self.prime]
        if kind == "pow":
            return self._power(self.run(node[1], point), integer(node[2]))
        if kind == "fact":
            return math.factorial(bounded_integer(node[1])) % self.prime
        if kind == "binom":
            return math.comb(bounded_integer(node[1]), bounded_integer(node[2])) % self.prime
        if kind not in ("add", "mul", "div", "neg"):
            raise Unknown(kind)
        values = [self.run(part, point) for part in node[1:]]
        if kind == "neg":
            return -values[0] % self.prime
        a, b = values
        return (a + b if kind == "add" else a * b if kind == "mul" else a * self.inverse(b)) % self.prime

    def _power(self, base: int, exponent: int) -> int:
        if exponent < 0:
            base, exponent = self.inverse(base), -exponent
        return pow(base, exponent, self.prime)


_FLOAT_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "exp": math.exp,
    "cot": lambda x: 1 / math.tan(x), "sec": lambda x: 1 / math.cos(x), "csc": lambda x: 1 / math.sin(x),
}  # fmt: skip


class Floats(Reals):
    """Floats with real functions; roots and powers that are not real have no value."""

    eps = 2.0**-52

    def num(self, value: Fraction) -> float:
        return float(value)

    def const(self, name: str) -> float:
        return {"pi": math.pi, "e": math.e}[name]

    def fn(self, name: str, value: float) -> float:
        return _FLOAT_FUNCTIONS[name](value)

    def power(self, base: float, exponent: float, node: Node) -> float:
        if base < 0 and exponent != int(exponent):
            return signed_power(node[2], base, lambda size: size**exponent)
        return base**exponent

    def root(self, index: int, value: float) -> float:
        return signed_root(index, value, lambda size: size ** (1 / index))

    def ln(self, value: float) -> float:
        return math.log(value)

    def factorial(self, value: float) -> float:
        return math.gamma(value + 1)


class Complexes(Floats):
    """Complex floats with principal values, for expressions that contain i."""

    def num(self, value: Fraction) -> Any:
        return complex(value)

    def const(self, name: str) -> Any:
        return 1j if name == "i" else complex(super().const(name))

    def fn(self, name: str, value: Any) -> Any:
        if name in ("cot", "sec", "csc"):
            return 1 / {"cot": cmath.tan, "sec": cmath.cos, "csc": cmath.sin}[name](value)
        return getattr(cmath, {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}.get(name, name))(value)

    def power(self, base: Any, exponent: Any, node: Node) -> Any:
        return base**exponent

    def root(self, index: int, value: Any) -> Any:
        return value ** (1 / index)

    def ln(self, value: Any) -> Any:
        return cmath.log(value)

    def factorial(self, value: Any) -> Any:
        if value.imag:
            raise Unknown("factorial")
        return complex(math.gamma(value.real + 1))


class Decimals(Reals):
    """Decimals of 60 digits: fractions, roots, powers, logarithms, pi and e; no trigonometric functions.

    Use it inside ``decimal.localcontext(CONTEXT)``.
    """

    eps = decimal.Decimal("1e-58")  # two digits fewer than the context's precision, for the error of exp and ln

    def num(self, value: Fraction) -> decimal.Decimal:
        return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)

    def const(self, name: str) -> decimal.Decimal:
        return {"pi": lambda: decimal.Decimal(_PI) + 0, "e": lambda: decimal.Decimal(1).exp()}[name]()

    def fn(self, name: str, value: decimal.Decimal) -> decimal.Decimal:
        if name == "exp":
            return value.exp()
        raise Unknown(name)

    def power(self, base: decimal.Decimal, exponent: decimal.Decimal, node: Node) -> decimal.Decimal:
        if base < 0 and exponent != exponent.to_integral_value():
            return signed_power(node[2], base, lambda size: size**exponent)
        return base**exponent

    def root(self, index: int, value: decimal.Decimal) -> decimal.Decimal:
        if index == 2:
            return value.sqrt()
        return signed_root(index, value, lambda size: size ** (decimal.Decimal(1) / index))

    def ln(self, value: decimal.Decimal) -> decimal.Decimal:
        return value.ln()

    def factorial(self, value: decimal.Decimal) -> decimal.Decimal:
        if value != value.to_integral_value() or not 0 <= value <= MAX_FACTORIAL:
            raise Unknown("factorial")
        return decimal.Decimal(math.factorial(int(value))) + 0
