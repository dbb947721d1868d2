"""Agreement of the grader with plain execution on whole data sets: reference solutions and wrong twins of them.

    python benchmarks/grading.py twins --data DIR --size 40    a table

Every reference solution must pass. A twin is a reference solution with one mutation, of ten kinds; it must fail. A twin
that passes is run again with the same tests in a single process: if it passes there too, the tests do not tell it from
the reference (the mutation changes nothing, or the tests are weak). Otherwise the grader is wrong.
"""

from __future__ import annotations

import ast
import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marft_envs.coding import datasets, grade
from marft_envs.coding.code_task import CodeTask
from marft_envs.coding.grader.program_extraction import fenced
from marft_envs.sandbox import Limits
from marft_envs.task import Problem

DATASETS = (("humaneval", "test"), ("humanevalplus", "test"), ("mbpp", "test"))
_TWIN_S = 1.0
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip


def _comparison(node: Any) -> bool:
    return isinstance(node, ast.Compare) and _replaced(node.ops, _OPPOSITES)


def _boundary(node: Any) -> bool:
    return isinstance(node, ast.Compare) and _replaced(node.ops, _BOUNDARIES)


def _replaced(operators: list[Any], by: dict[Any, Any]) -> bool:
    for place, operator in enumerate(operators):
        if type(operator) in by:
            operators[place] = by[type(operator)]()
            return True
    return False


def _arithmetic(node: Any) -> bool:
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or type(node.op) not in _OPERATORS:
        return False
    node.op = _OPERATORS[type(node.op)]()
    return True


def _number(node: Any) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        return False
    node.value += 1
    return True


def _string(node: Any) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    node.value += "x"
    return True


def _truth(node: Any) -> bool:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return True
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
        return True
    return False


def _condition(node: Any) -> bool:
    if not isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return False
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return True


def _nothing(node: Any) -> bool:
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    node.value = ast.Constant(None)
    return True


def _position(node: Any) -> bool:
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice) or not isinstance(node.ctx, ast.Load):
        return False
    node.slice = ast.BinOp(node.slice, ast.Add(), ast.Constant(1))
    return True


def _omission(node: Any) -> bool:
    """Remove the last statement of a block of several."""
    body = getattr(node, "body", None)
    if isinstance(node, ast.Module) or not isinstance(body, list) or len(body) < 2:
        return False
    body.pop()
    return True


KINDS: dict[str, Callable[[Any], bool]] = {
    "comparison": _comparison, "boundary": _boundary, "arithmetic": _arithmetic, "number": _number, "string": _string,
    "truth": _truth, "condition": _condition, "nothing": _nothing, "position": _position, "omission": _omission,
}  # fmt: skip
"""Kinds of mutations: functions that change a node of the syntax tree, and return whether they did."""


def twin(source: str, kind: str, seed: tuple[int, int]) -> str | None:
    """Return the source with one mutation at a random place, None if no place allows it.

    Args:
        source: A program.
        kind: A name of ``KINDS``.
        seed: Seed of the place.
    """
    tree = ast.parse(source)
    lone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    documentation = {id(value) for value in lone if isinstance(value, ast.Constant)}
    nodes = [node for node in ast.walk(tree) if id(node) not in documentation]
    places = [place for place, node in enumerate(nodes) if KINDS[kind](copy.deepcopy(node))]
    if not places:
        return None
    KINDS[kind](nodes[int(np.random.default_rng(seed).choice(places))])
    return ast.unparse(ast.fix_missing_locations(tree))


def passes_in_one_process(program: str, problem: Problem) -> bool:
    """Return whether a program passes the tests of its problem where both run in one sandboxed process."""
    for test in [*problem.notes["public"], *problem.gold["hidden"]]:
        call = f"check({test['entry_point']})" if test.get("entry_point") else ""
        source = "\n".join([problem.notes["before"], program, test["test_code"], call])
        verdict = grade(source, [{"input": "", "output": ""}], limits=Limits(cpu_s=_TWIN_S), prelude=True, checker=_ANY)
        if verdict.score != 1.0:
            return False
    return True


_ANY = {"type": "custom", "code": "def check(input, output, expected): return True"}


def run_twins(data: Path, size: int, write: Callable[[str], None] = print) -> int:
    """Grade reference solutions and twins, and print a Markdown table.

    Args:
        data: Folder with the data sets.
        size: Problems of each data set, equally spaced; 0 for all.
        write: Prints a line.

    Returns:
        The number of wrong verdicts.
    """
    wrong = 0
    write("| data set | kind | programs | fail | pass, also in one process | wrong verdicts | seconds |")
    write("|---|---|---|---|---|---|---|")
    for name, split in DATASETS:
        task = datasets.load(name, path=data, split=split)
        strict = datasets.load(name, path=data, split=split, time_limit_s=_TWIN_S)  # many twins never end
        step = max(1, task.size // size) if size else 1
        problems = [task.problem(index) for index in range(0, task.size, step)][: size or None]
        for kind in ("reference", *KINDS):
            started, counts = time.perf_counter(), Counter[str]()
            for problem in problems:
                for outcome in _outcomes(task if kind == "reference" else strict, problem, kind):
                    counts[outcome] += 1
                    if outcome == "wrong":
                        write(f"wrong verdict: {name} {problem.notes['id']} {kind}")
            wrong += counts["wrong"]
            numbers = (sum(counts.values()), counts["fail"], counts["same"], counts["wrong"])
            cells = [name, kind, *map(str, numbers), f"{time.perf_counter() - started:.0f}"]
            write(f"| {' | '.join(cells)} |")
    return wrong


def _outcomes(task: CodeTask, problem: Problem, kind: str) -> Iterator[str]:
    """Yield "fail", "same" (passes, as it does in one process) or "wrong" for the reference or the twin of a kind."""
    source = problem.gold["solution"]
    if kind == "reference":
        yield "same" if task.grade(fenced(source), problem).score == 1.0 else "wrong"
        return
    changed = twin(source, kind, (problem.index, list(KINDS).index(kind)))
    if changed is None:
        return
    verdict = task.grade(fenced(changed), problem)
    if not verdict.graded:
        yield "wrong"
    elif verdict.score == 1.0:
        yield "same" if passes_in_one_process(changed, problem) else "wrong"
    else:
        yield "fail"
