"""Parsing of normalized answers: number, expression tree and unit, and whether the grader can read an answer at all."""

from __future__ import annotations

import re
from functools import lru_cache

from marft_envs.mathematics.grader import special_answers
from marft_envs.mathematics.grader.compound_quantities import read_compound
from marft_envs.mathematics.grader.congruences import read_congruence, read_remainder
from marft_envs.mathematics.grader.expression_equality import is_defined
from marft_envs.mathematics.grader.expression_parser import Unreadable, parse
from marft_envs.mathematics.grader.normalization import CIRCLED, normalize
from marft_envs.mathematics.grader.number import Number, is_counted_thing, is_neutral_phrase, parse_number
from marft_envs.mathematics.grader.real_intervals import read_intervals
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.tree_value import Node, has, symbols
from marft_envs.mathematics.grader.units import is_known

MAX_LEVELS = 6

NAME = re.compile(
    r"\\?[A-Za-z]+'?(?:_\w|_\{\w{1,8}\})?(?:\([A-Za-z\d]\))?"
    r"|(?:m ?)?\\(?:vec|angle|overline|triangle)(?: ?\{ ?[A-Za-z]{1,3} ?\}| [A-Za-z]{1,3})"
)
_TEXT_NAME = re.compile(r"\\text(?![A-Za-z])")
_WHOLE_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_UNIT_TAIL = re.compile(r"\\text\{\s?([^{}]{1,40})\}(\s?\^\s?\{?\d\}?)?$")
_BARE_TAIL = re.compile(
    r"(?<=[\d}) ])\s?([A-Za-z]{1,12}(?:\s?\^\s?\{?\d\}?)?(?:\s?/\s?[A-Za-z]{1,8}(?:\^\{?\d\}?)?)?)$"
)
_FIRST_LETTERS = re.compile(r"[A-Za-z]+")
_SUM = re.compile(r"(?<=.)[-+]")
_MORE_UNITS = re.compile(r"[^\W\d_]\d")
PLUS_MINUS = re.compile(r"\\pm(?![A-Za-z])|±|\\mp(?![A-Za-z])|∓")


@lru_cache(maxsize=4096)
def number_in(text: str) -> Number | None:
    """Return the number or the quantity in several units that ``text`` consists of; None for anything else."""
    number = parse_number(text)
    if number is None and "mod" in text:
        return read_remainder(text)
    if number is None or (number.unit and _MORE_UNITS.search(number.unit)):
        return read_compound(text) or number
    return number


def plain(text: str) -> str:
    r"""Return ``text`` without a \text{...} that encloses all of it and without a leading \approx."""
    match = _WHOLE_TEXT.fullmatch(text)
    return normalize(match[1] if match else text.removeprefix(r"\approx"))


def tree_of(text: str, log: str = "e") -> Node | None:
    """Return the expression tree of ``text``; None if it is not an expression."""
    try:
        return parse(text, log)
    except (Unreadable, RecursionError):
        return None


def without_unit(text: str, *, is_gold: bool = False) -> tuple[str, str]:
    r"""Split ``2\sqrt{3} \text{ cm}`` or ``4\pi cm^2`` into (expression, unit); the unit is "" if there is none.

    Outside \text, a unit has two letters or more, and a space before it after a sum: the end of 1 + 2m^2 is no unit.

    Args:
        text: A normalized string.
        is_gold: Words of a gold that are not known, but cannot change a value either, are split off, too.
    """
    match = _UNIT_TAIL.search(text)
    if match and match.start():
        words = (match[1] + (match[2] or "")).strip()
        if is_neutral_phrase(words) or (is_gold and is_counted_thing(words)):
            return text[: match.start()].strip(), words
    bare = _BARE_TAIL.search(text)
    if bare and is_known(bare[1]) and len(_FIRST_LETTERS.match(bare[1])[0]) > 1:  # type: ignore[index]
        body = text[: bare.start()].strip()
        if not _SUM.search(body) or text[bare.start() : bare.start(1)]:
            return body, bare[1]
    return text, ""


def is_vector(shape: Shape) -> bool:
    """Return whether a shape is a matrix, or a tuple that may be a vector."""
    return shape.kind == "matrix" or (shape.kind == "tuple" and shape.brackets in ("()", "[]"))


def expand_plus_minus(shape: Shape) -> Shape:
    r"""Return the shape with each part that contains \pm replaced by two parts."""
    if shape.kind not in ("one", "list", "set", "relation"):
        return shape
    if shape.kind == "relation":
        if shape.signs != ("=",) or not NAME.fullmatch(shape.parts[0]):
            return shape
        shape = Shape("one", (shape.parts[1],))
    parts = tuple(branch for part in shape.parts for branch in branches(part))
    return Shape("list" if shape.kind == "one" and len(parts) > 1 else shape.kind, parts)


def branches(text: str) -> tuple[str, ...]:
    r"""Return the two strings for which a string with \pm stands; a string without it stands for itself."""
    if not PLUS_MINUS.search(text):
        return (text,)
    return tuple(_signed(text, *signs).lstrip("+ ") for signs in (("+", "-"), ("-", "+")))  # \mp has the other sign


def _signed(text: str, upper: str, lower: str) -> str:
    return PLUS_MINUS.sub(lambda m: upper if m.group() in ("\\pm", "±") else lower, text)


def merge_sets(shape: Shape) -> Shape:
    """Return a union of sets as one set; any other shape is returned unchanged."""
    if shape.kind != "union":
        return shape
    sets = [shape_of(part) for part in shape.parts]
    if any(part.kind != "set" for part in sets):
        return shape
    return Shape("set", tuple(part for one in sets for part in one.parts))


def is_readable(text: str, level: int = 0) -> bool:
    """Return whether a layer before the symbolic worker can read all of a normalized string.

    If none can, only an identical string would be graded as correct, so such a gold is unusable.
    """
    if (
        number_in(text)
        or special_answers.read_choice(text)
        or special_answers.read_time(text)
        or special_answers.read_numeral(text)
        or CIRCLED.fullmatch(text)
        or read_congruence(text)
    ):
        return True
    text = plain(text)
    body = without_unit(text, is_gold=True)[0]
    if tree_of(body) or read_intervals(text) or special_answers.word_key(text) in ("∅", "undefined"):
        return True
    if level >= MAX_LEVELS or not text:
        return False
    shape = expand_plus_minus(shape_of(text))
    if shape.kind != "one":
        return all(is_readable(part, level + 1) for part in shape.parts)
    ratio = special_answers.read_ratio(text)
    if ratio:
        return all(is_readable(part, level + 1) for part in ratio)
    return shape.parts != (text,) or (
        bool(special_answers.words_of(text)) and not any(c in _TEXT_NAME.sub("", text) for c in "=<>^_&\\")
    )


def has_value(text: str) -> bool:
    """Return False for a readable constant without a value that can be computed, such as 1/0 or a tower of powers."""
    node = tree_of(without_unit(text, is_gold=True)[0])
    if node is None or symbols(node) or number_in(text) or has(node, "i", "inf"):
        return True
    return is_defined(node)
