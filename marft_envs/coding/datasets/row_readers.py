"""Conversion of rows of published programming data sets to a ``CodeItem``: one function per data set.

A row that cannot be graded as its data set defines (no tests, a checker that is a program of its own, files instead of
standard input) raises ``Unusable`` with the reason.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from marft_envs.coding.code_task import CodeItem
from marft_envs.coding.datasets.livecodebench_tests import decode_tests
from marft_envs.datasets.dataset_spec import Unusable
from marft_envs.datasets.files import Row

Tests = list[dict[str, Any]]
_ALLCLOSE = {"type": "float", "rel": 1e-5, "abs": 1e-8}  # numpy's allclose, with which APPS compares numbers
_PYTHON_3 = 3  # code_contests numbers the languages
_STDIN_ADVICE = "Write a Python program that reads from standard input and prints to standard output."


def read_humaneval(row: Row) -> CodeItem:
    """Read a problem whose test code defines ``check``.

    The prompt's helper functions precede the test code, which may call them, and the program.
    """
    before = _before_entry(row["prompt"], row["entry_point"])
    test = {"test_code": f"{before}\n{row['test']}", "entry_point": row["entry_point"], "classes": []}
    return _completion(row, [test])


def read_humanevalplus(row: Row) -> CodeItem:
    """Read a problem of EvalPlus.

    A row with ``test`` is as in humaneval. Otherwise the test code runs the reference solution on the row's inputs and
    compares the results.
    """
    if row.get("test"):
        return read_humaneval(row)
    groups = [(name, row[name]) for name in ("base_input", "plus_input") if row[name]]
    return _completion(row, [_against_reference(row, name, inputs) for name, inputs in groups])


def _completion(row: Row, tests: Tests) -> CodeItem:
    prompt = f"Complete this Python function. Reply with the whole function.\n\n{str(row['prompt']).strip()}"
    before = _before_entry(row["prompt"], row["entry_point"])
    solution = row["prompt"] + row["canonical_solution"]
    notes = {"id": row["task_id"], "entry_point": row["entry_point"]}
    return CodeItem(prompt, "assert", [], tests, solution, before=before, prelude=True, notes=notes)


def _before_entry(prompt: str, entry_point: str) -> str:
    """Return the imports and helper functions that precede the function to write in the prompt."""
    head, found, _ = prompt.rpartition(f"def {entry_point}(")
    return head if found else ""


_COMPARE = """
import copy as _copy, math as _math

def _close(a, b, atol):
    if isinstance(a, float) or isinstance(b, float):
        if type(a) not in (int, float) or type(b) not in (int, float):
            return False
        return a == b or (_math.isnan(a) and _math.isnan(b)) or abs(a - b) <= atol + 1e-7 * abs(b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(_close(x, y, atol) for x, y in zip(a, b))
    if isinstance(b, dict):
        return type(a) is dict and a.keys() == b.keys() and all(_close(a[k], b[k], atol) for k in b)
    return a == b

def _same(inputs, got, wanted, atol):
    return _close(got, wanted, atol) if atol else got == wanted
"""  # as EvalPlus (evaluate.py): equality, or numpy's allclose with rtol 1e-7 if the task has atol
_FIND_ZERO = """
def _same(inputs, got, wanted, atol):
    return type(got) in (int, float) and abs(sum(c * got ** i for i, c in enumerate(*inputs))) <= atol
"""  # as EvalPlus for HumanEval/32: any root of the polynomial is accepted


def _against_reference(row: Row, name: str, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return a test that compares the program with the reference solution on ``inputs``. name: of the inputs."""
    entry = row["entry_point"]
    atol = row.get("atol") or 0
    code = (
        f"_space = {{}}\nexec({row['prompt'] + row['canonical_solution']!r}, _space)\n_reference = _space[{entry!r}]\n"
        f"{_COMPARE}{_FIND_ZERO if entry == 'find_zero' else ''}\n"
        f"def check(candidate):\n    for number, inputs in enumerate({list(inputs)!r}):\n"
        "        wanted = _reference(*_copy.deepcopy(inputs))\n"
        "        got = candidate(*_copy.deepcopy(inputs))\n"
        f"        assert _same(inputs, got, wanted, {max(atol, 1e-6 if entry == 'find_zero' else 0)!r}), "
        f"f'{name} {{number}}'\n"
    )
    return {"test_code": code, "entry_point": entry, "classes": []}


def read_mbpp(row: Row) -> CodeItem:
    """Read a problem whose tests are assertions. The first is public, because it shows the function's name."""
    setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or ())
    asserts = [*row["test_list"], *(row.get("challenge_test_list") or ())]
    if not asserts:
        raise Unusable("there are no tests")
    defined = re.findall(r"^(?:def|class)\s+(\w+)", row["code"], re.M)
    shadowed = [name for name in defined if hasattr(builtins, name)]
    classes = re.findall(r"^class\s+(\w+)", row["code"], re.M)
    tests = [{"test_code": f"{setup}\n{line}".strip(), "builtins": shadowed, "classes": classes} for line in asserts]
    prompt = f"{str(row.get('text') or row.get('prompt')).strip()}\nThe program must pass tests such as:\n{asserts[0]}"
    return CodeItem(
        prompt, "assert", tests[:1], tests[1:], row["code"].replace("\r\n", "\n"), prelude=True,
        notes={"id": row["task_id"]},
    )  # fmt: skip


def read_livecodebench(row: Row) -> CodeItem:
    """Read public and private tests. The metadata name the function of a functional problem."""
    name = _loads(row.get("metadata") or "{}", "metadata").get("func_name")
    public = _typed_tests(_loads(row["public_test_cases"], "public_test_cases"), name)
    private = _typed_tests(decode_tests(row.get("private_test_cases") or "[]"), name)
    starter = str(row.get("starter_code") or "").strip()
    notes = {
        "id": row["question_id"],
        "level": row.get("difficulty"),
        "date": str(row["contest_date"])[:10],
        "subject": row.get("platform"),
    }
    # LiveCodeBench's own grader compares numbers as decimals.
    return _contest(row["question_content"], public, private, starter, notes=notes, checker="numbers")


def read_deepcoder(row: Row) -> CodeItem:
    """Read tests in JSON: a list of tests with a type or, in TACO, one list of inputs and one of outputs."""
    metadata = row.get("metadata") or {}
    metadata = _loads(metadata, "metadata") if isinstance(metadata, str) else metadata
    name = metadata.get("func_name") or metadata.get("fn_name")
    tests = row["tests"]
    tests = _loads(tests, "tests") if isinstance(tests, str) else tests
    listed = _paired(tests, name) if isinstance(tests, Mapping) else _typed_tests(tests, name)
    solutions = row.get("solutions") or [""]
    starter = str(row.get("starter_code") or "")
    return _contest(row["problem"], [], listed, starter, _without_fence(solutions[0]), checker="numbers")


def read_codeforces(row: Row) -> CodeItem:
    """Read a problem of open-r1/codeforces: the examples are public, the official tests hidden."""
    if row.get("generated_checker"):
        raise Unusable("its checker is a program of its own that reads files")
    if (row.get("input_mode") or "stdio") != "stdio":
        raise Unusable("it reads and writes files")
    parts = [row["title"], row["description"], row.get("input_format"), row.get("output_format"), row.get("note")]
    public = _typed_tests(row.get("examples") or [], None)
    hidden = _typed_tests(row.get("official_tests") or [], None)
    notes = {"id": row["id"], "level": row.get("rating"), "subject": ", ".join(row.get("tags") or ())}
    limits: dict[str, Any] = {
        "time_limit_s": float(row.get("time_limit") or 0),
        "memory_mib": int(row.get("memory_limit") or 0),
    }
    return _contest("\n\n".join(str(part) for part in parts if part), public, hidden, notes=notes, **limits)


def read_apps(row: Row) -> CodeItem:
    """Read a problem of codeparrot/apps: ``input_output`` is JSON with two lists, and fn_name for a function."""
    body = _loads(row.get("input_output") or "{}", "input_output")
    solutions = _loads(row.get("solutions") or "[]", "solutions") or [""]
    notes = {"id": row["problem_id"], "level": row.get("difficulty"), "subject": row.get("url")}
    starter = str(row.get("starter_code") or "")
    return _contest(row["question"], [], _paired(body, None), starter, solutions[0], notes, checker=_ALLCLOSE)


def read_code_contests(row: Row) -> CodeItem:
    """Read a problem of deepmind/code_contests: three groups of tests, of two lists each."""
    if row.get("input_file") or row.get("output_file"):
        raise Unusable("it reads and writes files")
    public, private, generated = (
        _paired({"inputs": t["input"], "outputs": t["output"]}, None)
        for t in (row[name] for name in ("public_tests", "private_tests", "generated_tests"))
    )
    solutions = row.get("solutions") or {"language": [], "solution": []}
    languages = zip(solutions["language"], solutions["solution"], strict=True)
    python = [text for language, text in languages if language == _PYTHON_3]
    limit = row.get("time_limit") or {}
    limits: dict[str, Any] = {
        "time_limit_s": float(limit.get("seconds") or 0) + float(limit.get("nanos") or 0) / 1e9,
        "memory_mib": int(row.get("memory_limit_bytes") or 0) >> 20,
    }
    notes = {"id": row["name"], "level": row.get("cf_rating")}
    return _contest(
        row["description"], public, private + generated, solution=(python or [""])[0], notes=notes,
        checker="tokens", **limits,
    )  # fmt: skip


def _contest(
    statement: str,
    public: Tests,
    hidden: Tests,
    starter: str = "",
    solution: str = "",
    notes: Mapping[str, Any] | None = None,
    checker: Any = "exact",
    **limits: Any,
) -> CodeItem:
    """Return the item of a contest problem; its tests decide its kind. checker: of the outputs of a program."""
    tests = [*public, *hidden]
    if not tests:
        raise Unusable("there are no tests")
    kinds = {"call" if "fn" in test else "stdin" for test in tests}
    if len(kinds) > 1:
        raise Unusable("some tests call a function, others read standard input")
    advice = f"Use this starter code:\n{starter}" if starter.strip() else _STDIN_ADVICE
    if "call" in kinds and not starter.strip():
        advice = f"Write a Python function {tests[0]['fn']}."
    prompt = f"{statement.strip()}\n\n{advice}"
    kind = kinds.pop()
    return CodeItem(
        prompt, kind, public, hidden, solution, checker if kind == "stdin" else "exact", prelude=True,
        notes=notes or {}, **limits,
    )  # fmt: skip


def _typed_tests(tests: Sequence[Mapping[str, Any]], name: str | None) -> Tests:
    """Return tests that have input, output and, in ``testtype`` or ``type``, whether they call a function."""
    found: Tests = []
    calls = [test for test in tests if _is_call(test)]
    wrapped = _are_wrapped([test["output"] for test in calls if not isinstance(test["input"], str)])
    for test in tests:
        function = test.get("fn_name") or (test.get("metadata") or {}).get("func_name") or name
        if _is_call(test):
            if not function:
                raise Unusable("a test calls a function whose name is unknown")
            found.append(_call(function, test["input"], test["output"], wrapped))
        else:
            found.append({"input": _as_string(test["input"]), "output": _as_string(test["output"])})
    return found


def _paired(body: Mapping[str, Any], name: str | None) -> Tests:
    """Return the tests of two lists, inputs and outputs, and of fn_name if they call a function."""
    function = body.get("fn_name") or name
    pairs = list(zip(body.get("inputs") or (), body.get("outputs") or (), strict=False))
    if function:
        wrapped = _are_wrapped([b for _, b in pairs])
        return [_call(function, list(a), b, wrapped) for a, b in pairs]
    return [{"input": _as_string(a), "output": _as_string(b)} for a, b in pairs]


def _is_call(test: Mapping[str, Any]) -> bool:
    return str(test.get("testtype") or test.get("type")) in ("functional", "function_call")


def _are_wrapped(outputs: Sequence[Any]) -> bool:
    """Return whether all outputs are lists of one. APPS and TACO wrap the values of some problems like this."""
    return all(isinstance(output, list) and len(output) == 1 for output in outputs)


def _call(function: str, arguments: Any, expected: Any, wrapped: bool) -> dict[str, Any]:
    """Return a "call" test. LiveCodeBench writes each argument as JSON on its own line; the others have lists."""
    if isinstance(arguments, str):
        values = [_json_or_python(line) for line in arguments.split("\n") if line.strip()]
        return {"fn": function, "args": values, "expected": _json_or_python(str(expected))}
    value = expected[0] if wrapped else expected
    return {"fn": function, "args": [_with_integer_keys(a) for a in arguments], "expected": _with_integer_keys(value)}


def _with_integer_keys(value: Any) -> Any:
    """Return a dict with integer keys if all its keys are integers that JSON wrote as strings, as APPS reads them."""
    if isinstance(value, dict) and value and all(re.fullmatch(r"-?[0-9]+", str(key)) for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def _json_or_python(text: str) -> Any:
    """Return the value of a literal, in JSON or in Python."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise Unusable(f"a test has the value {text[:40]!r}, which is not a literal") from None


def _as_string(value: Any) -> str:
    """Return an input or output as a string; APPS has some as lists of lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _loads(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Unusable(f"{what} is not JSON ({error})"[:120]) from None


def _without_fence(text: str) -> str:
    """Return a solution without its ``` fence."""
    found = re.search(r"```(?:python)?\n(.*?)```", text, re.S)
    return found[1] if found else text
