"""The relay: what each agent sees, what is right, and that one agent's numbers do not give the answer away."""

import pytest

from marft_envs.mathematics.problems.relay import Relay
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome


def test_symbols_are_what_the_tiny_model_reads():
    task = Relay(agents=("reasoner_0", "actor_0"))
    for i in range(100):
        problem = task.problem(i)
        assert problem.prompt == ""
        assert list(problem.private) == ["reasoner_0", "actor_0"]
        numbers = [[int(n) for n in text.removesuffix("=").split("+")] for text in problem.private.values()]
        assert all(len(own) == 2 and all(0 <= n <= 9 for n in own) for own in numbers)
        assert problem.gold == str(sum(map(sum, numbers)))
        assert problem.notes["key"] == "relay:" + ";".join(problem.private.values())


def test_words_hold_the_same_numbers_and_splits():
    for split in ("train", "test"):
        symbols, words = Relay(split=split), Relay(split=split, style="words")
        for i in range(50):
            a, b = symbols.problem(i), words.problem(i)
            assert (a.gold, a.notes["key"]) == (b.gold, b.notes["key"])
            x, y = a.private["actor_0"].removesuffix("=").split("+")
            assert b.private["actor_0"] == f"Your numbers: {x} and {y}."
            assert "team of 2" in b.prompt and r"\boxed{total}" in b.prompt
            assert not any(c.isdigit() for c in b.prompt.replace("team of 2", ""))


def test_other_numbers_of_numbers():
    assert Relay(k=1, style="words", agents=("a_0", "b_0", "c_0")).problem(0).private["a_0"].startswith("Your number: ")
    assert Relay(k=3, style="words").problem(0).private["actor_0"].count(",") == 1
    assert Relay(k=3).problem(0).private["actor_0"].count("+") == 2
    assert "team" not in Relay(style="words", agents=("solver_0",)).problem(0).prompt


def test_own_numbers_do_not_give_the_answer_away():
    """The best guess from the last agent's own numbers is right in about one of ten: P(sum of two digits = 9) = 0.1."""
    problems = [Relay().problem(i) for i in range(2_000)]
    own = [sum(int(n) for n in p.private["actor_0"].removesuffix("=").split("+")) for p in problems]
    assert 0.07 < sum(int(p.gold) == n + 9 for p, n in zip(problems, own, strict=True)) / len(problems) < 0.13


def test_grade_takes_a_number_alone_or_marked():
    task = Relay()
    problem = task.problem(0)
    assert task.grade(problem.gold, problem).outcome is Outcome.CORRECT
    assert task.grade(rf"So \boxed{{{problem.gold}}}", problem).outcome is Outcome.CORRECT
    assert task.grade(f"{problem.gold}|{problem.gold}", problem).outcome is Outcome.NO_ANSWER


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="style='verse': expected one of symbols, words"):
        Relay(style="verse")
    with pytest.raises(ValueError, match="k=0: expected 1 to 100"):
        Relay(k=0)
    with pytest.raises(ValueError, match=r"agents=\(\): expected a sequence"):
        Relay(agents=())
    with pytest.raises(ValueError, match="agents='actor_0': expected a sequence"):
        Relay(agents="actor_0")
    with pytest.raises(ValueError, match="expected each name once"):
        Relay(agents=("a_0", "a_0"))


def test_a_split_that_cannot_exist_is_refused_and_does_not_hang():
    task = Relay(agents=("a_0",), k=1, split="test")  # ten problems exist
    try:
        assert task.problem(0).notes["split"] == "test"
    except ValueError as error:
        assert "split='test'" in str(error)


def test_progress_says_whether_the_newest_total_of_the_round_is_right():
    task = Relay(agents=("a", "b", "c"))
    problem = task.problem(0)
    a, b, c = (problem.notes["totals"][agent] for agent in task.agents)
    assert c == problem.gold
    said = [(0, "a", a), (0, "b", "-1"), (0, "judge", "?"), (0, "c", "-1"), (1, "a", "-1"), (1, "b", b), (1, "c", c)]
    assert task.progress(problem, [Turn(*turn) for turn in said]) == [1, 1, 0, 0, 1, 0, 1]
    call = Turn(0, "a", "-1", "call")
    assert task.progress(problem, [call, Turn(0, "a", a), Turn(0, "b", b)]) == [1, 1, 1]
