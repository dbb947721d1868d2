"""grading.py: case files, and the table of the speed benchmark on a few answers."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import grading
from benchmarks.graders import rivals
from benchmarks.graders.inputs import GOLDS, Item, groups_of_items
from benchmarks.graders.speed_table import table
from marft_envs.mathematics import grade
from marft_envs.verdict import Outcome

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    {"id": "a", "gold": "42", "answer": r"\boxed{42}", "expected": True, "category": "number"},
    {"id": "b", "gold": "42", "answer": r"\boxed{43}", "expected": True, "category": "number"},
    {"id": "c", "gold": "42", "answer": r"\boxed{42}", "expected": False, "policy": True},
    {"id": "d", "gold": "42", "answer": "", "expected": False, "policy": False},
]


def write(path, cases):
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def test_cases_from_the_command_line(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "grading.py", "cases", write(tmp_path / "c.jsonl", CASES)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("error b mathematics: expected correct, got wrong: gold='42' answer='\\\\boxed{43}'")
    assert lines[1].startswith("policy c mathematics: expected not correct, got correct")
    assert re.fullmatch(r"cases=4 errors=1 policy=1 worst_s=\d\.\d{3}", lines[2])
    assert len(lines) == 3


def test_only_errors_change_the_exit_code(tmp_path):
    """A wrong verdict on a debatable case does not."""
    assert grading.main(["cases", str(write(tmp_path / "c.jsonl", [CASES[0], *CASES[2:]]))]) == 0
    assert grading.main(["cases", str(write(tmp_path / "c.jsonl", CASES))]) == 1


def test_the_case_file_of_the_guide_has_no_errors(tmp_path):
    [text] = re.findall(r"```jsonl\n(.*?)```", (ROOT / "docs" / "grading.md").read_text(), re.S)
    (tmp_path / "c.jsonl").write_text(text)
    summary = grading.run_cases(tmp_path / "c.jsonl", lambda _: None)
    assert (summary["cases"], summary["errors"]) == (2, 0)


def test_the_help_describes_every_field_of_a_case_file(capsys):
    with pytest.raises(SystemExit) as end:
        grading.parse(["cases", "--help"])
    text = capsys.readouterr().out
    fields = {field for kind in grading.KINDS for field in kind.fields} | {
        "checker",
        "time_limit",
        "category",
        "policy",
    }
    assert end.value.code == 0 and [field for field in sorted(fields) if field not in text] == []
    assert "expected: true or false" in text and 'expected: "pass", "fail", or "any"' in text


def test_another_kind_of_case_can_be_added(tmp_path, monkeypatch):
    """Kinds are recognised by their fields, and a file may hold several."""
    kind = grading.Kind(
        "sums", frozenset(("a", "b")), lambda case: grading.Judgement("no" * (case["a"] < case["b"]), 0.5)
    )
    monkeypatch.setattr(grading, "KINDS", (*grading.KINDS, kind))
    lines = []
    path = write(tmp_path / "c.jsonl", [CASES[0], {"a": 1, "b": 2, "id": "x"}, {"a": 2, "b": 1}])
    assert grading.run_cases(path, lines.append) == {"cases": 3, "errors": 1, "policy": 0, "worst_s": 0.5}
    assert lines[0] == "error x sums: no"


def test_a_fault_of_the_grader_is_a_wrong_verdict(monkeypatch):
    from marft_envs.verdict import Verdict

    monkeypatch.setattr(grading, "grade", lambda *_: Verdict.not_graded("broken"))
    assert "not_graded" in grading.judge_mathematics(CASES[3]).mistake


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"gold": "1"', "line 1: not valid JSON"),
        (
            '{"gold": "1"}',
            "line 1: fields gold; expected those of a known kind of case (mathematics: answer, expected, gold",
        ),
        ("[1]", "line 1: fields list; expected"),
        (
            '{"gold": "1", "answer": "1", "expected": "correct"}',
            "line 1: expected='correct' in a mathematics case; must be true or false",
        ),
        (
            '{"kind": "stdin", "program": "", "tests": [], "expected": true}',
            'line 1: expected=True in a code case; must be "pass" or "fail" or "any"',
        ),
        (
            '{"kind": "assert", "program": "", "tests": [{"test_code": "assert ("}], "expected": "fail"}',
            "case 1: tests[0]: test_code does not compile: SyntaxError, line 1",
        ),
        ("\n", "c.jsonl: no cases; expected a JSONL file with one case per line"),
        (None, "cannot be read"),
    ],
)
def test_a_case_file_that_cannot_be_used_is_named(tmp_path, text, message, capsys):
    path = tmp_path / "c.jsonl"
    if text is not None:
        path.write_text(text)
    assert grading.main(["cases", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_our_grader_agrees_with_the_inputs(monkeypatch):
    """Every input has the verdict of our grader, so the table of false verdicts can be trusted."""
    monkeypatch.delenv("MARFT_DATA", raising=False)  # use the generated golds
    groups = dict(groups_of_items(None, 60))
    assert list(groups) == ["integers", "MATH golds", "hostile"]
    assert len(groups["hostile"]) >= 20
    for name in ("integers", "MATH golds"):
        assert {item.correct for item in groups[name]} == {True, False}
        for item in groups[name]:
            assert (grade(item.reply, item.gold).outcome is Outcome.CORRECT) == item.correct, item
    assert len({item.gold for item in groups["MATH golds"]}) == len(GOLDS)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        groups_of_items(Path("nowhere"), 10)


def test_measure_counts_false_verdicts_and_failures():
    items = [
        Item("a", "1", True),
        Item("b", "1", False),
        Item("c", "1", True),
        Item("d", "1", False),
        Item("e", "1", True),
    ]
    verdicts = {"a": (False, 0.1), "b": (True, 0.2), "c": (None, 0.4), "d": (False, 0.1), "e": (True, 0.2)}
    row = rivals.measure(lambda item: verdicts[item.reply], items)
    assert row == {
        "answers": 5, "per_s": pytest.approx(5.0), "p50_ms": pytest.approx(200), "p99_ms": pytest.approx(400),
        "worst_s": 0.4, "false_accepts": 1, "false_rejects": 1, "failed": 1,
    }  # fmt: skip
    text = table(
        [{"group": "g", "grader": "ours", **row}, {"group": "g", "grader": "math-verify", **row, "per_s": 0.5}]
    )
    assert "| g | ours | 5 | 5 | 200.000 | 400.00 | 0.40 | 1 | 1 | 1 |" in text
    assert text.endswith("g: ours is 10.0 times math-verify")


def test_math_verify_has_a_process_that_is_killed_when_it_hangs(monkeypatch):
    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    with rivals.MathVerify(hang_s=20) as rival:
        assert rival.judge(Item(r"\boxed{\frac{2}{4}}", r"\frac12", True))[0] is True
        assert rival.judge(Item(r"\boxed{3}", "4", False))[0] is False
    once = "import time\ninput()\nprint('[true, 0.1]', flush=True)\ntime.sleep(60)"
    monkeypatch.setattr(rivals, "_SERVER", once)
    with rivals.MathVerify(hang_s=0.2) as rival:
        result, seconds = rival.judge(Item(r"\boxed{3}", "4", False))
        assert result is None and 0.1 < seconds < 5
    assert rival.process is None
    monkeypatch.setattr(rivals, "_SERVER", "import no_such_module_of_ours")
    with rivals.MathVerify(hang_s=0.2) as rival, pytest.raises(ImportError, match=r"'\.\[math\]'"):
        rival.judge(Item(r"\boxed{3}", "4", False))


def test_string_equality():
    assert rivals.strings(Item(r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}", True))[0] is True
    assert rivals.strings(Item(r"so \boxed{0.5}.", r"\frac{1}{2}", True))[0] is False


CUSTOMARY = "class Solution:\n    def f(self, x: List[int]) -> int:\n        return gcd(*x)"
CALL = {"kind": "call", "program": CUSTOMARY, "tests": [{"fn": "f", "args": [[4, 6]], "expected": 2}]}
STDIN = {"kind": "stdin", "program": "print(gcd(4, 6))", "tests": [{"input": "", "output": "2"}]}


@pytest.mark.parametrize(
    ("case", "expected"),
    [(CALL, "pass"), (CALL | {"prelude": False}, "fail"), (STDIN, "fail"), (STDIN | {"prelude": True}, "pass")],
)
def test_a_case_can_ask_for_the_customary_imports(case, expected):
    assert grading.judge_program(case | {"expected": expected}).mistake == ""
