"""Number systems in which expression trees are evaluated: integers modulo a prime, floats, complex floats, decimals."""

from __future__ import annotations

import cmath
import decimal
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from marft_envs.mathematics.grader.tree_value import (
    Node,
    Reals,
    Unknown,
    integer,
    signed_power,
    signed_root,
    symbols,
    whole_number,
)

PRIME_BITS = 89
MAX_EXPONENT_BITS = 64  # a longer exponent could be a multiple of p - 1 for many primes p
MAX_FALLING = 100  # the largest k for which n over k is computed as a polynomial in n
_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
MAX_SERIES_DIGITS = 400  # exponential functions and logarithms of more digits are left to the symbolic worker


def context(digits: int) -> decimal.Context:
    """Return the context in which ``Decimals`` computes with this many digits."""
    traps = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
    return decimal.Context(prec=digits, Emax=10**15, Emin=-(10**15), traps=traps)


@lru_cache(maxsize=4096)
def prime(seed: int) -> tuple[int, int]:
    """Return (a prime p that is 1 modulo 4, a square root of -1 modulo p), drawn with a seed.

    The prime has PRIME_BITS bits. There are 10^24 of them, so no answer can be written that is equal to the gold modulo
    the prime without knowing the gold.
    """
    rng = random.Random(seed)
    while True:
        candidate = (rng.getrandbits(PRIME_BITS - 3) << 2) | (1 << (PRIME_BITS - 1)) | 1
        if _is_prime(candidate):
            break
    while True:  # half of all numbers have no square root, and their power (p - 1) / 4 is one of -1
        root = pow(rng.randrange(2, candidate), (candidate - 1) // 4, candidate)
        if root * root % candidate == candidate - 1:
            return candidate, root


def _is_prime(number: int) -> bool:
    """Return whether a number is prime, by the test of Miller and Rabin with 13 bases.

    Up to 3 * 10^24 the test is exact (Sorenson and Webster, 2015, https://doi.org/10.1090/mcom/3134). A larger
    composite number that passes it by chance is as good as a prime here.
    """
    if any(number % small == 0 for small in _SMALL_PRIMES):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in _SMALL_PRIMES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


class Modular:
    """Integers modulo a prime: fast, without rounding, for fractions, integer powers, factorials and i.

    Args:
        seed: The seed of the prime.
    """

    def __init__(self, seed: int) -> None:
        self.prime, self.root_of_minus_one = prime(seed)

    def num(self, value: Fraction | int) -> int:
        return value.numerator * self.inverse(value.denominator) % self.prime

    def inverse(self, value: int) -> int:
        if value == 1:
            return 1
        if value % self.prime == 0:
            raise Unknown("division by zero")
        return pow(value, -1, self.prime)

    def run(self, node: Node, point: Mapping[str, Fraction]) -> int:
        """Return the value of a tree at a point with integers, modulo the prime.

        Raises:
            Unknown: The tree has a node that is not rational, or divides by a multiple of the prime.
        """
        kind = node[0]
        if kind == "num":
            return self.num(node[1])
        if kind == "sym":
            return self.num(point[node[1]])
        if node == ("const", "i"):
            return self.root_of_minus_one
        if kind == "pow":
            base, exponent = self.run(node[1], point), integer(node[2], point)
            if base == 0 and symbols(node[2]):  # 0^n is 0 at almost all points, and not at n = 0
                raise Unknown("a power of zero")
            return self._power(base, exponent)
        if kind == "binom" and node[2][0] == "num" and node[2][1].denominator == 1 and node[1][0] != "num":
            return self._binomial(self.run(node[1], point), int(node[2][1]))
        if kind in ("fact", "fact2", "binom"):
            return whole_number(node, point) % self.prime
        if kind not in ("add", "mul", "div", "neg"):
            raise Unknown(kind)
        values = [self.run(part, point) for part in node[1:]]
        if kind == "neg":
            return -values[0] % self.prime
        a, b = values
        return (a + b if kind == "add" else a * b if kind == "mul" else a * self.inverse(b)) % self.prime

    def _power(self, base: int, exponent: int) -> int:
        if exponent.bit_length() > MAX_EXPONENT_BITS:
            raise Unknown("a large exponent")
        if exponent < 0:
            base, exponent = self.inverse(base), -exponent
        return pow(base, exponent, self.prime)

    def _binomial(self, top: int, bottom: int) -> int:
        """Return the polynomial top (top - 1) ... (top - bottom + 1) / bottom!."""
        if not 0 <= bottom <= MAX_FALLING:
            raise Unknown("a large binomial")
        falling = 1
        for step in range(bottom):
            falling = falling * (top - step) % self.prime
        return falling * self.inverse(math.factorial(bottom)) % self.prime


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


class Decimals(Reals):
    """Decimals: fractions, roots, powers, logarithms, pi and e; no trigonometric functions.

    Use it inside ``decimal.localcontext(context(digits))``.

    Args:
        digits: The number of digits.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.eps = decimal.Decimal(1).scaleb(2 - digits)  # two digits are left for the errors of exp and ln

    def num(self, value: Fraction) -> decimal.Decimal:
        return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)

    def const(self, name: str) -> decimal.Decimal:
        if name == "pi":
            return pi(self.digits) + 0
        self._check_series()
        return {"e": decimal.Decimal(1).exp}[name]()

    def fn(self, name: str, value: decimal.Decimal) -> decimal.Decimal:
        self._check_series()
        if name == "exp":
            return value.exp()
        raise Unknown(name)

    def power(self, base: decimal.Decimal, exponent: decimal.Decimal, node: Node) -> decimal.Decimal:
        if exponent == exponent.to_integral_value():
            return base**exponent
        self._check_series()
        if base < 0:
            return signed_power(node[2], base, lambda size: size**exponent)
        return base**exponent

    def root(self, index: int, value: decimal.Decimal) -> decimal.Decimal:
        if index == 2:
            return value.sqrt()
        self._check_series()
        return signed_root(index, value, lambda size: size ** (decimal.Decimal(1) / index))

    def ln(self, value: decimal.Decimal) -> decimal.Decimal:
        self._check_series()
        return value.ln()

    def _check_series(self) -> None:
        if self.digits > MAX_SERIES_DIGITS:
            raise Unknown("a function with this many digits")


@lru_cache(maxsize=16)
def pi(digits: int) -> decimal.Decimal:
    """Return pi with this many digits, by the formula of Machin: pi = 16 arctan(1/5) - 4 arctan(1/239)."""
    one = 10 ** (digits + 10)
    return decimal.Decimal(16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)).scaleb(-digits - 10)


def _arctan_of_inverse(number: int, one: int) -> int:
    """Return arctan(1 / number) as a multiple of 1 / one, by its power series."""
    power = total = one // number
    divisor, sign = 3, -1
    while power:
        power //= number * number
        total += sign * (power // divisor)
        divisor, sign = divisor + 2, -sign
    return total
