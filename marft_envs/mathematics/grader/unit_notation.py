r"""Units in several commands, written as one: \text{kg}\cdot\text{m/s}, \frac{\text{m}}{\text{s}^2}, \mu\text{m}.

Only units of the table are rewritten, because other words may change the value.
"""

from __future__ import annotations

import re

from marft_envs.mathematics.grader.units import is_unit_word

_PIECE = r"\\text\{\s?[^\W\d_][^{}\\]{0,30}(?:\^\{?-?\d\}?)?\s?\}(?:\s?\^\s?(?:\{\s?-?\d\s?\}|-?\d))?"
_SEQUENCE = rf"{_PIECE}(?:\s?(?:\\cdot|\\times|/|·|\*)?\s?{_PIECE})*"
_MICRO = re.compile(
    r"\\(?:mu|text\{\s?\\mu\s?\}|micro)\s?(?:\\text\{\s?([A-Za-z]{1,3})\s?\}|(?<=\d\\mu )([mgsLl])(?![A-Za-z]))"
)
_OHM = re.compile(r"(?<=\d)\s?(?:\\text\{\s?([kM])\s?\}|([kM]))?\s?\\(?:Omega|text\{\s?\\Omega\s?\})\Z")
_CELSIUS = re.compile(r"\s?(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ)|°)\s?(?:\\text\{\s?([CF])\s?\}|([CF])(?![A-Za-z]))")
_FRACTION = re.compile(rf"\\frac\s?\{{\s?({_SEQUENCE})\s?\}}\s?\{{\s?({_SEQUENCE})\s?\}}")
_PRODUCT = re.compile(_SEQUENCE)
_SINGLE = re.compile(_PIECE)
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPT = re.compile(r"\\text\{\s?([^{}]*?)(\^\{?-?\d\}?)?\s?\}(?:\s?\^\s?\{?\s?(-?\d)\s?\}?)?")


def with_units_joined(text: str) -> str:
    r"""Return a normalized string in which each product or quotient of units is one \text{...}."""
    if r"\mu" in text or r"\micro" in text:
        text = _MICRO.sub(lambda m: rf"\text{{μ{m[1] or m[2]}}}", text)
    if r"\Omega" in text:
        text = _OHM.sub(lambda m: rf" \text{{{m[1] or m[2] or ''}Ω}}", text)
    if r"\circ" in text or "°" in text:
        text = _CELSIUS.sub(lambda m: rf" \text{{{'celsius' if 'C' in (m[1] or m[2]) else 'fahrenheit'}}}", text)
    if r"\frac" in text:
        text = _FRACTION.sub(_quotient, text)
    return _PRODUCT.sub(_product, text) if text.count(r"\text{") > 1 else text


def _quotient(match: re.Match[str]) -> str:
    top, bottom = _units(match[1]), _units(match[2])
    return rf"\text{{{top}/{bottom}}}" if top and bottom and "/" not in bottom else match.group()


def _product(match: re.Match[str]) -> str:
    units = _units(match.group())
    return rf"\text{{ {units}}}" if units and len(_SINGLE.findall(match.group())) > 1 else match.group()


def _units(text: str) -> str:
    """Return a sequence of units as one string, such as "kg m/s"; "" if a word is not a known unit."""
    parts: list[str] = []
    at = 0
    for piece in _SCRIPT.finditer(text):
        words = _WORD.findall(piece[1])
        if not words or not all(is_unit_word(word) or word == "per" for word in words):
            return ""
        power = (piece[2] or "") + (f"^{piece[3]}" if piece[3] else "")
        parts += ["/" if "/" in text[at : piece.start()] else " ", piece[1].strip(), power]
        at = piece.end()
    return "".join(parts).strip()
