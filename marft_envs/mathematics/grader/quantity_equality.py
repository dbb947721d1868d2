"""Equality of two numbers with percent signs and units, under a policy."""

from __future__ import annotations

import re
from fractions import Fraction

from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.number import Number
from marft_envs.mathematics.grader.units import read_unit

_SIGNS = {r"\$": "dollar", "€": "euro", "₹": "rupee"}
_CURRENCY = re.compile(r"\\\$|[€₹]|\b(?:dollar|cent|euro|rupee)s?\b|\b(?:USD|EUR)\b", re.IGNORECASE)
_AMOUNT = r"(-?[\d.,{}!\\ ]*\d)"
_MONEY = re.compile(rf"(-?)\s*+(\\\$|[€₹])\s*+{_AMOUNT}|{_AMOUNT}\s*+([€₹])")


def with_currencies(answer: str, gold: str) -> tuple[str, str]:
    r"""Where both name a currency, \$5 as 5 dollar: it is 500 cents and not 5 euros. A bare $ is LaTeX's delimiter.

    £ and ¥ stay without: they are pounds and yuan in some texts, and something else in others.
    """
    if not _CURRENCY.search(answer) or not _CURRENCY.search(gold):
        return answer, gold
    return _in_words(answer), _in_words(gold)


def _in_words(text: str) -> str:
    match = _MONEY.fullmatch(text.strip())
    return f"{match[1] or ''}{match[3] or match[4]} {_SIGNS[match[2] or match[5]]}" if match else text


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
