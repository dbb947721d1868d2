r"""Exact numbers with units: integers, separators, decimals, fractions and powers of ten.

Values are fractions, never floats, and no string is evaluated. The patterns use possessive quantifiers, so that no
input causes backtracking, and a number beyond MAX_DIGITS or MAX_EXPONENT is not read as a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from marft_envs.mathematics.grader.neutral_words import is_neutral, is_noun
from marft_envs.mathematics.grader.normalization import normalize, unwrap_text
from marft_envs.mathematics.grader.units import is_known, is_unit_word

MAX_DIGITS = 10_000
MAX_EXPONENT = 10_000
_CHUNK = 600  # int() accepts 640 digits whatever the value of sys.set_int_max_str_digits

_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})++|\d{1,3}(?: \d{3})++(?!\d)|\d++)(?:\.\d*+)?+|\.\d++)"
_SIGNED = rf"(?:[-+]\s?)?+{_DECIMAL}"
_EXPONENT = r"(?:\{\s?(?P<braced>[-+]?\d{1,9}+)\s?\}|(?P<plain>[-+]?\d{1,9}+))"
_ARGUMENTS = rf"\s?(?:\{{\s?(?P<top>{_SIGNED})\s?\}}|(?P<t>\d))\s?(?:\{{\s?(?P<bottom>{_SIGNED})\s?\}}|(?P<b>\d))"
_FRAC = re.compile(rf"(?:(?P<whole>\d++)\s?)?+\\frac{_ARGUMENTS}")
_MIXED = re.compile(r"(?P<whole>\d++) (?P<top>[1-9]\d*+)\s?/\s?(?P<bottom>\d++)")
_SLASH = re.compile(rf"(?P<top>{_DECIMAL})\s?/\s?(?P<bottom>{_DECIMAL})")
_SCIENTIFIC = re.compile(
    rf"(?P<mantissa>{_DECIMAL})(?:[eE]|\s?(?:\\times|\\cdot|[×·⋅x*])\s?10\s?\^\s?){_EXPONENT}"
    rf"|10\s?\^\s?{_EXPONENT.replace('P<', 'P<ten_')}"
)
_REPEATING = re.compile(
    r"(?P<whole>\d*+)\.(?P<fixed>\d*+)"
    r"(?:\\overline\{(?P<bar>\d++)\}|\((?P<round>\d++)\)"
    r"|\\dot ?\{?(?P<first>\d)\}?(?:(?P<middle>\d*+)\\dot ?\{?(?P<last>\d)\}?)?+)"
)
_ELLIPSIS = re.compile(r"(?P<whole>\d*+)\.(?P<digits>\d{1,60}+) ?\\[lc]?dots(?![A-Za-z])")
_PERIOD = re.compile(r"(?P<fixed>\d*?)(?:(?P<one>\d)(?P=one){2,}|(?P<period>\d{2,8}?)(?P=period)+)")
_DOTTED = re.compile(r"[-+]?\d{1,3}(?:\.\d{3}){2,}+")
_PLAIN = re.compile(_DECIMAL)
_SIGN = re.compile(r"(?:USD|EUR|GBP)?\s?([-+]?)\s?")

_PERCENT = re.compile(r"\s*+(?:%|per ?cent\b)")
_DEGREE = re.compile(r"\s*+(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ)|°|\\degrees?\b|degrees?\b)")
_ORDINAL = re.compile(r"\s?\^?\s?\{?\s?(?:st|nd|rd|th)\b\s?\}?")
_WORD = r"[^\W\d_]++(?:['’-][^\W\d_]++)*+\.?+(?:\s?\^\s?(?:\{-?[1-9]\}|-?[1-9]))?+"
_UNIT = re.compile(rf"/?\s?{_WORD}(?:[ /,]++{_WORD})*+")
_SCALES = {"dozen": 12, "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE = re.compile(rf"\s*({'|'.join(_SCALES)})\b", re.IGNORECASE)
_NOT_A_UNIT = (
    "or and not no to but nor than more less fewer least most approximately minus plus times divided over mod modulo "
    "squared cubed factorial choose sin cos tan log ln exp sqrt root pi infinity undefined if when only either is are "
    "was be below above under wrong false true negative point double triple twice dozen hundred thousand million "
    "billion trillion"
)
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_NO_UNIT = frozenset([*_NOT_A_UNIT.split(), *_PARTS, *(f"{part}s" for part in _PARTS)])
_ENDING_WORDS = "total altogether overall each left remaining all long wide tall high deep old"
_ENDINGS = frozenset(_ENDING_WORDS.split())
_PART = re.compile(
    r"\s*+(?P<and>and\s++)?(?:(?P<count>an?|one|two|three|four|five|six|seven|eight|nine|\d{1,3}+)\s++)?"
    rf"(?P<part>{'|'.join(sorted(_PARTS, key=len, reverse=True))})(?P<plural>s?)\b",
    re.IGNORECASE,
)
_TWO_LETTERS = "mm cm km kg mg lb oz ft in yd mi mph hr min ml hz kw am pm of at an"
_SHORT_UNITS = frozenset(_TWO_LETTERS.split())  # units without \text, with or without a space before them
_SPACED_UNITS = frozenset("mgshl")  # units without \text, only after a space
_MAX_WORDS = 8
_LETTERS = re.compile(r"[^\W\d_]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_NO_CHINESE_UNIT = re.compile(r"[和或与至到约余又加减乘除多少不百千万亿]")
"""Words (and, or, about ...) and larger numbers. The units 千米 and 千克 are looked up before this pattern is used."""
_CHINESE_SCALES = {"万": 10**4, "亿": 10**8}
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_WORD_VALUES = {word: value for value, word in enumerate(_NUMBER_WORDS.split())}


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number.

    Attributes:
        value: The value as written: 50 for 50%.
        percent: Whether a percent sign follows.
        unit: The unit, or the words that name what is counted; "" for none.
        is_closed: Whether every word of the unit is a known unit or a neutral word. Another word may change the value,
            so it counts only if the other side of the comparison has it too.
        decimals: The number of digits after the decimal point, if it is written as a decimal.
    """

    value: Fraction
    percent: bool = False
    unit: str = ""
    is_closed: bool = True
    decimals: int = 0


def parse_number(text: str) -> Number | None:
    """Return the number that ``text`` consists of, with its unit; None if it is anything else or too long."""
    text = normalize(text)
    if _DOTTED.fullmatch(text):  # 1.000.000; a single group, as in 1.234, is a decimal
        text = text.replace(".", "")
    sign = _SIGN.match(text)
    assert sign is not None  # the pattern matches the empty string
    if len(text) > MAX_DIGITS * 2:
        return None
    if (word := unwrap_text(text).strip().casefold()) in _WORD_VALUES:
        return Number(Fraction(_WORD_VALUES[word]))
    # The order matters: a later reader would accept the beginning of what an earlier one reads in full.
    readers = (_read_frac, _read_mixed, _read_slash, _read_scientific, _read_repeating, _read_ellipsis, _read_plain)
    for read in readers:
        result = read(text, sign.end())
        if result is not None:
            value, end = result
            number = _with_unit(-value if sign.group(1) == "-" else value, text[end:])
            if number is not None and read is _read_plain and "." in text[:end]:
                number = replace(number, decimals=end - text.index(".") - 1)
            return number
    return None


def _read_frac(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""Read \frac{a}{b}, \frac12, and 4\frac{2}{3}, which is 4 + 2/3."""
    m = _FRAC.match(text, start)
    if m is None:
        return None
    value = _ratio(m["top"] or m["t"], m["bottom"] or m["b"])
    whole = _decimal(m["whole"] or "0")
    if value is None or whole is None or (m["whole"] and not 0 < value < 1):
        return None
    return whole + value, m.end()


def _read_mixed(text: str, start: int) -> tuple[Fraction, int] | None:
    """Read 4 2/3. With an improper fraction (4 5/3) it is not a number."""
    m = _MIXED.match(text, start)
    value = _ratio(m["top"], m["bottom"]) if m else None
    whole = _decimal(m["whole"]) if m else None
    return (whole + value, m.end()) if m and value is not None and whole is not None and value < 1 else None


def _read_slash(text: str, start: int) -> tuple[Fraction, int] | None:
    m = _SLASH.match(text, start)
    value = _ratio(m["top"], m["bottom"]) if m else None
    return (value, m.end()) if m and value is not None else None


def _read_scientific(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""Read 1.2e3, 1.2 \times 10^3 and 10^3."""
    m = _SCIENTIFIC.match(text, start)
    if m is None:
        return None
    mantissa = _decimal(m["mantissa"] or "1")
    exponent = int(m["braced"] or m["plain"] or m["ten_braced"] or m["ten_plain"])
    if mantissa is None or abs(exponent) > MAX_EXPONENT:
        return None
    return mantissa * Fraction(10) ** exponent, m.end()


def _read_repeating(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""Read 0.1\overline{6}, 0.1(6) and 0.1\dot{6}, which are 1/6; 0.\dot{1}42\dot{8} repeats 1428."""
    m = _REPEATING.match(text, start)
    if m is None:
        return None
    period = m["bar"] or m["round"] or m["first"] + (m["middle"] or "") + (m["last"] or "")
    value = _periodic(m["whole"], m["fixed"], period)
    return (value, m.end()) if value is not None else None


def _read_ellipsis(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""Read 0.333\ldots, which is 1/3.

    A period is one digit written three times or several digits written twice; other digits are read as they are.
    """
    m = _ELLIPSIS.match(text, start)
    if m is None:
        return None
    repetition = _PERIOD.fullmatch(m["digits"])
    period = (repetition["one"] or repetition["period"]) if repetition else "0"
    value = _periodic(m["whole"], repetition["fixed"] if repetition else m["digits"], period)
    return (value, m.end()) if value is not None else None


def _periodic(whole: str, fixed: str, period: str) -> Fraction | None:
    """Return whole.fixed followed by the repeating period: with n digits, a period p adds p / (10^n - 1)."""
    before, repeated = _decimal(f"{whole}.{fixed}0"), _decimal(period)
    if before is None or repeated is None:
        return None
    return before + repeated / (10 ** len(period) - 1) / 10 ** len(fixed)


def _read_plain(text: str, start: int) -> tuple[Fraction, int] | None:
    m = _PLAIN.match(text, start)
    value = _decimal(m.group()) if m else None
    return (value, m.end()) if m and value is not None else None


def _ratio(top: str, bottom: str) -> Fraction | None:
    numerator, denominator = _decimal(top), _decimal(bottom)
    return numerator / denominator if numerator is not None and denominator else None


def _decimal(text: str) -> Fraction | None:
    """Read a decimal with separators, in chunks that stay below Python's limit on the digits of an int."""
    text = text.replace(",", "").replace(" ", "")
    negative, digits = text.startswith("-"), text.lstrip("+-")
    whole, _, fraction = digits.partition(".")
    digits = whole + fraction
    if len(digits) > MAX_DIGITS:
        return None
    value = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return Fraction(-value if negative else value, 10 ** len(fraction))


def _with_unit(value: Fraction, rest: str) -> Number | None:
    """Return the number with ``rest`` read as percent sign, scale and unit; None if ``rest`` is anything else."""
    attached = rest[:1].isalpha()
    wrapped = rest.lstrip().startswith(r"\text")
    rest = unwrap_text(rest)
    percent = _PERCENT.match(rest)
    for mark in (percent, _DEGREE.match(rest), _ORDINAL.match(" ".join(rest.split()))):
        if mark:
            rest, attached = (" ".join(rest.split()) if mark.re is _ORDINAL else rest)[mark.end() :], False
            break
    if scale := _SCALE.match(rest):
        value, rest, attached = value * _SCALES[scale.group(1).lower()], rest[scale.end() :], False
    elif not attached and percent is None and (part := _PART.match(rest)):
        with_part = _with_part(value, part)
        if with_part is None:
            return None
        value, rest = with_part, rest[part.end() :]
    if rest[:1] in _CHINESE_SCALES:
        value, rest = value * _CHINESE_SCALES[rest[0]], rest[1:]
    unit = " ".join(rest.split()).rstrip(".")
    if unit and not _is_unit(unit, attached=attached, wrapped=wrapped):
        return None
    return Number(value, percent is not None, _unit_key(unit), not unit or is_neutral_phrase(unit))


def _with_part(value: Fraction, part: re.Match[str]) -> Fraction | None:
    """Return the value of "5 sevenths", which is 5/7, or of "2 and a half", which is 5/2."""
    name = part["part"].lower()
    share = Fraction(1, _PARTS[name])
    if part["and"]:
        count = part["count"] or ""
        number = Fraction(count) if count.isdecimal() else Fraction(_WORD_VALUES.get(count.lower(), 1))
        if not part["count"] or number * share >= 1 or value.denominator != 1:
            return None
        return value - number * share if value < 0 else value + number * share
    plural = bool(part["plural"]) or name == "halves"
    if part["count"] or value.denominator != 1 or plural == (value == 1):  # "5 third" is no fraction
        return None
    return value * share


def is_neutral_phrase(text: str) -> bool:
    """Return whether words after a number are units and neutral words only, so that they can be dropped.

    The last word must name something: "5 of the" is not a phrase.
    """
    if _CHINESE.match(text):
        return is_known(text) or not (len(text) > _MAX_WORDS or _NO_CHINESE_UNIT.search(text))
    words = _LETTERS.findall(text)
    if not words or not _UNIT.fullmatch(text) or len(words) > _MAX_WORDS:
        return False
    if not all(is_unit_word(word) or (len(word) > 1 and is_neutral(word)) or word == "a" for word in words):
        return False
    last = words[-1].lower()
    if last in ("square", "cubic", "cube"):  # "5 square" may be 25
        return False
    return is_unit_word(words[-1]) or is_noun(last) or last in _ENDINGS


def is_counted_thing(text: str) -> bool:
    """Return whether words after the number of a gold may name what is counted, although they are not known."""
    words = _LETTERS.findall(text)
    known_letters = all(len(word) > 1 or is_unit_word(word) or word == "a" for word in words)
    allowed = _NO_UNIT.isdisjoint(word.lower() for word in words)
    return bool(words) and bool(_UNIT.fullmatch(text)) and len(words) <= _MAX_WORDS and known_letters and allowed


def _is_unit(unit: str, *, attached: bool, wrapped: bool) -> bool:
    r"""Return whether the words after a number may name what is counted.

    A single letter may be a variable (5x, 5 y), so it is a unit only if it is known as one, inside \text or after a
    space.
    """
    if _CHINESE.match(unit):
        return is_known(unit) or not (len(unit) > _MAX_WORDS or _NO_CHINESE_UNIT.search(unit))
    if not is_counted_thing(unit):
        return False
    words = _LETTERS.findall(unit)
    if wrapped or words[0].lower() in _SHORT_UNITS:
        return True
    return not attached and (len(words[0]) > 2 or words[0] in _SPACED_UNITS or (words[0] == "a" and len(words) > 1))


def _unit_key(unit: str) -> str:
    """Return the unit without superfluous spaces and braces, as ``units.read_unit`` expects it."""
    return " ".join(unit.split()).replace(" ^", "^").replace("{", "").replace("}", "")
