"""Is an answer equal to the gold? Exact fractions for numbers, normalised text for the rest.

Policies, the same for every task:

* Two numbers are equal when their fractions are: 0.5 is 1/2, but 0.3333 is not 1/3. Nothing is rounded.
* Percent: 50% is 50% and 1/2, and also 50, because golds often leave the sign out. Where exactly one side has the sign,
  the other may be the number before it or a hundredth of that.
* Units: words after a number do not count where the other side has none; two different units are not equal. Currency
  signs, ordinal endings and degree signs never count. dozen, hundred, thousand, million, billion, trillion multiply.
* Letters that may be a variable (5x, 5 y) and words that change the number (or, not, half) are no unit.
* 1,000 and 1 000 are one thousand; 1.000 is one.
* A working such as "2 + 3 = 5" and a name such as "x = 5" answer 5, where the gold itself has no equals sign.
* Numbers of more than 10,000 digits, or with an exponent beyond 10,000, are compared as text.
* A gold that is no number is compared as text: spaces, $, \\left and \\right do not count, nor does the case of words.
  Equality of expressions is not looked for.
"""

from __future__ import annotations

import re

from marft_envs.mathematics.notation import clean, text_key
from marft_envs.mathematics.number import Number, parse_number

_PHRASE = re.compile(r"\\text\{\s?(?:the )?(?:final )?answer\s?(?:is)?\s?:?\s?\}\s?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z](?:_\w|_\{\w{1,3}\})?(?:\([A-Za-z\d]\))?\s?=\s?")
_WORKING = re.compile(r"(?:[\d\s.,+\-*/×·÷x()%]|\\times|\\cdot|\\div)++")
_OPERATION = re.compile(r"[\d)%]\s?(?:[-+*/×·÷x]|\\times|\\cdot|\\div)\s?[(\d.]")


def equal(answer: str, gold: str) -> bool:
    """Whether ``answer`` says what ``gold`` says, under the policies above."""
    wanted = parse_number(gold)
    if "=" not in gold:
        answer = _without_working(answer)
    if wanted is None:
        return text_key(answer) == text_key(gold)
    given = parse_number(answer)
    return given is not None and numbers_equal(given, wanted)


def numbers_equal(a: Number, b: Number) -> bool:
    """Equality of fractions, with the policies for percent and units."""
    if a.unit and b.unit and a.unit != b.unit:
        return False
    if a.percent == b.percent:
        return a.value == b.value
    sign, bare = (a, b) if a.percent else (b, a)
    return bare.value in (sign.value, sign.value / 100)


def _without_working(answer: str) -> str:
    r"""``x = 5``, ``2 + 3 = 5`` and ``\text{The answer is } 5`` as ``5``; anything else unchanged."""
    text = _PHRASE.sub("", clean(answer), count=1) if r"\text" in answer else clean(answer)
    if "=" not in text:
        return text
    name = _NAME.match(text)
    text = text[name.end() :] if name else text
    left, _, right = text.rpartition("=")
    steps = [step for step in left.split("=") if step.strip()]
    if all(map(_WORKING.fullmatch, steps)) and (not steps or _OPERATION.search(steps[0])):
        return right
    return text
