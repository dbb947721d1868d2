"""Equality of matrices, intervals, lists, tuples and sets, part by part."""

from __future__ import annotations

from marft_envs.mathematics.grader.decision import Decision, Pairs, all_equal, decision, different
from marft_envs.mathematics.grader.normalization import comparison_key
from marft_envs.mathematics.grader.real_intervals import is_plain_pair, read_intervals, same_intervals
from marft_envs.mathematics.grader.shape import Shape


def compare_matrices(pairs: Pairs, a: Shape, g: Shape) -> Decision:
    """Compare two matrices or vectors; a tuple may stand for a vector."""
    if a.brackets in ("||", "") and g.brackets in ("||", "") and a.brackets != g.brackets:
        return different("a determinant is not a matrix")
    # A tuple has no columns, and equals a row or a column.
    if len(a.parts) != len(g.parts) or (a.kind == g.kind and a.columns != g.columns):
        return different("the matrices have different sizes")
    return all_equal(map(pairs.same, a.parts, g.parts))


def compare_intervals(pairs: Pairs, answer: str, gold: str, a: Shape, g: Shape) -> Decision | None:
    """Compare intervals, unions and inequalities; None if one side is none of these."""
    kinds = {a.kind, g.kind}
    real_line = any(r"\mathbb" in text or "all real" in text for text in (answer, gold))
    # (a, b) on both sides may be a point, whose coordinates need not be in order: it is compared as a tuple.
    both_pairs = is_plain_pair(a) and is_plain_pair(g)
    if not real_line and (both_pairs or not kinds & {"union", "relation", "tuple", "list"}):
        return None
    if kinds == {"relation"} and "=" in a.signs + g.signs:
        return None
    gold_intervals = read_intervals(gold)
    answer_intervals = read_intervals(answer) if gold_intervals else None
    if gold_intervals is None or answer_intervals is None:
        return None
    if is_plain_pair(g) and g.parts[0] and g.kind == "tuple" and a.kind == "list":
        return None
    return same_intervals(answer_intervals, gold_intervals, pairs.trees)


def compare_collections(pairs: Pairs, a: Shape, g: Shape) -> Decision:
    """Compare lists, tuples and sets. Lists and sets have no order by default; sets have no repetitions."""
    if a.kind == "one" and len(g.parts) == 1 and g.kind == "set":
        return pairs.same(a.parts[0], g.parts[0])
    if a.kind not in ("list", "tuple", "set"):
        a = Shape("list", a.parts) if a.kind == "one" else a
    ordered = "tuple" in (a.kind, g.kind) or pairs.policy.lists == "ordered"
    if a.kind != g.kind and "tuple" in (a.kind, g.kind):  # 1, 2 against (1, 2)
        brackets = a.brackets + g.brackets
        if pairs.policy.tuples == "strict" or "set" in (a.kind, g.kind) or brackets not in ("()", "[]"):
            return different("one is a tuple, the other is not")
    if a.kind == g.kind == "tuple" and a.brackets != g.brackets:
        return different("the brackets are different")
    if a.kind == "relation":
        return different("one is a relation, the other a list, tuple or set")
    answers, golds = (_distinct(a.parts), _distinct(g.parts)) if g.kind == "set" else (a.parts, g.parts)
    if len(answers) != len(golds):
        return different("the numbers of elements are different")
    return all_equal(map(pairs.same, answers, golds)) if ordered else _match(pairs, list(answers), list(golds))


def _distinct(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the elements of a set, each spelling once."""
    return tuple({comparison_key(part): part for part in parts}.values())


def _match(pairs: Pairs, answers: list[str], golds: list[str]) -> Decision:
    """Pair each gold with an equal answer of its own.

    Each gold takes the first equal answer. That is exact where equality is transitive, and may miss a pairing
    under rounding or where 50 and 1/2 both equal 50%. Parts that are spelled alike are paired first, which is all that
    most lists need.
    """
    left: list[str] = []
    by_key: dict[str, list[str]] = {}
    for answer in answers:
        by_key.setdefault(comparison_key(answer), []).append(answer)
    for gold in golds:
        alike = by_key.get(comparison_key(gold))
        if alike:
            alike.pop()
        else:
            left.append(gold)
    answers = [answer for alike in by_key.values() for answer in alike]
    undecided = None
    for gold in left:
        for index, answer in enumerate(answers):
            part = pairs.same(answer, gold)
            if part.equal:
                answers.pop(index)
                break
            undecided = part if part.equal is None else undecided
        else:
            return undecided or different("an element of the gold is not in the answer")
    return decision(True, "")
