"""The relay: its private parts, its gold, its grading, and that one agent's numbers do not reveal the answer."""

import pytest

from marft_envs.mathematics.problems.relay import Relay
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome


def test_style_symbols_is_the_format_that_the_tiny_model_reads():
    task = Relay(agents=("reasoner_0", "actor_0"))
    for i in range(100):
        problem = task.problem(i)
        assert problem.prompt == ""
        assert list(problem.private) == ["reasoner_0", "actor_0"]
        numbers = [[int(n) for n in text.removesuffix("=").split("+")] for text in problem.private.values()]
        assert all(len(own) == 2 and all(0 <= n <= 9 for n in own) for own in numbers)
        assert problem.gold == str(sum(map(sum, numbers)))
        assert problem.notes["key"] == "relay:" + ";".join(problem.private.values())


def test_style_words_has_the_same_numbers_and_splits():
    for split in ("train", "test"):
        symbols, words = Relay(split=split), Relay(split=split, style="words")
        for i in range(50):
            a, b = symbols.problem(i), words.problem(i)
            assert (a.gold, a.notes["key"]) == (b.gold, b.notes["key"])
            x, y = a.private["actor_0"].removesuffix("=").split("+")
            assert b.private["actor_0"] == f"Your numbers: {x} and {y}."
            assert "team of 2" in b.prompt and r"\boxed{total}" in b.prompt
            assert not any(c.isdigit() for c in b.prompt.replace("team of 2", ""))


def test_prompts_for_other_team_sizes_and_numbers_per_agent():
    assert Relay(k=1, style="words", agents=("a_0", "b_0", "c_0")).problem(0).private["a_0"].startswith("Your number: ")
    assert Relay(k=3, style="words").problem(0).private["actor_0"].count(",") == 1
    assert Relay(k=3).problem(0).private["actor_0"].count("+") == 2
    assert "team" not in Relay(style="words", agents=("solver_0",)).problem(0).prompt


def test_an_agents_own_numbers_do_not_reveal_the_answer():
    """The best guess from the last agent's own numbers is correct in 10 %: P(sum of two digits = 9) = 0.1."""
    problems = [Relay().problem(i) for i in range(2_000)]
    own = [sum(int(n) for n in p.private["actor_0"].removesuffix("=").split("+")) for p in problems]
    assert 0.07 < sum(int(p.gold) == n + 9 for p, n in zip(problems, own, strict=True)) / len(problems) < 0.13


def test_grade_accepts_a_marked_number_and_a_reply_that_is_a_number():
    task = Relay()
    problem = task.problem(0)
    assert task.grade(problem.gold, problem).outcome is Outcome.CORRECT
    assert task.grade(rf"So \boxed{{{problem.gold}}}", problem).outcome is Outcome.CORRECT
    assert task.grade(f"{problem.gold}|{problem.gold}", problem).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"style": "verse"}, "style='verse': expected one of symbols, words"),
        ({"k": 0}, "k=0: expected 1 to 100"),
        ({"agents": ()}, r"agents=\(\): expected a sequence"),
        ({"agents": "actor_0"}, "agents='actor_0': expected a sequence"),
        ({"agents": ("a_0", "a_0")}, "expected each name once"),
    ],
)
def test_errors_name_the_invalid_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        Relay(**arguments)


def test_a_split_without_problems_is_an_error_and_not_an_endless_loop():
    task = Relay(agents=("a_0",), k=1, split="test")  # only ten problems exist in total
    try:
        assert task.problem(0).notes["split"] == "test"
    except ValueError as error:
        assert "split='test'" in str(error)


def test_progress_reports_whether_the_last_total_of_the_round_is_correct():
    task = Relay(agents=("a", "b", "c"))
    problem = task.problem(0)
    a, b, c = (problem.notes["totals"][agent] for agent in task.agents)
    assert c == problem.gold
    turns = [(0, "a", a), (0, "b", "-1"), (0, "judge", "?"), (0, "c", "-1"), (1, "a", "-1"), (1, "b", b), (1, "c", c)]
    assert task.progress(problem, [Turn(*turn) for turn in turns]) == [1, 1, 0, 0, 1, 0, 1]
    call = Turn(0, "a", "-1", "call")
    assert task.progress(problem, [call, Turn(0, "a", a), Turn(0, "b", b)]) == [1, 1, 1]
