"""Equality of two numbers with percent signs and units, under a policy."""

from __future__ import annotations

from fractions import Fraction

from marft_envs.mathematics.number import Number
from marft_envs.mathematics.policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.units import read_unit


def numbers_equal(a: Number, b: Number, policy: GradingPolicy = DEFAULT_POLICY) -> bool:
    """Equality of fractions, with the policies for percent, units and rounding; ``b`` is the gold."""
    scale = Fraction(1)
    if policy.units == "required" and b.unit and not a.unit:
        return False
    if a.unit and b.unit and policy.units != "ignored":
        given, wanted = read_unit(a.unit), read_unit(b.unit)
        if given.measures != wanted.measures:
            return False
        scale = given.factor / wanted.factor
    if a.percent == b.percent:
        return _near(a.value * scale, b.value, policy)
    if policy.percent == "strict":
        return _near(a.value / (100 if a.percent else 1), b.value / (100 if b.percent else 1), policy)
    sign, bare = (a, b) if a.percent else (b, a)
    return any(_near(bare.value, value, policy) for value in (sign.value, sign.value / 100))


def _near(a: Fraction, b: Fraction, policy: GradingPolicy) -> bool:
    return a == b or (policy.rounding > 0 and abs(a - b) <= Fraction(policy.rounding) * abs(b))
