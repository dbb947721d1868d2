"""Learning rates in the report: chosen by training reward alone, equal trials told, the same rate against the same."""

import json

import pytest

from benchmarks import report
from tests.benchmarks.made_rows import eval_row, make_rows, sampled, train_row

RATES = (3e-4, 1e-3)
# (arm, rate): items of 10 solved at the end by seeds 0, 1, and the training reward throughout.
SWEEP = {
    ("ippo", 3e-4): ((7, 8), 0.7),
    ("ippo", 1e-3): ((9, 9), 0.6),  # better on the test items, worse in training: not chosen
    ("marft", 3e-4): ((6, 6), 0.5),
    ("marft", 1e-3): ((9, 8), 0.8),
}


def sweep_rows(sweep=SWEEP, updates=10):
    rows = [make_rows({}, arms=["ippo", "marft"], seeds=[0, 1])[0]]
    rows[0]["config"]["tasks"] = {"relay": {"updates": updates, "learning_rates": {"ippo": RATES, "marft": RATES}}}
    for (arm, rate), (solved, reward) in sweep.items():
        for seed, end in enumerate(solved):
            rows += [eval_row(arm, seed, u, s, learning_rate=rate) for u, s in ((0, 3), (5, 5), (updates, end))]
            rows += [train_row(arm, seed, u, learning_rate=rate, reward=reward) for u in range(1, updates + 1)]
    return rows


def equal_rows():
    return [row | ({"generated_tokens": 100 * row["update"]} if row["kind"] == "train" else {}) for row in sweep_rows()]


def test_each_arm_stands_at_the_rate_of_its_best_training_reward():
    summary = report.summarise(sweep_rows())
    assert summary["tasks"]["relay"]["rates"]["chosen"] == {"ippo": 3e-4, "marft": 1e-3}
    assert sampled(summary)["arms"]["ippo"]["finals"] == [0.7, 0.8]
    pair = sampled(summary)["pairs"][0]
    assert pair["by_seed"] == pytest.approx([0.2, 0.0])  # .9 - .7, .8 - .8
    text = report.render_text(summary)
    assert "Learning rates: ippo 0.0003, marft 0.001 (the best of 2 trials of each, by training reward" in text


def test_a_test_item_never_chooses_the_rate():
    turned = {key: ((10, 10) if solved == (6, 6) else solved, reward) for key, (solved, reward) in SWEEP.items()}
    assert report.summarise(sweep_rows(turned))["tasks"]["relay"]["rates"]["chosen"] == {"ippo": 3e-4, "marft": 1e-3}


def test_all_trials_are_listed_with_what_chose_them():
    trials = report.summarise(sweep_rows())["tasks"]["relay"]["rates"]["trials"]
    assert [(t["arm"], t["rate"], t["chosen"]) for t in trials] == [
        ("ippo", 3e-4, True), ("ippo", 1e-3, False), ("marft", 3e-4, False), ("marft", 1e-3, True),
    ]  # fmt: skip
    assert [t["reward"] for t in trials] == pytest.approx([0.7, 0.6, 0.5, 0.8])
    assert trials[1]["after"]["sampled"]["mean"] == pytest.approx(0.9)


def test_the_same_rate_is_compared_too_with_holm_over_rates():
    pairs = report.summarise(sweep_rows())["tasks"]["relay"]["rates"]["same_rate"]
    assert [(p["rate"], p["first"], p["second"]) for p in pairs] == [(r, "marft", "ippo") for r in RATES]
    assert pairs[0]["by_seed"] == pytest.approx([-0.1, -0.2]) and pairs[1]["by_seed"] == pytest.approx([0.0, -0.1])
    assert {p["holm_tasks"] for p in pairs} == {2}
    assert "The same at equal learning rates" in report.render_text(report.summarise(sweep_rows()))


def test_arms_that_are_the_same_at_a_rate_are_said_to_be():
    rows = sweep_rows({**SWEEP, ("ippo", 3e-4): ((6, 6), 0.7)})
    assert "Identical on every item of every seed (sampled 0.0003 marft - ippo)." in report.render_text(
        report.summarise(rows)
    )


def test_only_the_last_quarter_of_training_counts_and_a_tie_goes_to_the_lower_rate():
    rows = sweep_rows({("ippo", 3e-4): ((7, 8), 0.7), ("ippo", 1e-3): ((9, 9), 0.7)})
    assert report.summarise(rows)["tasks"]["relay"]["rates"]["chosen"] == {"ippo": 3e-4}
    for row in rows:
        if row["kind"] == "train" and row["learning_rate"] == 1e-3:
            row["reward"] = 0.71 if row["update"] > 7 else 0.0
    assert report.summarise(rows)["tasks"]["relay"]["rates"]["chosen"] == {"ippo": 1e-3}


def test_unequal_numbers_of_trials_are_told():
    rows = [row for row in sweep_rows() if (row.get("arm"), row.get("learning_rate")) != ("ippo", 1e-3)]
    assert "(UNEQUAL numbers of trials: ippo 1, marft 2" in report.render_text(report.summarise(rows))


def test_a_trial_with_a_seed_missing_does_not_stand_for_choice():
    missing = ("marft", 1e-3, 1)
    rows = [row for row in sweep_rows() if row.get("update") != 10 or
            (row["arm"], row["learning_rate"], row["seed"]) != missing]  # fmt: skip
    summary = report.summarise(rows)
    assert summary["tasks"]["relay"]["rates"]["chosen"]["marft"] == 3e-4
    assert summary["tasks"]["relay"]["runs"]["planned"] == 8
    assert "marft lr 0.001 seed 1 (update 9)" in report.render_text(summary)


def test_one_rate_each_is_named_and_nothing_is_swept():
    rows = [row for row in sweep_rows() if (row.get("arm"), row.get("learning_rate")) in
            ((None, None), ("ippo", 3e-4), ("marft", 1e-3))]  # fmt: skip
    summary = report.summarise(rows)
    assert summary["tasks"]["relay"]["rates"]["trials"] == []
    assert "Learning rates: ippo 0.0003, marft 0.001 (one trial each)." in report.render_text(summary)


def test_the_same_team_on_another_data_set_stands_at_the_rate_of_its_training():
    rows = sweep_rows()
    name = "gsm8k (trained on relay)"
    for (arm, rate), ((_, end), _) in SWEEP.items():
        rows += [eval_row(arm, s, u, 1 + u // 5, task=name, learning_rate=rate) for s in (0, 1) for u in (0, 10)]
        assert end
    assert report.summarise(rows)["tasks"][name]["rates"]["chosen"] == {"ippo": 3e-4, "marft": 1e-3}


def test_equal_tokens_are_read_off_the_curve_of_the_one_that_spends_more():
    rows = sweep_rows()
    for row in rows:
        if row["kind"] == "train":
            row["generated_tokens"] = row["update"] * (200 if row["arm"] == "marft" else 100)
    found = sampled(report.summarise(rows))["equal_tokens"]
    # ippo spends 1000 in all; marft has spent them after update 5, where it solves 5 of 10.
    assert found["tokens"] == 1000
    assert found["arms"]["marft"]["mean"] == pytest.approx(0.5) and found["arms"]["ippo"]["mean"] == pytest.approx(0.75)
    assert found["pairs"][0]["mean"] == pytest.approx(-0.25)
    assert "accuracy in % after 1,000 generated tokens" in report.render_text(report.summarise(rows))
    assert "At equal tokens: as above" in report.render_text(report.summarise(equal_rows()))


def test_the_rates_are_drawn(tmp_path):
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sweep_rows()))
    report.write_report(folder)
    assert (folder / "rates_relay.png").read_bytes().startswith(b"\x89PNG")
    assert "(rates_relay.png)" in (folder / "report.md").read_text()
