"""Text of the report: its lines, notes and warnings, and its layout."""

from itertools import product

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.layout import WIDTH, points
from benchmarks.tables.report_text import render_text
from tests.benchmarks.made_episodes import run_row
from tests.benchmarks.made_rows import SOLVED, change_rows, eval_row, make_rows, sampled


def text_of(rows):
    return render_text(summarise(rows))


def test_the_text_has_seeds_verdicts_and_the_width():
    text = text_of(make_rows())
    assert max(map(len, text.splitlines())) <= WIDTH and text.isascii()
    assert "6 of 6 runs finished" in text and "inconclusive" in text
    assert "  sampled  marft   90.0  60.0   90.0" in text
    assert "+10.0  [-55.7, +75.7]" in text and "5/2/30" in text


def test_sharpening_is_noted_if_greedy_starts_above_the_end_of_sampling_and_does_not_rise():
    def text(greedy):
        """Sampling rises from 3 to 7 or 6 of 10 items; greedy decoding solves the numbers given."""
        ends = {(arm, s): (3, 5, 7 - s // 2) for arm in ("ippo", "marft") for s in range(3)}
        made = make_rows(ends, modes=("sampled",))
        for (arm, seed), (update, solved) in product(
            product(("ippo", "marft"), (0, 1, 2)), zip((0, 5, 10), greedy, strict=True)
        ):
            made.append(eval_row(arm, seed, update, solved, mode="greedy"))
        return " ".join(text_of(made).split())

    note = "Greedy accuracy starts at 80.0 %, above the final sampled accuracy, and does not rise (ippo, marft)"
    assert note in text((8, 8, 8))
    assert "sharpening" not in text((8, 9, 10)) and "sharpening" not in text((6, 6, 6))


def test_a_gain_that_may_be_noise_is_not_called_sharpening():
    def text(*ends):
        solved = {("ippo", seed): (3, 5, end) for seed, end in enumerate(ends)}
        made = make_rows(solved, modes=("sampled",))
        made += [eval_row("ippo", seed, update, 9, mode="greedy") for seed in range(len(ends)) for update in (0, 5, 10)]
        return text_of(made)

    assert "sharpening" in text(7, 8, 7)
    assert "sharpening" not in text(7, 2, 5)  # the mean rises by 17 points, the interval contains 0
    assert "sharpening" not in text(7)  # one seed has no interval


def test_missing_answers_and_missing_verdicts_are_shares():
    rows = change_rows(make_rows(), "eval", lambda row: row.update(answers=40))
    change_rows(rows, "train", lambda row: row.update(not_graded=6 * row["update"]))
    text = text_of(rows)
    # 1 of 40 answers in each of 3 seeds; 2 of 12 items; 60 of 640 training episodes.
    assert "2.5 (3)" in text and "16.7 (6)" in text and "9.4 (60)" in text
    # Each share is right of the number that it is a share of: 3 x 40 answers, 3 x 12 items.
    assert "  sampled  ippo       120    2.5 (3)     36    16.7 (6)                9.4 (60)\n" in text


def test_other_code_in_a_later_session_is_noted():
    rows = make_rows()
    rows[0]["sessions"].append(rows[0]["sessions"][0] | {"sources": "4567"})
    assert "had different sources" in text_of(rows)


def test_two_configurations_in_one_file_are_noted():
    rows = make_rows()
    assert "several configurations" in text_of([*rows, rows[0] | {"config_hash": "def"}])


def test_a_grader_that_rewards_no_answer_is_flagged():
    rows = make_rows()
    run = run_row("ippo", 0)
    run["models"]["tiny"] |= {"name": "tiny-v1", "sha256": "f" * 64}
    rows.insert(1, run)
    data = {"train": {"sha256": "a"}, "test": {"sha256": "b"}, "negative_control": 0.0}
    rows[0]["data"] = {"relay": data}
    assert "relay: model tiny-v1 v1 (sha256 ffffffffffff)" in text_of(rows)
    assert "answers nothing scores 0.0 %" in text_of(rows).replace("\n    ", " ")
    data["negative_control"] = 0.25
    assert "EXPECTED 0: do not trust this grader" in text_of(rows).replace("\n    ", " ")


@pytest.mark.parametrize("seeds", [1, 3])
def test_identical_arms_have_a_verdict_of_their_own(seeds):
    solved = {(arm, s): (3, 5, 7 + s) for arm in ("ippo", "marft") for s in range(seeds)}
    rows = change_rows(make_rows(solved), "train", lambda row: row.update(generated_tokens=9 * row["update"]))
    summary = summarise([*rows, *make_rows(SOLVED, task="other")[1:]])
    pair = sampled(summary)["pairs"][0]
    assert (pair["mean"], pair["verdict"], pair["reason"]) == (0, "identical", "")
    assert sampled(summary)["equal_tokens"]["pairs"][0]["verdict"] == "identical"
    text = render_text(summary)
    row = next(line for line in text.splitlines() if line.startswith("  sampled  marft - ippo") and "identical" in line)
    assert row.split()[-6:-1] == ["-", str(seeds), "-", "-", "0.50"] and "identical *" not in text  # MDE, p, p (Holm)
    assert "Identical on every item of every seed (all pairs)." in text


def test_a_difference_that_holm_withdraws_has_a_star():
    clear = {("ippo", s): (3, 5, 5) for s in range(5)} | {("marft", s): (3, 5, 6 + s // 3) for s in range(5)}
    summary = summarise([*make_rows(clear, task="a"), *make_rows(clear, task="b")[1:]])
    assert "p (Holm)" in render_text(summary) and "marft ahead *" not in render_text(summary)
    sampled(summary, "a")["pairs"][0]["p_holm"] = 0.06
    assert "marft ahead *" in render_text(summary)


def test_unfinished_runs_are_listed_and_only_common_seeds_compared():
    rows = [row for row in make_rows(arms=["ippo", "marft"], seeds=4)
            if not (row.get("arm") == "marft" and row.get("seed") == 2 and row["update"] > 6)]  # fmt: skip
    summary = summarise(rows)
    task, pair = summary["tasks"]["relay"], sampled(summary)["pairs"][0]
    assert task["runs"] == {"finished": 5, "planned": 8, "unfinished": [{"arm": "marft", "seed": 2, "update": 6}]}
    assert pair["seeds"] == [0, 1] and pair["mean"] == pytest.approx(0.0)
    text = render_text(summary)
    assert "5 of 8 runs finished" in text and "marft seed 2 (update 6)" in text
    assert "Planned runs that have not started: 2." in text
    assert "Only seeds finished in both arms are compared: 0, 1; 1 finished in one arm only" in text


def test_one_seed_is_described_by_its_items():
    text = text_of(make_rows({key: value for key, value in SOLVED.items() if key[1] == 0}))
    assert "One seed: no interval, therefore inconclusive (all pairs)." in text
    assert "Team accuracy in % of one seed [95 % Wilson interval over items" in text and "t interval over" not in text


@pytest.mark.parametrize(
    ("seeds", "reason"), [(2, "Two seeds"), (4, "No spread over seeds"), (12, "No spread over seeds")]
)
def test_the_same_difference_in_every_seed_is_no_evidence(seeds, reason):
    """marft solves one item of ten more than ippo in every seed."""
    solved = {(arm, s): (3, 5, 5 + (arm == "marft")) for arm in ("ippo", "marft") for s in range(seeds)}
    summary = summarise(make_rows(solved))
    pair = sampled(summary)["pairs"][0]
    assert pair["mean"] == pytest.approx(0.1) and pair["verdict"] == "inconclusive"
    assert [pair[key] for key in ("low", "high", "p", "p_holm", "minimum_detectable")] == [None] * 5
    assert sampled(summary)["equal_tokens"]["pairs"][0]["verdict"] == "inconclusive"
    text = render_text(summary)
    assert f"{reason}: no interval, therefore inconclusive (all pairs)." in text and "<0.001" not in text
    assert "+10.0  [no interval]  inconclusive    -" in text


def test_items_left_out_of_a_pair_and_the_bootstrap_are_noted():
    rows = make_rows()
    last = next(row for row in rows if row["kind"] == "eval" and row["arm"] == "marft" and row["update"] == 10)
    last["item_index"], last["item_score"], last["accuracy"] = last["item_index"][:9], last["item_score"][:9], 1.0
    assert "1 items that were graded in one arm only are left out" in text_of(rows)
    solved = {(arm, s): (3, 5, 5 + s % (5 if arm == "ippo" else 4)) for arm in ("ippo", "marft") for s in range(10)}
    assert "Interval: hierarchical bootstrap" in text_of(make_rows(solved))


@pytest.mark.parametrize(("value", "text"), [(0.0041, "+0.4"), (-0.0001, "0.0"), (0.0, "0.0"), (None, "-")])
def test_points(value, text):
    assert points(value) == text
