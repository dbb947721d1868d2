r"""A text as an exact number with its unit, or None: integers, separators, decimals, fractions, powers of ten.

Never a float, never ``eval``. The patterns are possessive, so that no input is read again and again, and numbers beyond
MAX_DIGITS or MAX_EXPONENT are not numbers here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from marft_envs.mathematics.notation import clean, unwrap_text

MAX_DIGITS = 10_000
MAX_EXPONENT = 10_000
_CHUNK = 600  # int() reads 640 digits under any sys.set_int_max_str_digits

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
_REPEATING = re.compile(r"(?P<whole>\d*+)\.(?P<fixed>\d*+)\\overline\{(?P<period>\d++)\}")
_DOTTED = re.compile(r"[-+]?\d{1,3}(?:\.\d{3}){2,}+")
_PLAIN = re.compile(_DECIMAL)
_SIGN = re.compile(r"(?:USD|EUR|GBP)?\s?([-+]?)\s?")

_PERCENT = re.compile(r"\s?(?:%|per ?cent\b)")
_DEGREE = re.compile(r"\s?(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ)|°|\\degrees?\b|degrees?\b)")
_ORDINAL = re.compile(r"\s?\^?\s?\{?\s?(?:st|nd|rd|th)\b\s?\}?")
_WORD = r"[^\W\d_]++(?:['’-][^\W\d_]++)*+\.?+(?:\s?\^\s?(?:\{-?[1-9]\}|-?[1-9]))?+"
_UNIT = re.compile(rf"/?\s?{_WORD}(?:[ /,]++{_WORD})*+")
_SCALES = {"dozen": 12, "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE = re.compile(rf"\s*({'|'.join(_SCALES)})\b", re.IGNORECASE)
_NOT_A_UNIT = (
    "or and not no to but nor than more less fewer least most approximately minus plus times divided over mod modulo "
    "half halves third thirds fourth fourths fifth fifths sixth sixths eighth eighths tenth tenths hundredth "
    "hundredths squared cubed factorial choose sin cos tan log ln exp sqrt pi infinity undefined if when only either "
    "dozen hundred thousand million billion trillion"
)
_NO_UNIT = frozenset(_NOT_A_UNIT.split())
_TWO_LETTERS = "mm cm km kg mg lb oz ft in yd mi mph hr min ml hz kw am pm of at an"
_SHORT_UNITS = frozenset(_TWO_LETTERS.split())  # bare, next to the number or not
_SPACED_UNITS = frozenset("mgshl")  # bare, after a space
_MAX_WORDS = 8


@dataclass(frozen=True, slots=True)
class Number:
    """value: as written, 50 for 50%. percent: whether a percent sign follows. unit: the words after it, "" for none."""

    value: Fraction
    percent: bool = False
    unit: str = ""


def parse_number(text: str) -> Number | None:
    """The number that ``text`` is, with its unit; None where it is anything else or beyond the bounds."""
    text = clean(text)
    if _DOTTED.fullmatch(text):
        text = text.replace(".", "")
    sign = _SIGN.match(text)
    assert sign is not None  # the pattern matches the empty string
    if len(text) > MAX_DIGITS * 2:
        return None
    for read in (_read_frac, _read_mixed, _read_slash, _read_scientific, _read_repeating, _read_plain):
        found = read(text, sign.end())
        if found is not None:
            value, end = found
            return _with_unit(-value if sign.group(1) == "-" else value, text[end:])
    return None


def _read_frac(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""\frac{a}{b}, \frac12, and 4\frac{2}{3}, which is 4 + 2/3."""
    m = _FRAC.match(text, start)
    if m is None:
        return None
    value = _ratio(m["top"] or m["t"], m["bottom"] or m["b"])
    whole = _decimal(m["whole"] or "0")
    if value is None or whole is None or (m["whole"] and not 0 < value < 1):
        return None
    return whole + value, m.end()


def _read_mixed(text: str, start: int) -> tuple[Fraction, int] | None:
    """4 2/3; an improper part (4 5/3) is no number."""
    m = _MIXED.match(text, start)
    value = _ratio(m["top"], m["bottom"]) if m else None
    whole = _decimal(m["whole"]) if m else None
    return (whole + value, m.end()) if m and value is not None and whole is not None and value < 1 else None


def _read_slash(text: str, start: int) -> tuple[Fraction, int] | None:
    m = _SLASH.match(text, start)
    value = _ratio(m["top"], m["bottom"]) if m else None
    return (value, m.end()) if m and value is not None else None


def _read_scientific(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""1.2e3, 1.2 \times 10^3 and 10^3."""
    m = _SCIENTIFIC.match(text, start)
    if m is None:
        return None
    mantissa = _decimal(m["mantissa"] or "1")
    exponent = int(m["braced"] or m["plain"] or m["ten_braced"] or m["ten_plain"])
    if mantissa is None or abs(exponent) > MAX_EXPONENT:
        return None
    return mantissa * Fraction(10) ** exponent, m.end()


def _read_repeating(text: str, start: int) -> tuple[Fraction, int] | None:
    r"""0.1\overline{6} is 1/6."""
    m = _REPEATING.match(text, start)
    if m is None:
        return None
    fixed = _decimal(f"{m['whole']}.{m['fixed']}0")
    period = _decimal(m["period"])
    if fixed is None or period is None:
        return None
    return fixed + period / (10 ** len(m["period"]) - 1) / 10 ** len(m["fixed"]), m.end()


def _read_plain(text: str, start: int) -> tuple[Fraction, int] | None:
    m = _PLAIN.match(text, start)
    value = _decimal(m.group()) if m else None
    return (value, m.end()) if m and value is not None else None


def _ratio(top: str, bottom: str) -> Fraction | None:
    numerator, denominator = _decimal(top), _decimal(bottom)
    return numerator / denominator if numerator is not None and denominator else None


def _decimal(text: str) -> Fraction | None:
    """A decimal with separators, read in chunks so that Python's limit on the digits of an int does not bind."""
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
    """The number with what follows it read as percent sign, scale and unit; None where ``rest`` is none of these."""
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
    unit = " ".join(rest.split()).rstrip(".")
    if unit and not _is_unit(unit, attached=attached, wrapped=wrapped):
        return None
    return Number(value, percent is not None, _unit_key(unit))


def _is_unit(unit: str, *, attached: bool, wrapped: bool) -> bool:
    r"""Whether words after a number only name what is counted. Bare single letters may be variables: 5x, 5 y."""
    words = re.findall(r"[^\W\d_]+", unit)
    if not _UNIT.fullmatch(unit) or len(words) > _MAX_WORDS or not _NO_UNIT.isdisjoint(w.lower() for w in words):
        return False
    if wrapped or words[0].lower() in _SHORT_UNITS:
        return True
    return not attached and (len(words[0]) > 2 or words[0] in _SPACED_UNITS or (words[0] == "a" and len(words) > 1))


def _unit_key(unit: str) -> str:
    """The unit without needless spaces and braces; ``units.read_unit`` says what it means."""
    return " ".join(unit.split()).replace(" ^", "^").replace("{", "").replace("}", "")
