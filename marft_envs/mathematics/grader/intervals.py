r"""Intervals, unions and inequalities as one thing: pieces of the real line.

x > 3, (3, \infty), {x | x > 3} and x \in (3, \infty) are one piece. Where the ends are numbers, pieces are put in order
and joined where they touch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from marft_envs.mathematics.grader.expression_equality import number_of
from marft_envs.mathematics.grader.expression_parser import Unreadable, parse
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.tree_value import Node, Unknown, exact, symbols

_INFINITY: Node = ("inf",)
_MINUS_INFINITY: Node = ("neg", ("inf",))
_BUILDER = re.compile(r"\\\{\s?([A-Za-z])\s?(?:\\in ?\\mathbb\{?R\}?\s?)?(?:\||:|\\mid)(?![A-Za-z])(.*)\\\}", re.DOTALL)
_LINE = re.compile(r"\\mathbb\s?\{?R\}?|ℝ|\\text\{\s?all real numbers\s?\}|all real numbers|all reals", re.IGNORECASE)
_WITHOUT = re.compile(r"\\setminus|\\backslash|∖|\\text\{ ?except ?\}")
_OPEN_ENDS = {"<": (False, False), "<=": (True, True), ">": (False, False), ">=": (True, True)}


@dataclass(frozen=True)
class Interval:
    """low, high: trees. closed_low, closed_high: whether the ends belong to it."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


@dataclass(frozen=True)
class IntervalUnion:
    """pieces: in order where the ends are numbers. name: the variable, "" where none is named."""

    pieces: tuple[Interval, ...]
    name: str = ""


def read_intervals(text: str) -> IntervalUnion | None:
    """The part of the real line that a cleaned text describes; None where it describes none."""
    try:
        found = _read(text, 0)
    except (Unreadable, Unknown, ArithmeticError):
        return None
    return None if found is None else replace(found, pieces=_joined(found.pieces))


def is_plain_pair(shape: Shape) -> bool:
    """(a, b), which may be a point as well as an open interval."""
    return shape.kind == "tuple" and shape.brackets == "()" and len(shape.parts) == 2


def same_intervals(a: IntervalUnion, b: IntervalUnion, same: Callable[[Node, Node], bool]) -> bool:
    """Equality piece by piece; two different variable names are two different answers."""
    if len(a.pieces) != len(b.pieces) or (a.name and b.name and a.name != b.name):
        return False
    return all(
        _same_end(p.low, p.closed_low, q.low, q.closed_low, same)
        and _same_end(p.high, p.closed_high, q.high, q.closed_high, same)
        for p, q in zip(a.pieces, b.pieces, strict=True)
    )


def _same_end(a: Node, a_closed: bool, b: Node, b_closed: bool, same: Callable[[Node, Node], bool]) -> bool:
    infinite = a in (_INFINITY, _MINUS_INFINITY)
    return (a == b) if infinite else a_closed == b_closed and same(a, b)


def _read(text: str, depth: int) -> IntervalUnion | None:
    text = text.strip()
    if depth > 4:
        return None
    if builder := _BUILDER.fullmatch(text):
        inner = _read(builder[2], depth + 1)
        return replace(inner, name="") if inner else None
    if _LINE.fullmatch(text):
        return IntervalUnion((Interval(_MINUS_INFINITY, _INFINITY, False, False),))
    if without := _WITHOUT.search(text):
        return _without(text[: without.start()], text[without.end() :], depth)
    shape = shape_of(text)
    if shape.kind == "relation":
        return _relation(shape, depth)
    if shape.kind == "union" or (shape.kind == "list" and shape.either):
        return _union([_read(part, depth + 1) for part in shape.parts])
    if shape.kind == "tuple" and len(shape.parts) == 2:
        low, high = (parse(part) for part in shape.parts)
        return IntervalUnion((Interval(low, high, shape.brackets[0] == "[", shape.brackets[1] == "]"),))
    if shape.kind == "set" and shape.parts and depth:
        return IntervalUnion(tuple(Interval(node, node, True, True) for node in map(parse, shape.parts)))
    return None


def _union(parts: list[IntervalUnion | None]) -> IntervalUnion | None:
    regions = [part for part in parts if part is not None]
    names = {region.name for region in regions}
    if len(regions) != len(parts) or len(names) > 1:
        return None
    return IntervalUnion(tuple(piece for region in regions for piece in region.pieces), names.pop())


def _without(line: str, points: str, depth: int) -> IntervalUnion | None:
    """The whole line without finitely many points."""
    whole, shape = _read(line, depth + 1), shape_of(points.strip())
    if whole is None or whole.pieces != (Interval(_MINUS_INFINITY, _INFINITY, False, False),) or shape.kind != "set":
        return None
    nodes = sorted(map(parse, shape.parts), key=lambda node: number_of(node) or 0.0)
    ends = [_MINUS_INFINITY, *nodes, _INFINITY]
    return IntervalUnion(tuple(Interval(a, b, False, False) for a, b in pairwise(ends)))


def _relation(shape: Shape, depth: int) -> IntervalUnion | None:
    sides, signs = shape.parts, shape.signs
    if signs == ("in",):
        inner = _read(sides[1], depth + 1)
        return replace(inner, name=sides[0]) if inner else None
    if not all(sign in ("<", "<=", ">", ">=", "!=") for sign in signs):
        return None
    nodes = [parse(side) for side in sides]
    if len(nodes) == 2:
        return _one_sign(nodes[0], signs[0], nodes[1])
    if len(nodes) == 3 and symbols(nodes[1]) and not symbols(nodes[0]) | symbols(nodes[2]):
        left, right = _one_sign(nodes[0], signs[0], nodes[1]), _one_sign(nodes[1], signs[1], nodes[2])
        return _between(left, right) if left and right and signs[0][0] == signs[1][0] else None
    return None


def _between(left: IntervalUnion, right: IntervalUnion) -> IntervalUnion | None:
    """Two rays that face each other."""
    if len(left.pieces) != 1 or len(right.pieces) != 1:
        return None
    a, b = left.pieces[0], right.pieces[0]
    if a.high != _INFINITY:
        a, b = b, a
    if a.high != _INFINITY or b.low != _MINUS_INFINITY:
        return None
    return IntervalUnion((Interval(a.low, b.high, a.closed_low, b.closed_high),), left.name)


def _one_sign(left: Node, sign: str, right: Node) -> IntervalUnion | None:
    """x < 3, 3 > x, |x - 1| < 2, 2x + 1 < 7."""
    if not symbols(left) and symbols(right):
        left, right, sign = right, left, sign.translate(str.maketrans("<>", "><"))
    names = symbols(left)
    if len(names) != 1 or symbols(right):
        return None
    name = next(iter(names))
    if left[:2] == ("fn", "abs"):
        return _absolute(left[2], sign, right, name)
    if left != ("sym", name):
        flipped, right = _solve(left, right, name)
        sign = sign.translate(str.maketrans("<>", "><")) if flipped else sign
    closed = sign.endswith("=") and sign != "!="
    below, above = Interval(_MINUS_INFINITY, right, False, closed), Interval(right, _INFINITY, closed, False)
    pieces = {"<": (below,), ">": (above,), "!": (below, above)}[sign[0]]
    return IntervalUnion(pieces, name)


def _solve(left: Node, right: Node, name: str) -> tuple[bool, Node]:
    """(whether the sign turns, bound) of a linear inequality with fractions. Unknown for any other."""
    difference = ("add", left, ("neg", right))
    values = [exact(difference, {name: Fraction(x)}) for x in (0, 1, 2, 5)]
    slope = values[1] - values[0]
    if not slope or values[2] != values[0] + 2 * slope or values[3] != values[0] + 5 * slope:
        raise Unknown("not linear")
    return slope < 0, ("num", -values[0] / slope)


def _absolute(inside: Node, sign: str, size: Node, name: str) -> IntervalUnion | None:
    _, centre = _solve(inside, ("num", Fraction(0)), name)
    slope = abs(exact(inside, {name: Fraction(1)}) - exact(inside, {name: Fraction(0)}))
    reach: Node = ("div", size, ("num", slope)) if slope != 1 else size
    low, high = ("add", centre, ("neg", reach)), ("add", centre, reach)
    closed = sign in ("<=", ">=")
    if sign[0] == "<":
        return IntervalUnion((Interval(low, high, closed, closed),), name)
    if sign[0] == ">":
        return IntervalUnion(
            (Interval(_MINUS_INFINITY, low, False, closed), Interval(high, _INFINITY, closed, False)), name
        )
    return None


def _joined(pieces: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Pieces in order, touching ones made one; left as they are where an end is no number."""
    keyed = [(number_of(piece.low), number_of(piece.high), piece) for piece in pieces]
    if any(low is None or high is None for low, high, _ in keyed):
        return pieces
    keyed.sort(key=lambda item: (item[0], item[1]))
    result: list[Interval] = []
    for low, _, piece in keyed:
        last = result[-1] if result else None
        if last and number_of(last.high) == low and last.high != _INFINITY and (last.closed_high or piece.closed_low):
            result[-1] = replace(last, high=piece.high, closed_high=piece.closed_high)
        else:
            result.append(piece)
    return tuple(result)
