r"""Values with names: x = 1, y = 2, and (x, y) = (1, 2), alone or as lists of solutions.

``without_names`` prepares two shapes for the comparison of collections. If both sides name their values, the values are
paired by name; if one side does, the other must have the same order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from marft_envs.mathematics.grader.named_values import is_label
from marft_envs.mathematics.grader.shape import Shape, shape_of, split_outside

MAX_NAMES = 12
_GROUPS = re.compile(r";|\\text\{\s?,?\s?or\s?\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\lor(?![A-Za-z])|或")
_INDEX = re.compile(r"_\{?\d\}?")


@dataclass(frozen=True, slots=True)
class Assignments:
    """Values with names.

    Attributes:
        names: The names, without repetitions.
        solutions: One or more tuples of values, in the order of the names.
        single: Whether it was written as one solution, not as a list of solutions.
    """

    names: tuple[str, ...]
    solutions: tuple[tuple[str, ...], ...]
    single: bool


def without_names(answer: str, gold: str, a: Shape, g: Shape) -> tuple[Shape, Shape] | None:
    """Return the shapes of the values of two strings, of which at least one names its values.

    Returns:
        (answer, gold) as tuples or lists of tuples; None if no side names two or more values, or if one side names them
        and the other is no collection. Different names give a pair of different shapes.
    """
    answers, golds = read_assignments(answer, a), read_assignments(gold, g)
    if answers is None and golds is None:
        return None
    if answers and golds:
        if sorted(answers.names) != sorted(golds.names):
            return None
        order = [answers.names.index(name) for name in golds.names]
        solutions = tuple(tuple(values[i] for i in order) for values in answers.solutions)
        return _shape(Assignments(golds.names, solutions, answers.single), True), _shape(golds, True)
    other = g if answers else a
    if other.kind not in ("list", "tuple", "set", "matrix"):
        return None
    named = answers or golds
    if named is None:
        return None
    ordered = other.kind in ("tuple", "matrix") or (golds is not None and not _differ_in_index(named.names))
    named_shape = _shape(_in_common_order(named), ordered)
    return (named_shape, g) if answers else (a, named_shape)


def read_assignments(text: str, shape: Shape) -> Assignments | None:
    """Return the names and values of a string; None if it does not name two or more values."""
    if shape.kind == "relation":
        return _tuple_of_names(shape)
    if shape.kind != "list" or "=" not in text:
        return None
    groups, _ = split_outside(text, _GROUPS)
    if len(groups) > 1:
        read = [_solution(shape_of(group)) for group in groups]
        solutions = [solution for solution in read if solution is not None]
        if len(solutions) != len(groups) or len({solution.names for solution in solutions}) != 1:
            return _list_of_tuples(shape)
        values = tuple(value for solution in solutions for value in solution.solutions)
        return Assignments(solutions[0].names, values, False)
    return _solution(shape) or _list_of_tuples(shape)


def _solution(shape: Shape) -> Assignments | None:
    """Read x = 1, y = 2 or (x, y) = (1, 2); the names may be repeated in the same order: x = 1, y = 2, x = 3, y = 4."""
    if shape.kind == "relation":
        return _tuple_of_names(shape)
    if shape.kind != "list":
        return None
    sides = [shape_of(part) for part in shape.parts]
    if any(side.signs != ("=",) or not is_label(side.parts[0]) for side in sides):
        return None
    names = [side.parts[0] for side in sides]
    count = len(set(names))
    if not 2 <= count <= MAX_NAMES or len(names) % count or names != names[:count] * (len(names) // count):
        return None
    values = [side.parts[1] for side in sides]
    solutions = tuple(tuple(values[i : i + count]) for i in range(0, len(values), count))
    return Assignments(tuple(names[:count]), solutions, len(solutions) == 1)


def _tuple_of_names(shape: Shape) -> Assignments | None:
    r"""Read (x, y) = (1, 2) and (x, y) \in \{(1, 2), (3, 4)\}."""
    names = _names(shape.parts[0])
    if names is None or len(shape.parts) != 2:
        return None
    values = shape_of(shape.parts[1])
    if shape.signs == ("=",) and values.kind == "tuple" and len(values.parts) == len(names):
        return Assignments(names, (values.parts,), True)
    if values.kind == "set" and shape.signs in (("in",), ("=",)):
        return _with_tuples(names, values.parts)
    return None


def _list_of_tuples(shape: Shape) -> Assignments | None:
    """Read (x, y) = (1, 2), (3, 4) and (x, y) = (1, 2) or (x, y) = (3, 4)."""
    sides = [shape_of(part) for part in shape.parts]
    names = _names(sides[0].parts[0]) if sides[0].signs == ("=",) else None
    if names is None:
        return None
    values = []
    for side, part in zip(sides, shape.parts, strict=True):
        if side.kind == "relation" and (side.signs != ("=",) or _names(side.parts[0]) != names):
            return None
        values.append(side.parts[1] if side.kind == "relation" else part)
    return _with_tuples(names, tuple(values))


def _with_tuples(names: tuple[str, ...], tuples: tuple[str, ...]) -> Assignments | None:
    solutions = [shape_of(text) for text in tuples]
    if not solutions or any(one.kind != "tuple" or len(one.parts) != len(names) for one in solutions):
        return None
    return Assignments(names, tuple(one.parts for one in solutions), False)


def _names(text: str) -> tuple[str, ...] | None:
    shape = shape_of(text)
    if shape.kind != "tuple" or shape.brackets != "()" or not 2 <= len(shape.parts) <= MAX_NAMES:
        return None
    return shape.parts if len(set(shape.parts)) == len(shape.parts) and all(map(is_label, shape.parts)) else None


def _shape(assignments: Assignments, ordered: bool) -> Shape:
    """Return a tuple for one solution, a list of tuples for several."""
    if assignments.single:
        return Shape("tuple", assignments.solutions[0], "()") if ordered else Shape("list", assignments.solutions[0])
    return Shape("list", tuple(f"({', '.join(values)})" for values in assignments.solutions))


def _in_common_order(named: Assignments) -> Assignments:
    """Return y = 2, x = 1 in the order of the coordinates of a point, x, y and z; any other names keep their order."""
    names = sorted(named.names)
    if names not in (["x", "y"], ["x", "y", "z"]):
        return named
    order = [named.names.index(name) for name in names]
    return Assignments(tuple(names), tuple(tuple(values[i] for i in order) for values in named.solutions), named.single)


def _differ_in_index(names: tuple[str, ...]) -> bool:
    """Return whether the names are x_1, x_2, ...: the roots of one equation, which have no order."""
    return len({_INDEX.sub("", name) for name in names}) == 1
