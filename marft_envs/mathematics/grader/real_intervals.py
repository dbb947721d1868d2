r"""Intervals, unions of intervals and inequalities, in one representation: a union of intervals of the real line.

x > 3, (3, \infty), {x | x > 3} and x \in (3, \infty) are the same interval. If all ends are numbers, the intervals are
sorted, and those that touch are merged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

from marft_envs.mathematics.grader.decision import Decision, all_equal, decision, different
from marft_envs.mathematics.grader.expression_equality import number_of
from marft_envs.mathematics.grader.expression_parser import Unreadable, parse
from marft_envs.mathematics.grader.polynomials import coefficients, rational_function
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.sign_table import solve_inequality
from marft_envs.mathematics.grader.tree_value import Node, Unknown, exact, symbols

_INFINITY: Node = ("inf",)
_MINUS_INFINITY: Node = ("neg", ("inf",))
_BUILDER = re.compile(r"\\\{\s?([A-Za-z])\s?(?:\\in ?\\mathbb\{?R\}?\s?)?(?:\||:|\\mid)(?![A-Za-z])(.*)\\\}", re.DOTALL)
_LINE = re.compile(r"\\mathbb\s?\{?R\}?|ℝ|\\text\{\s?all real numbers\s?\}|all real numbers|all reals", re.IGNORECASE)
_WITHOUT = re.compile(r"\\setminus|\\backslash|∖|\\text\{ ?except ?\}")
_AND = re.compile(r"\\text\{ ?and ?\}|(?<![A-Za-z\\])and(?![A-Za-z])|且")
_REVERSED = str.maketrans("<>", "><")


@dataclass(frozen=True)
class RealInterval:
    """An interval of the real line.

    Attributes:
        low: The tree of the lower end.
        high: The tree of the upper end.
        closed_low: Whether the lower end belongs to the interval.
        closed_high: Whether the upper end belongs to it.
    """

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


@dataclass(frozen=True)
class IntervalUnion:
    """A union of intervals.

    Attributes:
        intervals: The intervals, sorted and merged if all ends are numbers.
        name: The variable of an inequality or membership; "" if none is named.
    """

    intervals: tuple[RealInterval, ...]
    name: str = ""


_REAL_LINE = RealInterval(_MINUS_INFINITY, _INFINITY, False, False)


def read_intervals(text: str) -> IntervalUnion | None:
    """Return the union of intervals that a normalized string describes; None if it describes anything else."""
    try:
        union = _read(text, 0)
    except (Unreadable, Unknown, ArithmeticError):
        return None
    return None if union is None else replace(union, intervals=_merge_touching(union.intervals))


def is_plain_pair(shape: Shape) -> bool:
    """Return whether a shape is (a, b), which may be a point or an open interval."""
    return shape.kind == "tuple" and shape.brackets == "()" and len(shape.parts) == 2


def same_intervals(a: IntervalUnion, b: IntervalUnion, same: Callable[[Node, Node], Decision]) -> Decision:
    """Compare two unions, interval by interval.

    Args:
        a: A union.
        b: Another union. If both name a variable, the names must be equal: x > 3 differs from y > 3.
        same: The comparison of two ends.
    """
    if a.name and b.name and a.name != b.name:
        return different("the names of the variables are different")
    if len(a.intervals) != len(b.intervals):
        return different("the numbers of intervals are different")
    return all_equal(
        end
        for p, q in zip(a.intervals, b.intervals, strict=True)
        for end in (
            _same_end(p.low, p.closed_low, q.low, q.closed_low, same),
            _same_end(p.high, p.closed_high, q.high, q.closed_high, same),
        )
    )


def _same_end(a: Node, a_closed: bool, b: Node, b_closed: bool, same: Callable[[Node, Node], Decision]) -> Decision:
    if a in (_INFINITY, _MINUS_INFINITY):
        return decision(a == b, "the ends of the intervals are different")
    if a_closed != b_closed:
        return different("an end belongs to one interval only")
    return same(a, b)


def _read(text: str, depth: int) -> IntervalUnion | None:
    """Read a string in any notation; ``depth`` counts nested notations, such as a set builder around a relation."""
    text = text.strip()
    if depth > 4:
        return None
    if builder := _BUILDER.fullmatch(text):
        inner = _read(builder[2], depth + 1)
        return replace(inner, name="") if inner else None
    if _LINE.fullmatch(text):
        return IntervalUnion((_REAL_LINE,))
    if without := _WITHOUT.search(text):
        return _without(text[: without.start()], text[without.end() :], depth)
    shape = shape_of(text)
    if shape.kind == "relation":
        return _relation(shape, depth)
    if shape.kind == "union" or (shape.kind == "list" and shape.either):
        return _union([_read(part, depth + 1) for part in shape.parts])
    if shape.kind == "list" and _AND.search(text) and len(shape.parts) == 2:
        sides = [_read(part, depth + 1) for part in shape.parts]
        return _intersection(sides[0], sides[1]) if sides[0] and sides[1] and sides[0].name else None
    if shape.kind == "tuple" and len(shape.parts) == 2:
        low, high = (parse(part) for part in shape.parts)
        return IntervalUnion((RealInterval(low, high, shape.brackets[0] == "[", shape.brackets[1] == "]"),))
    # A finite set counts only inside another notation, such as a union; alone it is compared as a set.
    if shape.kind == "set" and shape.parts and depth:
        return IntervalUnion(tuple(RealInterval(node, node, True, True) for node in map(parse, shape.parts)))
    return None


def _union(parts: list[IntervalUnion | None]) -> IntervalUnion | None:
    unions = [part for part in parts if part is not None]
    names = {union.name for union in unions}
    if len(unions) == len(parts) and unions[0].name and not any(union.name for union in unions[1:]):
        names = {unions[0].name}  # x \in [0, 1] \cup [2, 3]
    if len(unions) != len(parts) or len(names) > 1:
        return None
    return IntervalUnion(tuple(interval for union in unions for interval in union.intervals), names.pop())


def _without(line: str, points: str, depth: int) -> IntervalUnion | None:
    """Read the real line without finitely many points."""
    real_line, shape = _read(line, depth + 1), shape_of(points.strip())
    if real_line is None or real_line.intervals != (_REAL_LINE,) or shape.kind != "set":
        return None
    nodes = sorted(map(parse, shape.parts), key=lambda node: number_of(node) or 0.0)
    ends = [_MINUS_INFINITY, *nodes, _INFINITY]
    return IntervalUnion(tuple(RealInterval(a, b, False, False) for a, b in pairwise(ends)))


def _relation(shape: Shape, depth: int) -> IntervalUnion | None:
    """Read a membership, an inequality or a double inequality."""
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
        return _intersection(left, right) if left and right and signs[0][0] == signs[1][0] else None
    return None


def _intersection(a: IntervalUnion, b: IntervalUnion) -> IntervalUnion | None:
    """Return what two unions for one variable have in common, or None if there is nothing.

    Raises:
        Unknown: An end is not a number.
    """
    if a.name != b.name:
        return None
    pieces = []
    for left, right in product(a.intervals, b.intervals):
        # At equal ends, the open one decides.
        lows = [(number_of(one.low), not one.closed_low, one.low) for one in (left, right)]
        highs = [(number_of(one.high), one.closed_high, one.high) for one in (left, right)]
        low, high = max(lows, key=_known_end), min(highs, key=_known_end)
        piece = RealInterval(low[2], high[2], not low[1], high[1])
        distance = _known_end(high)[0] - _known_end(low)[0]
        if distance > 0 or (distance == 0 and piece.closed_low and piece.closed_high):
            pieces.append(piece)
    return IntervalUnion(tuple(pieces), a.name) if pieces else None


def _known_end(end: tuple[float | None, bool, Node]) -> tuple[float, bool]:
    if end[0] is None:
        raise Unknown("an end is not a number")
    return end[0], end[1]


def _one_sign(left: Node, sign: str, right: Node) -> IntervalUnion | None:
    """Read an inequality in one variable with one sign: x < 3, 3 > x, |x - 1| < 2, 2x + 1 < 7."""
    if not symbols(left) and symbols(right):
        left, right, sign = right, left, sign.translate(_REVERSED)
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        return None
    name = next(iter(names))
    if left[:2] == ("fn", "abs") and not symbols(right):
        return _absolute(left[2], sign, right, name)
    if left != ("sym", name) or symbols(right):
        try:
            negative, right = _solve(left, right, name)
        except Unknown:
            return _solve_by_signs(left, sign, right, name)
        sign = sign.translate(_REVERSED) if negative else sign
    closed = sign.endswith("=") and sign != "!="
    below, above = RealInterval(_MINUS_INFINITY, right, False, closed), RealInterval(right, _INFINITY, closed, False)
    intervals = {"<": (below,), ">": (above,), "!": (below, above)}[sign[0]]
    return IntervalUnion(intervals, name)


def _solve(left: Node, right: Node, name: str) -> tuple[bool, Node]:
    """Solve the linear equation left = right with rational coefficients.

    Returns:
        (whether the slope of left - right is negative, so that an inequality changes its sign; the solution).

    Raises:
        Unknown: The equation is not linear, or its coefficients are not rational.
    """
    top, bottom = rational_function(("add", left, ("neg", right)))
    values = coefficients(top, name)
    if len(values) != 2 or set(bottom) != {()}:
        raise Unknown("not linear")
    return values[1] / bottom[()] < 0, ("num", -values[0] / values[1])


def _solve_by_signs(left: Node, sign: str, right: Node, name: str) -> IntervalUnion:
    """Solve an inequality between rational functions, such as x^2 < 4 and (x - 1) / (x + 2) >= 0."""
    pieces = solve_inequality(("add", left, ("neg", right)), sign, name)
    return IntervalUnion(tuple(RealInterval(low[1], high[1], *closed) for low, high, *closed in pieces), name)


def _absolute(inside: Node, sign: str, size: Node, name: str) -> IntervalUnion | None:
    """Read |inside| < size, where ``inside`` is linear: its zero is the centre, and size / |slope| the distance."""
    _, centre = _solve(inside, ("num", Fraction(0)), name)
    slope = abs(exact(inside, {name: Fraction(1)}) - exact(inside, {name: Fraction(0)}))
    distance: Node = ("div", size, ("num", slope)) if slope != 1 else size
    low, high = ("add", centre, ("neg", distance)), ("add", centre, distance)
    closed = sign in ("<=", ">=")
    if sign[0] == "<":
        return IntervalUnion((RealInterval(low, high, closed, closed),), name)
    if sign[0] == ">":
        return IntervalUnion(
            (RealInterval(_MINUS_INFINITY, low, False, closed), RealInterval(high, _INFINITY, closed, False)), name
        )
    return None


def _merge_touching(intervals: tuple[RealInterval, ...]) -> tuple[RealInterval, ...]:
    """Sort the intervals and merge those that touch; return them unchanged if an end is not a number."""
    keyed = [(number_of(interval.low), number_of(interval.high), interval) for interval in intervals]
    if any(low is None or high is None for low, high, _ in keyed):
        return intervals
    keyed.sort(key=lambda item: (item[0], item[1]))
    result: list[RealInterval] = []
    for low, _, interval in keyed:
        last = result[-1] if result else None
        # (1, 2) and (2, 3) touch in a point that belongs to neither, so they are not merged.
        touching = last and number_of(last.high) == low and last.high != _INFINITY
        if last and touching and (last.closed_high or interval.closed_low):
            result[-1] = replace(last, high=interval.high, closed_high=interval.closed_high)
        else:
            result.append(interval)
    return tuple(result)
