r"""Qualifiers of a variable behind an answer: k\pi, k \in \mathbb{Z}; f(x) = 2x for all x \in \mathbb{R}."""

from __future__ import annotations

import re
from typing import NamedTuple

from marft_envs.mathematics.grader.normalization import normalize

_LEAD = (
    r"(?:,?\s?\\text\{\s?,?\s?\(?(?:for all|for any|for every|for each|where|for|with)\s?\}|,?\s?\\forall"
    r"|,?\s?(?:for all|for any|for every|where)\b|,|;|\()"
)
_SET = r"\\mathbb\s?\{?\s?([RZNQC])\s?\}?\s?(\^\s?\{?[+*]\}?|_\s?\{?\+\}?|_\s?\{?>0\}?)?"
_QUALIFIER = re.compile(rf"\s?{_LEAD}\s?([A-Za-z])\s?\\in\s?{_SET}\s?\)?\Z")
_REAL = re.compile(r"\s?(?:,\s?)?\\text\{\s?,?\s?for (?:all|any|every) real (?:numbers? )?\s?\}\s?([A-Za-z])\Z")
_GATE = re.compile(r"\\mathbb|\breal\b")


class _Qualified(NamedTuple):
    body: str
    key: tuple[str, ...]


def without_qualifiers(answer: str, gold: str) -> tuple[str, str]:
    """Return two normalized strings without their qualifiers, unless both have one and these differ."""
    if not _GATE.search(answer) and not _GATE.search(gold):
        return answer, gold
    a, g = _split(answer), _split(gold)
    if a is not None and g is not None and a.key != g.key:
        return answer, gold
    return (a.body if a else answer), (g.body if g else gold)


def _split(text: str) -> _Qualified | None:
    r"""Split off the qualifier; None if there is none, or if the rest does not contain the variable."""
    match = _QUALIFIER.search(text) or _REAL.search(text)
    if match is None:
        return None
    body, name = normalize(text[: match.start()]), match[1]
    uses_name = re.search(rf"(?<![A-Za-z\\]){name}(?![a-z])|(?<=[a-z\d]){name}(?![A-Za-z])", body)
    if not uses_name or body == name or body.endswith(("\\in", "(", "{")):
        return None
    return _Qualified(
        body, tuple(group or "" for group in (match.groups() if match.re is _QUALIFIER else (name, "R", "")))
    )
