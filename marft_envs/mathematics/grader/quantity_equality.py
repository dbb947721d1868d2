"""Equality of two numbers with percent signs, units and currencies, under a policy."""

from __future__ import annotations

import re
from fractions import Fraction

from marft_envs.mathematics.grader.decision import EQUAL, Decision, different, unknown
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.number import Number
from marft_envs.mathematics.grader.units import is_known, read_unit

FLOAT_DIGITS = 15
MOST_FLOAT_DIGITS = 17
FLOAT_ERROR = Fraction(1, 2**52)
_SIGNS = {r"\$": "dollar", "€": "euro", "₹": "rupee"}
_CURRENCY = re.compile(r"\\\$|[€₹]|\b(?:dollar|cent|euro|rupee)s?\b|\b(?:USD|EUR)\b", re.IGNORECASE)
_AMOUNT = r"(-?[\d.,{}!\\ ]*\d)"
_MONEY = re.compile(rf"(-?)\s*+(\\\$|[€₹])\s*+{_AMOUNT}|{_AMOUNT}\s*+([€₹])")


def with_currencies(answer: str, gold: str) -> tuple[str, str]:
    r"""Return both strings with currency signs written as units, if both name a currency.

    \$5 becomes ``5 dollar``, which equals 500 cents and differs from 5 euros. If only one side names a currency, both
    are returned unchanged, and normalization drops the sign later. A bare $ is LaTeX's delimiter, and £ and ¥ are
    ambiguous (yen or yuan, for example), so they are never units.
    """
    if not _CURRENCY.search(answer) or not _CURRENCY.search(gold):
        return answer, gold
    return _sign_as_unit(answer), _sign_as_unit(gold)


def is_currency_against_percent(answer: str, gold: str) -> bool:
    """Return whether exactly one of two strings has a percent sign, and only the other one names a currency."""
    if ("%" in answer) == ("%" in gold):
        return False
    percentage, other = (answer, gold) if "%" in answer else (gold, answer)
    return _CURRENCY.search(other) is not None and _CURRENCY.search(percentage) is None


def _sign_as_unit(text: str) -> str:
    match = _MONEY.fullmatch(text.strip())
    return f"{match[1] or ''}{match[3] or match[4]} {_SIGNS[match[2] or match[5]]}" if match else text


def compare_numbers(answer: Number, gold: Number, policy: GradingPolicy = DEFAULT_POLICY) -> Decision:
    """Compare two exact numbers under the policies for percent signs, units and rounding."""
    scale = Fraction(1)
    if policy.units == "required" and gold.unit and not answer.unit:
        return different("the unit is missing")
    if not answer.is_closed and answer.unit.casefold() != gold.unit.casefold():
        return unknown("a word after the number is neither a known unit nor a neutral noun, nor in the gold")
    percentage, other = (answer, gold) if answer.percent else (gold, answer)
    if percentage.percent and not other.percent and is_known(other.unit) and not percentage.unit:
        return different("one is a percentage, the other has a unit")
    if answer.unit and gold.unit and policy.units != "ignored":
        answer_unit, gold_unit = read_unit(answer.unit), read_unit(gold.unit)
        if answer_unit.measures != gold_unit.measures:
            return different("the units are different")
        scale = answer_unit.factor / gold_unit.factor
    if _same_values(answer, gold, scale, policy) or _is_rounded(answer, gold) or _is_rounded(gold, answer):
        return EQUAL
    return different("the numbers are different")


def _is_rounded(decimal: Number, other: Number) -> bool:
    """Return whether a decimal of a float's precision stands for a number that no decimal equals, such as 1/12."""
    denominator = other.value.denominator
    while denominator % 2 == 0:
        denominator //= 2
    while denominator % 5 == 0:
        denominator //= 5
    if denominator == 1 or decimal.unit or other.unit or decimal.percent or other.percent:
        return False
    return is_float_of(decimal, other.value)


def is_float_of(decimal: Number, value: Fraction) -> bool:
    """Return whether a decimal with at least FLOAT_DIGITS significant digits is ``value``, rounded or truncated.

    With 16 or 17 digits, it may have the rounding error of a float.
    """
    unit = Fraction(1, 10**decimal.decimals)
    digits = abs(decimal.value) / unit
    if not decimal.decimals or digits < 10 ** (FLOAT_DIGITS - 1):
        return False
    excess = abs(decimal.value) - abs(value) if (decimal.value < 0) == (value < 0) else abs(decimal.value - value)
    if 10**FLOAT_DIGITS <= digits < 10**MOST_FLOAT_DIGITS and abs(excess) <= abs(value) * FLOAT_ERROR:
        return True
    return -unit < excess <= unit / 2


def _same_values(answer: Number, gold: Number, scale: Fraction, policy: GradingPolicy) -> bool:
    """Return whether two numbers are equal, the answer in the gold's unit after it is multiplied by ``scale``."""
    if answer.percent == gold.percent:
        return _near(answer.value * scale, gold.value, policy)
    if policy.percent == "strict":
        return _near(_without_percent(answer), _without_percent(gold), policy)
    # Exactly one side has the sign. The other side may mean the number before the sign (50) or its value (1/2).
    percentage, bare = (answer, gold) if answer.percent else (gold, answer)
    return any(_near(bare.value, value, policy) for value in (percentage.value, percentage.value / 100))


def _without_percent(number: Number) -> Fraction:
    return number.value / (100 if number.percent else 1)


def _near(a: Fraction, b: Fraction, policy: GradingPolicy) -> bool:
    return a == b or (policy.rounding > 0 and abs(a - b) <= Fraction(policy.rounding) * abs(b))
