r"""Equality of equations, calculations, approximations, memberships and inequalities."""

from __future__ import annotations

import re

from marft_envs.mathematics.grader.decision import (
    EQUAL,
    Decision,
    Pairs,
    all_equal,
    any_equal,
    decision,
    different,
    unknown,
)
from marft_envs.mathematics.grader.expression_equality import number_of, proportional
from marft_envs.mathematics.grader.named_values import count_names, is_label, is_name, same_label
from marft_envs.mathematics.grader.parse_answer import branches, number_in, tree_of, without_unit
from marft_envs.mathematics.grader.polynomials import same_zeros
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.tree_value import symbols

_DECIMAL = re.compile(r"-?\d+\.?\d*")
_CONTAINERS = frozenset(["set", "tuple", "union", "list"])


def compare_relations(pairs: Pairs, answer: str, gold: str, a: Shape, g: Shape) -> Decision:
    """Compare two strings of which at least one is a relation."""
    if set(a.signs + g.signs) <= {"=", "~"}:
        if g.kind == "one":
            return _compare_chain(pairs, a, gold)
        compared = _compare_with_chain(pairs, answer, a, g)
        if a.kind == "one":
            return compared or different("the gold is an equation, the answer is not")
        return compared if compared is not None and compared.equal else _compare_equations(pairs, a, g)
    if "in" in a.signs + g.signs:
        return _compare_memberships(pairs, answer, gold, a, g)
    return pairs.worker(answer, gold)


def compare_both_branches(pairs: Pairs, answer: str, gold: str) -> Decision:
    r"""Compare two equations of which one has a sign \pm: each stands for two equations, in any order."""
    answers, golds = [[shape_of(branch) for branch in dict.fromkeys(branches(text))] for text in (answer, gold)]
    if len(answers) != len(golds):
        return unknown("one is a pair of equations, the other is one equation")
    orders = (zip(answers, order, strict=True) for order in (golds, golds[::-1]))
    return any_equal(all_equal(_compare_equations(pairs, a, g) for a, g in order) for order in orders)


def _compare_memberships(pairs: Pairs, answer: str, gold: str, a: Shape, g: Shape) -> Decision:
    r"""Compare x \in S with x \in S, or with S alone, which must be written as a set."""
    if a.signs == g.signs == ("in",):
        if a.parts[0] != g.parts[0]:
            return different("the names are different")
        return pairs.same(a.parts[1], g.parts[1])
    answer_set = a.parts[1] if a.signs == ("in",) else answer
    gold_set = g.parts[1] if g.signs == ("in",) else gold
    if not {shape_of(answer_set).kind, shape_of(gold_set).kind} <= _CONTAINERS:
        return unknown("a membership is compared with something that is not a set")
    return pairs.same(answer_set, gold_set)


def _compare_chain(pairs: Pairs, a: Shape, gold: str) -> Decision:
    r"""Compare a calculation with a gold that is one expression.

    x = 5, m + n = 5, 2 + 3 = 5, A = \pi r^2 = 9\pi and \sqrt2 \approx 1.414 answer their last side; before an
    approximation, the exact side is an answer, too. Neighbouring sides must be equal, so x = 41 = 42 answers neither.
    """
    parts = list(a.parts)
    if len(parts) == 2 and a.signs == ("=",) and is_label(parts[1]) and _is_constant(parts[0]):
        parts.reverse()  # 5 = x
    names = count_names(tuple(parts), a.signs)
    steps, signs = parts[names:], a.signs[names:]
    if not all(steps):
        return unknown("a side of the equation is empty")
    if names and a.signs[0] == "~" and not _is_constant(steps[0]):
        return unknown("the approximation of a name is not a number")
    constants = [_is_constant(step) for step in steps]
    # y + 1 = 2x + 5 is an equation, not a calculation; x + y = z gives no value.
    labelled = names > 0 and all(map(is_label, parts[:names]))
    if not labelled and not all(constants if names else constants[:-1]):
        return unknown("the answer is an equation, the gold is not")
    links = all_equal(_compare_sides(pairs, *link) for link in zip(steps, steps[1:], signs, strict=False))
    if not links.equal:
        return links
    last = next((i for i, sign in enumerate(signs) if sign == "~"), len(steps) - 1)
    return any_equal(pairs.same(step, gold) for step in dict.fromkeys((steps[last], steps[-1])))


def _compare_with_chain(pairs: Pairs, answer: str, a: Shape, g: Shape) -> Decision | None:
    r"""Compare an answer with a gold that names its value, or that is a calculation or an approximation.

    The gold y = 2x + 1 is answered by 2x + 1, but not the gold 2x + y = 1, which may be a line. The gold
    \sqrt2 \approx 1.414 is answered by either side.

    Returns:
        The decision; None if the gold is an equation, or if both sides have names and these differ.
    """
    names = next((i for i, side in enumerate(g.parts[:-1]) if g.signs[:i] != ("=",) * i or not is_label(side)), None)
    names = len(g.parts) - 1 if names is None else names
    steps, signs = g.parts[names:], g.signs[names:]
    if not names and not all(map(_is_constant, steps)):
        return None
    named_alike = names and same_label(a.parts[0], g.parts[0])
    if a.kind == "relation" and names and not named_alike and not all(map(_is_constant, a.parts)):
        return None
    last = next((i for i, sign in enumerate(signs) if sign == "~"), len(steps) - 1)
    values = dict.fromkeys((steps[last], steps[-1]))
    if a.kind == "one":
        return any_equal(pairs.same(answer, value) for value in values)
    return any_equal(_compare_chain(pairs, a, value) for value in values)


def _are_graphs(a: str, g: str) -> bool:
    """Return whether two left sides are y and f(x), which name the same function of x."""
    return {a, g} in ({"y", "f(x)"}, {"y", "y(x)"})


def _is_constant(text: str) -> bool:
    """Return whether a side has a value: it can be read, and has no symbols."""
    if number_in(text) is not None:
        return True
    node = tree_of(without_unit(text)[0])
    return node is not None and not symbols(node)


def _compare_sides(pairs: Pairs, left: str, right: str, sign: str) -> Decision:
    r"""Compare two neighbouring sides of a chain: exactly for =, to the digits that are written for \approx."""
    if sign == "=":
        node = tree_of(without_unit(left)[0])
        if node is not None and symbols(node):  # the values of the symbols are inserted, as in \pi r^2 = 9\pi
            return EQUAL
        return pairs.same(right, left)
    values = [number_of(node) if (node := tree_of(without_unit(side)[0])) else None for side in (left, right)]
    if values[0] is None or values[1] is None:
        return unknown("a side of the approximation has no value")
    digits = len(right.partition(".")[2]) if _DECIMAL.fullmatch(right) else 9
    near = abs(values[0] - values[1]) <= 0.5000001 * 10.0**-digits  # half a unit of the last digit, plus float error
    return decision(near, "the right side of the approximation is not the rounded left side")


def _compare_equations(pairs: Pairs, a: Shape, g: Shape) -> Decision:
    """Compare two equations: the same name and value, or left side minus right side equal up to a factor."""
    if is_name(g.parts[0]) and (a.parts[0] == g.parts[0] or same_label(a.parts[0], g.parts[0])):
        same = _compare_chain(pairs, a, g.parts[-1]) if len(a.parts) > 2 else pairs.same(a.parts[-1], g.parts[-1])
        if same.equal or not tree_of(g.parts[-1]):
            return same
    if len(a.parts) == len(g.parts) == 2 and _are_graphs(a.parts[0], g.parts[0]):
        return pairs.same(a.parts[1], g.parts[1])
    if len(a.parts) != 2 or len(g.parts) != 2:
        return unknown("a chain of more than two sides is compared with an equation")
    sides = [[tree_of(part) for part in shape.parts] for shape in (a, g)]
    (a1, a2), (g1, g2) = sides
    if a1 and a2 and g1 and g2:
        f, h = ("add", a1, ("neg", a2)), ("add", g1, ("neg", g2))
        if same_zeros(f, h):  # xy = 1 and y = 1/x
            return EQUAL
        same_lines = proportional(f, h, pairs.work)
        return decision(same_lines, "neither equation is a multiple of the other")
    return pairs.worker(" = ".join(a.parts), " = ".join(g.parts))
