"""Figures of a comparison, checked by hand on small sets of rows: accuracies, pairs of arms, the course of training."""

import json

import numpy as np
import pytest

from benchmarks.analysis.read_rows import load_rows
from benchmarks.analysis.summary import summarise
from tests.benchmarks.made_rows import SOLVED, change_rows, eval_row, make_rows, sampled, write_rows


def test_accuracy_before_and_after_with_t_intervals():
    block = sampled(summarise(make_rows()))["arms"]["ippo"]
    # finals .7 .8 .6: mean .7, sd .1, half-width 4.30265 * .1 / sqrt 3 = .248414.
    assert block["finals"] == [0.7, 0.8, 0.6] and block["seeds"] == [0, 1, 2]
    assert block["after"]["mean"] == pytest.approx(0.7)
    assert block["after"]["low"] == pytest.approx(0.7 - 0.248414, abs=1e-6)
    assert block["before"]["mean"] == pytest.approx(0.3)
    assert block["iqm"] == pytest.approx(0.7)  # floor(3 / 4) = 0 values are left out at each end
    assert (block["graded"], block["no_answer"], block["not_graded"]) == (30, 3, 6)


def test_paired_difference_and_discordant_items():
    pair = sampled(summarise(make_rows()))["pairs"][0]
    assert (pair["first"], pair["second"]) == ("marft", "ippo")
    # Seeds: .9-.7, .6-.8, .9-.6 = .2, -.2, .3: mean .1, sd sqrt(.07) = .264575; half 4.30265 * .264575 / sqrt 3.
    assert pair["by_seed"] == pytest.approx([0.2, -0.2, 0.3])
    assert pair["mean"] == pytest.approx(0.1)
    assert pair["high"] - pair["mean"] == pytest.approx(0.657243, abs=1e-5)
    assert pair["verdict"] == "inconclusive"
    # The solved items are the first ones, so marft is better on 2 + 3 items and ippo on 2, of 30.
    assert (pair["first_better"], pair["second_better"], pair["items"]) == (5, 2, 30)
    # marft's .9 .6 .9 against .7 .8 .6: wins 2x3, of .6: one tie: (6 + .5) / 9.
    assert pair["probability_of_improvement"] == pytest.approx(6.5 / 9)


def test_course_of_training():
    block = sampled(summarise(make_rows()))
    marft = block["arms"]["marft"]
    # Level: mean start .3, best mean end .8 (marft): .55. First reached: 5, 5, 10 -> median 5.
    assert block["threshold"] == pytest.approx(0.55)
    assert (marft["updates_to_threshold"], marft["threshold_reached"]) == (5, 3)
    # ippo's seed 2 (.2 .5 .6) reaches it at 10 too.
    assert (block["arms"]["ippo"]["updates_to_threshold"], block["arms"]["ippo"]["threshold_reached"]) == (5, 3)
    assert marft["largest_fall"] == pytest.approx([0, 0.3, 0])
    assert marft["final_fall"] == pytest.approx([0, 0.3, 0]) and marft["collapsed"] == 1
    # Areas: (.3/2 + .8 + .9/2) / 2 = .7; (.2 + .9 + .3) / 2 = .7; (.1 + .5 + .45) / 2 = .525.
    assert marft["area_under_curve"]["mean"] == pytest.approx((0.7 + 0.7 + 0.525) / 3)


def test_summary_equals_a_direct_recomputation(tmp_path):
    rows = load_rows(write_rows(tmp_path / "results", make_rows()))
    summary = json.loads(json.dumps(summarise(rows), allow_nan=False))
    for arm in ("ippo", "marft"):
        for mode in ("sampled", "greedy"):
            last = [row for row in rows if (row.get("mode"), row.get("arm"), row.get("update")) == (mode, arm, 10)]
            finals = [np.mean(row["item_score"]) for row in last]
            block = summary["tasks"]["relay"]["modes"][mode]
            assert block["arms"][arm]["after"]["mean"] == pytest.approx(np.mean(finals))
            assert block["curves"][arm]["mean"][-1] == pytest.approx(np.mean(finals))
            half = 4.302653 * np.std(finals, ddof=1) / np.sqrt(3)
            assert block["curves"][arm]["high"][-1] == pytest.approx(np.mean(finals) + half, abs=1e-6)


def test_a_clear_difference_has_a_verdict():
    solved = {("ippo", s): (3, 4, 4 + s % 2) for s in range(5)} | {("marft", s): (3, 8, 8 + s % 2) for s in range(5)}
    solved[("marft", 0)] = (3, 8, 9)  # differences .5 .4 .4 .4 .4
    pair = sampled(summarise(make_rows(solved)))["pairs"][0]
    assert pair["verdict"] == "marft ahead" and pair["p"] < 0.001


def test_the_same_accuracy_on_other_items_is_not_identical():
    def reverse_marft(row):
        if row["arm"] == "marft":
            row["item_score"] = row["item_score"][::-1]

    rows = make_rows({(arm, s): (3, 5, 5) for arm in ("ippo", "marft") for s in range(3)})
    pair = sampled(summarise(change_rows(rows, "eval", reverse_marft)))["pairs"][0]
    assert pair["mean"] == 0 and pair["verdict"] == "inconclusive"


def test_pairs_follow_the_ladder_with_marft_against_ippo_first():
    solved = {(arm, s): (3, 5, 7 + s) for arm in ("marft", "ippo", "mappo", "own_arm") for s in range(2)}
    pairs = sampled(summarise(make_rows(solved)))["pairs"]
    names = [(pair["first"], pair["second"]) for pair in pairs]
    assert names[0] == ("marft", "ippo") and len(names) == 6
    assert ("mappo", "ippo") in names and ("own_arm", "marft") in names


def test_an_untrained_arm_is_finished_with_its_first_evaluation():
    rows = make_rows()
    rows += [eval_row("untrained", s, 0, 3 + s, mode=mode) for s in range(3) for mode in ("sampled", "greedy")]
    summary = summarise(rows)
    assert summary["tasks"]["relay"]["runs"]["unfinished"] == []
    assert sampled(summary)["arms"]["untrained"]["finals"] == [0.3, 0.4, 0.5]
    assert sampled(summary)["arms"]["untrained"]["area_under_curve"] is None


def test_one_seed_has_an_item_interval_and_no_verdict():
    summary = summarise(make_rows({key: value for key, value in SOLVED.items() if key[1] == 0}))
    after = sampled(summary)["arms"]["marft"]["after"]
    # Wilson, 9 of 10: [.5958, .9821] (published tables).
    assert (after["low"], after["high"]) == (pytest.approx(0.5958, abs=1e-4), pytest.approx(0.9821, abs=1e-4))
    assert after["method"] == "Wilson over items" and after["item_standard_error"] == pytest.approx(0.1)
    pair = sampled(summary)["pairs"][0]
    assert (pair["low"], pair["p"], pair["verdict"]) == (None, None, "inconclusive")


def test_holm_corrects_over_tasks():
    # Differences .1 .1 .1 .2 .2 (mean .14, sd .0548): t = 5.72, p = .0046; .3 -.1 .2 .2 .1 (mean .14): p = .11.
    clear = {("ippo", s): (3, 5, 5) for s in range(5)} | {("marft", s): (3, 5, 6 + s // 3) for s in range(5)}
    vague = {("ippo", s): (3, 5, 5) for s in range(5)}
    vague |= {("marft", s): (3, 5, n) for s, n in enumerate((8, 4, 7, 7, 6))}
    summary = summarise([*make_rows(clear, task="a"), *make_rows(vague, task="b")[1:]])
    first, second = sampled(summary, "a")["pairs"][0], sampled(summary, "b")["pairs"][0]
    assert first["p_holm"] == pytest.approx(2 * first["p"]) and second["p_holm"] == pytest.approx(second["p"])
    assert first["verdict"] == "marft ahead"


def test_a_task_without_spread_counts_in_the_family_of_holm():
    """Otherwise the number of tests, and with it every corrected p value, would depend on the results."""
    clear = {("ippo", s): (3, 5, 5) for s in range(5)} | {("marft", s): (3, 5, 6 + s // 3) for s in range(5)}
    equal = {(arm, s): (3, 5, 5 + (arm == "marft")) for arm in ("ippo", "marft") for s in range(5)}
    summary = summarise([*make_rows(clear, task="a"), *make_rows(equal, task="b")[1:]])
    first, second = sampled(summary, "a")["pairs"][0], sampled(summary, "b")["pairs"][0]
    assert first["p_holm"] == pytest.approx(2 * first["p"])
    assert (second["p"], second["p_holm"], second["holm_tasks"]) == (None, None, 2)


def test_repeated_samples_of_an_item_count_once():
    def repeat(row):
        row["item_index"], row["item_score"] = row["item_index"] * 3, row["item_score"] * 3

    assert sampled(summarise(change_rows(make_rows(), "eval", repeat)))["pairs"][0]["items"] == 30


def test_items_that_one_arm_could_not_grade_are_left_out_of_the_pair():
    rows = make_rows()
    last = next(row for row in rows if row["kind"] == "eval" and row["arm"] == "marft" and row["update"] == 10)
    last["item_index"], last["item_score"] = last["item_index"][:9], last["item_score"][:9]  # without the unsolved one
    last["accuracy"] = 1.0
    pair = sampled(summarise(rows))["pairs"][0]
    assert pair["items"] == 29 and pair["items_left_out"] == 1
    assert pair["by_seed"][0] == pytest.approx(2 / 9)  # 9 of 9 against 7 of 9, not against 7 of 10


def test_ten_seeds_are_bootstrapped_the_same_way_each_time():
    solved = {(arm, s): (3, 5, 5 + (s * (1 + (arm == "marft"))) % 5) for arm in ("ippo", "marft") for s in range(10)}
    once, again = (summarise(make_rows(solved)) for _ in range(2))
    assert once == again and sampled(once)["pairs"][0]["method"] == "hierarchical bootstrap"


def test_rows_that_a_resumed_run_wrote_twice_count_once():
    rows = make_rows()
    stale = [eval_row("ippo", 0, 10, solved, mode=mode) for solved, mode in ((0, "sampled"), (1, "greedy"))]
    summary = summarise([*stale, *rows])
    assert summary["tasks"]["relay"]["modes"] == summarise(rows)["tasks"]["relay"]["modes"]
    assert summary["notes"] == ["2 rows were written twice (a resumed run); the last one counts"]


def test_an_evaluation_without_any_graded_item_is_not_zero(tmp_path):
    def lose_verdicts(row):
        if (row["arm"], row["seed"], row["update"]) == ("marft", 2, 10):
            row.update(accuracy=None, n=0, item_index=[], item_score=[], not_graded=10)

    rows = change_rows(make_rows(), "eval", lose_verdicts)
    summary = summarise(load_rows(write_rows(tmp_path / "r", rows)))
    assert sampled(summary)["arms"]["marft"]["finals"] == [0.9, 0.6]
    assert summary["tasks"]["relay"]["runs"]["unfinished"] == [{"arm": "marft", "seed": 2, "update": 10}]
