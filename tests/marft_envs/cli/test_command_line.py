"""The commands of ``python -m marft_envs``, and their error messages and exit codes."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from marft_envs import make, register
from marft_envs.__main__ import main
from marft_envs.cli.docs import page
from marft_envs.cli.play_by_hand import HOW_TO_REPLY, reference_text, typed_reply
from marft_envs.coding.code_task import CodeItem, CodeTask
from marft_envs.game.reward import REWARDS
from marft_envs.game.settings import MEMORIES, ORDERS, RENDER_MODES
from marft_envs.registry.env_arguments import GAME_PARAMETERS
from marft_envs.registry.versioned_names import BUILT_IN
from tests.marft_envs.testing.correct_task import Words

ROOT = Path(__file__).resolve().parents[3]


def test_list_prints_one_line_per_environment(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "math_v0      Mathematics problems for a team that ends with one answer." in lines


def test_a_new_task_passes_its_own_test(tmp_path, capsys):
    assert main(["new-task", "word_count", "--into", str(tmp_path / "tasks")]) == 0
    assert [p.name for p in sorted((tmp_path / "tasks").iterdir())] == ["test_word_count_v0.py", "word_count_v0.py"]
    assert capsys.readouterr().out.count("wrote ") == 2
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tasks"],
        capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "2 passed" in run.stdout, run.stdout + run.stderr


def test_a_new_task_passes_the_linter(tmp_path):
    """With the rules of this repository, except the order of imports (I), which depends on the project."""
    main(["new-task", "coins", "--into", str(tmp_path)])
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for command in (["check", "--ignore", "I001"], ["format", "--check"]):
        words = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new-task", "Coins"], "name 'Coins': expected lower-case words joined by _"),
        (["new-task", "3coins"], "name '3coins': expected lower-case words"),
        (["new-task", "two words"], "name 'two words': expected lower-case words"),
        (["new-task", "class"], "name 'class': expected lower-case words"),
        (["new-task", "coins_v1"], "name 'coins_v1': expected a name without a version"),
        (["new-task", "math"], "name 'math': math_v0 exists already"),
        (["new-task", "coins", "--into", "full"], "coins_v0.py exists: expected another name"),
        (["new-task", "coins", "--into", "full/coins_v0.py"], "this is a file, expected a folder"),
        (["play", "maths_v0"], f"environment 'maths_v0': expected one of {', '.join(BUILT_IN)}"),
        (["play", "math_v0", "--team", "pair"], "team='pair': expected one of solo"),
        (["play", "math_v0", "--env-arg", "rounds"], "--env-arg rounds: expected KEY=VALUE"),
        (["play", "math_v0", "--env-arg", "rounds=two"], "rounds='two': got str, expected int"),
        (["play", "math_v0", "--env-arg", "datset=relay"], "(did you mean 'dataset'?)"),
        (["play", "math_v0", "--index", "-3"], "index=-3 of word_problems: expected 0 to"),
        (["docs", "maths_v0"], f"environment 'maths_v0': expected one of {', '.join(BUILT_IN)}"),
    ],
)
def test_wrong_input_prints_one_line_and_exits_with_code_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "coins_v0.py").write_text("")
    assert main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out
    assert [p.name for p in tmp_path.rglob("*")] == ["full", "coins_v0.py"]


def test_play_by_hand(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("thirteen and fourteen\n27\n"))
    assert main(["play", "math_v0", "--index", "3"]) == 0
    output = capsys.readouterr().out
    assert "--- actor_0 reads" in output and "[user reasoner_0] thirteen and fourteen" in output
    assert "team score 1; the gold answer: 27" in output


def test_play_passes_arguments_to_env(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("first\nsecond\n"))
    assert main(["play", "math_v0", "--team", "solo", "--env-arg", "rounds=2", "--env-arg", "memory=own"]) == 0
    assert "[assistant actor_0] first\n--- actor_0 replies (" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "replies"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("```python\nprint(1)\n\n```\n.\nnext\n", ["```python\nprint(1)\n\n```", "next"]),
        ("\nI think:\n```\n  x.y\n```\n.\n", ["I think:\n```\n  x.y\n```"]),
        ("\n.\nnext\n", ["", "next"]),
        ("```\nprint(1)\n```", ["```\nprint(1)\n```"]),  # the end of the input ends a reply
        ("\n", [""]),
    ],
)
def test_a_typed_reply_is_one_line_or_several_that_end_with_a_dot(typed, replies, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert [typed_reply("> ") for _ in replies] == replies
    with pytest.raises(EOFError):
        typed_reply("> ")


def test_a_program_typed_on_several_lines(monkeypatch, capsys):
    """Problem 2 is "The result is 2 times the number of numbers."; the reasoner replies with one line."""
    program = "```python\nnumbers = list(map(int, input().split()))\nresult = 2 * len(numbers)\nprint(result)\n```"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"Count them.\n{program}\n.\n"))
    assert main(["play", "code_v0", "--index", "2"]) == 0
    output = capsys.readouterr().out
    assert f"--- actor_0 replies ({HOW_TO_REPLY}): " in output
    assert f"actor_0: correct passed 8 of 8 tests\nteam score 1; a correct answer:\n{program}\n" in output


def test_a_failed_program_gets_its_failed_test_and_a_correct_program(monkeypatch, capsys):
    """The first test has five numbers, so its expected output is 10."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n```\nprint(3)\n```\n.\n"))
    assert main(["play", "code_v0", "--team", "solo", "--index", "2"]) == 0
    output = capsys.readouterr().out
    assert "actor_0: wrong failed; test 1 of 8: wrong (output '3\\n', expected '10\\n')" in output
    assert "team score 0; a correct answer:\n```python\nnumbers = " in output and "hidden" not in output


@pytest.mark.parametrize(
    ("solution", "text"),
    [("print(1)", "a correct answer:\n```python\nprint(1)\n```"), ("", "problem 0 of one has no reference solution")],
)
def test_the_message_for_a_problem_without_a_reference_solution(solution, text):
    class One(CodeTask):
        name, size = "one", 1

        def problem(self, index):
            tests = [{"input": "", "output": "1"}]
            return CodeItem("Print 1.", "stdin", [], tests, solution).problem(index)

    env = make("code_v0", dataset=One(), team="solo")
    env.reset()
    assert reference_text(env.unwrapped) == text


def test_the_golds_of_several_agents_are_printed_as_a_mapping():
    env = make("math_v0", dataset="report", team="panel_2")
    env.reset(options={"index": 0})
    assert reference_text(env.unwrapped) == f"the gold answer: {env.unwrapped.problem.gold}"


def test_without_a_command_the_help_is_printed(capsys):
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0
    assert "python -m marft_envs new-task coins --into my_tasks" in capsys.readouterr().out


def test_play_stops_at_the_end_of_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["play", "math_v0"]) == 130
    assert capsys.readouterr().err.strip() == "marft_envs: stopped"


def test_the_committed_pages_are_up_to_date(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["docs", "--check"]) == 0, capsys.readouterr().out


def test_docs_writes_pages_and_lists_outdated_ones(tmp_path, capsys):
    pages = ["docs", "--into", str(tmp_path)]
    assert main([*pages, "--check"]) == 1
    assert "math_v0.md: missing" in capsys.readouterr().out
    assert main(pages) == 0
    assert main([*pages, "--check"]) == 0
    page = tmp_path / "math_v0.md"
    assert page.read_text().startswith("# math_v0\n\nMathematics problems")
    page.write_text(page.read_text() + "more")
    (tmp_path / "maths_v0.md").write_text("")
    capsys.readouterr()
    assert main([*pages, "--check"]) == 1
    output = capsys.readouterr().out
    assert (
        "math_v0.md: differs from the page that the docstrings make" in output
        and f"maths_v0.md: not a page of {', '.join(BUILT_IN)}" in output
    )


def test_docs_prints_the_page_where_the_folder_of_pages_does_not_exist(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["docs", "code_v0"]) == 0
    assert capsys.readouterr().out.startswith("# code_v0\n\nProgramming problems")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["math_v0", "code_v0", "words_here_v0"])
def test_a_page_lists_the_arguments_of_the_game_with_their_values(name, clean_registry):

    @register("words_here")
    class WordsHere(Words):
        """Say the word of the problem."""

    text = page(name)
    assert "\nArguments:\n\n* `" in text and "| property | value |" in text
    listed = text.partition("## Arguments of the game")[2]
    for argument, parameter in GAME_PARAMETERS.items():
        assert f"\n* `{argument}={parameter.default!r}`: " in listed
    for value in (*MEMORIES, *ORDERS, *REWARDS, *RENDER_MODES):
        assert f'"{value}"' in listed
