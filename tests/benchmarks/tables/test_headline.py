"""The result in one sentence: the difference, its interval, the seeds and what it means."""

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.headline import headlines
from tests.benchmarks.made_rows import SOLVED, make_rows


def sentence(solved, **config):
    return headlines(summarise(make_rows(solved, **config)))["relay"]


def test_a_difference_that_may_be_chance():
    # sampled: ippo ends with 7, 8, 6 of 10 items, marft with 9, 6, 9; both start with 3, 4, 2
    assert sentence(SOLVED) == (
        "On relay, marft solves 80.0 % of new problems and ippo 70.0 %, after 30.0 % before training "
        "(with sampled replies): difference +10.0 points [-55.7, +75.7], 3 seeds. "
        "The difference may be chance (inconclusive)."
    )


def test_a_clear_difference_names_the_better_arm():
    solved = {(arm, s): (3, 5, end + s % 2) for arm, end in (("ippo", 4), ("marft", 8)) for s in range(5)}
    solved["marft", 4] = (3, 5, 9)  # not the same difference in every seed
    text = sentence(solved)
    assert "difference +42.0 points [+36.4, +47.6], 5 seeds. marft is better; chance is an unlikely expl" in text


@pytest.mark.parametrize(
    ("solved", "words"),
    [
        ({("ippo", 0): (3, 5, 6), ("marft", 0): (3, 5, 8)}, "1 seed. No conclusion: this needs at least three seeds."),
        ({(a, s): (3, 5, 6) for a in ("ippo", "marft") for s in range(3)}, "Both gave the same answers to every prob"),
        ({("ippo", 0): (3, 5, 6)}, "On relay, ippo solves 60.0 % of new problems, 30.0 % before training (with sam"),
        ({(a, 0): (3, 5, 6) for a in ("ippo", "mappo", "marft", "single")}, "; 2 more arms are in the tables."),
    ],
)
def test_other_results(solved, words):
    assert words in sentence(solved)


def test_without_a_finished_run_there_is_no_result():
    rows = [row for row in make_rows() if row.get("update", 0) < 10]
    assert headlines(summarise(rows)) == {"relay": "On relay, no run has finished yet."}
