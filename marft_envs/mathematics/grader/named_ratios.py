r"""Ratios with names: V_1:V_2 = 9:14, and AB/CD = 3/2, which is the ratio AB:CD = 3:2."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marft_envs.mathematics.grader.named_values import is_label
from marft_envs.mathematics.grader.shape import split_outside

_COLON = re.compile(":")
_EQUALS = re.compile("=")
_FRACTION = re.compile(r"\\frac\s?\{([^{}]*(?:\{[^{}]*\})?)\}\s?\{([^{}]*(?:\{[^{}]*\})?)\}|([^/]+)/([^/]+)")


@dataclass(frozen=True, slots=True)
class NamedRatio:
    """A ratio with the names of its terms.

    Attributes:
        names: The name of each term.
        values: The values that are written, each equal to the next one if the ratio is correct.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]


def read_named_ratio(text: str) -> NamedRatio | None:
    """Read a ratio or fraction of names that equals one or more values; None for anything else."""
    if "=" not in text:
        return None
    (head, *values), _ = split_outside(text, _EQUALS)
    if not values or not all(values):
        return None
    names = _fraction_of_names(head) if ":" not in head else tuple(split_outside(head, _COLON)[0])
    if names is None or len(names) < 2 or len(set(names)) != len(names) or not all(map(is_label, names)):
        return None
    return NamedRatio(names, tuple(values))


def in_order(ratio: NamedRatio, names: tuple[str, ...]) -> str | None:
    """Return the last value of ``ratio`` with its terms in the order of ``names``; None if the names differ."""
    if ratio.names == names:
        return ratio.values[-1]
    terms = split_outside(ratio.values[-1], _COLON)[0]
    if sorted(ratio.names) != sorted(names) or len(terms) != len(names):
        return None
    return ":".join(terms[ratio.names.index(name)] for name in names)


def _fraction_of_names(text: str) -> tuple[str, ...] | None:
    match = _FRACTION.fullmatch(text.strip())
    return tuple(name.strip() for name in match.groups() if name) if match else None
