"""Learning-rate sweep: selection by training reward alone, the table of all rates, and comparisons at equal rates."""

import pytest

from benchmarks import report
from tests.benchmarks.made_rows import change_rows, eval_row, make_rows, sampled, train_row, write_rows

RATES = (3e-4, 1e-3)
# (arm, rate): items of 10 solved at the end by seeds 0, 1, and the training reward throughout.
SWEEP = {
    ("ippo", 3e-4): ((7, 8), 0.7),
    ("ippo", 1e-3): ((9, 9), 0.6),  # better on held-out items, worse in training: not selected
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
    return change_rows(sweep_rows(), "train", lambda row: row.update(generated_tokens=100 * row["update"]))


def test_each_arm_has_the_rate_with_the_highest_training_reward():
    summary = report.summarise(sweep_rows())
    assert summary["tasks"]["relay"]["rates"]["selected"] == {"ippo": 3e-4, "marft": 1e-3}
    assert sampled(summary)["arms"]["ippo"]["finals"] == [0.7, 0.8]
    pair = sampled(summary)["pairs"][0]
    assert pair["by_seed"] == pytest.approx([0.2, 0.0])  # .9 - .7, .8 - .8
    text = report.render_text(summary)
    assert "Learning rates: ippo 0.0003, marft 0.001 (selected from 2 for each arm, by training reward" in text


def test_held_out_items_never_select_the_rate():
    turned = {key: ((10, 10) if solved == (6, 6) else solved, reward) for key, (solved, reward) in SWEEP.items()}
    assert report.summarise(sweep_rows(turned))["tasks"]["relay"]["rates"]["selected"] == {"ippo": 3e-4, "marft": 1e-3}


def test_all_rates_are_listed_with_the_reward_that_selects():
    sweep = report.summarise(sweep_rows())["tasks"]["relay"]["rates"]["sweep"]
    assert [(entry["arm"], entry["rate"], entry["selected"]) for entry in sweep] == [
        ("ippo", 3e-4, True), ("ippo", 1e-3, False), ("marft", 3e-4, False), ("marft", 1e-3, True),
    ]  # fmt: skip
    assert [entry["reward"] for entry in sweep] == pytest.approx([0.7, 0.6, 0.5, 0.8])
    assert sweep[1]["after"]["sampled"]["mean"] == pytest.approx(0.9)


def test_arms_are_compared_at_equal_rates_with_holm_over_rates():
    pairs = report.summarise(sweep_rows())["tasks"]["relay"]["rates"]["same_rate"]
    assert [(p["rate"], p["first"], p["second"]) for p in pairs] == [(r, "marft", "ippo") for r in RATES]
    assert pairs[0]["by_seed"] == pytest.approx([-0.1, -0.2]) and pairs[1]["by_seed"] == pytest.approx([0.0, -0.1])
    assert {p["holm_tasks"] for p in pairs} == {2}
    assert "Paired difference at equal learning rates" in report.render_text(report.summarise(sweep_rows()))


def test_identical_arms_at_one_rate_are_noted():
    rows = sweep_rows({**SWEEP, ("ippo", 3e-4): ((6, 6), 0.7)})
    assert "Identical on every item of every seed (sampled 0.0003 marft - ippo)." in report.render_text(
        report.summarise(rows)
    )


def test_only_the_last_quarter_of_training_counts_and_a_tie_goes_to_the_lower_rate():
    rows = sweep_rows({("ippo", 3e-4): ((7, 8), 0.7), ("ippo", 1e-3): ((9, 9), 0.7)})
    assert report.summarise(rows)["tasks"]["relay"]["rates"]["selected"] == {"ippo": 3e-4}
    for row in rows:
        if row["kind"] == "train" and row["learning_rate"] == 1e-3:
            row["reward"] = 0.71 if row["update"] > 7 else 0.0
    assert report.summarise(rows)["tasks"]["relay"]["rates"]["selected"] == {"ippo": 1e-3}


def test_unequal_numbers_of_rates_are_noted():
    rows = [row for row in sweep_rows() if (row.get("arm"), row.get("learning_rate")) != ("ippo", 1e-3)]
    assert "(UNEQUAL numbers of rates: ippo 1, marft 2" in report.render_text(report.summarise(rows))


def test_a_rate_with_a_missing_seed_is_not_a_candidate():
    missing = ("marft", 1e-3, 1)
    rows = [row for row in sweep_rows() if row.get("update") != 10 or
            (row["arm"], row["learning_rate"], row["seed"]) != missing]  # fmt: skip
    summary = report.summarise(rows)
    assert summary["tasks"]["relay"]["rates"]["selected"]["marft"] == 3e-4
    assert summary["tasks"]["relay"]["runs"]["planned"] == 8
    assert "marft lr 0.001 seed 1 (update 9)" in report.render_text(summary)


def test_one_rate_for_each_arm_is_no_sweep():
    rows = [row for row in sweep_rows() if (row.get("arm"), row.get("learning_rate")) in
            ((None, None), ("ippo", 3e-4), ("marft", 1e-3))]  # fmt: skip
    summary = report.summarise(rows)
    assert summary["tasks"]["relay"]["rates"]["sweep"] == []
    assert "Learning rates: ippo 0.0003, marft 0.001 (one rate for each arm)." in report.render_text(summary)


def test_a_transfer_data_set_has_the_rate_selected_in_training():
    rows = sweep_rows()
    name = "gsm8k (trained on relay)"
    for (arm, rate), ((_, end), _) in SWEEP.items():
        rows += [eval_row(arm, s, u, 1 + u // 5, task=name, learning_rate=rate) for s in (0, 1) for u in (0, 10)]
        assert end
    assert report.summarise(rows)["tasks"][name]["rates"]["selected"] == {"ippo": 3e-4, "marft": 1e-3}


def test_at_equal_tokens_the_curve_of_the_longer_run_is_interpolated():
    rows = sweep_rows()
    for row in rows:
        if row["kind"] == "train":
            row["generated_tokens"] = row["update"] * (200 if row["arm"] == "marft" else 100)
    found = sampled(report.summarise(rows))["equal_tokens"]
    # ippo generates 1000 tokens in all; marft has generated as many after update 5, where it solves 5 of 10.
    assert found["tokens"] == 1000
    assert found["arms"]["marft"]["mean"] == pytest.approx(0.5) and found["arms"]["ippo"]["mean"] == pytest.approx(0.75)
    assert found["pairs"][0]["mean"] == pytest.approx(-0.25)
    assert "accuracy in % after 1,000 generated training tokens" in report.render_text(report.summarise(rows))
    assert "At equal tokens: as above" in report.render_text(report.summarise(equal_rows()))


def test_the_sweep_is_drawn(tmp_path):
    folder = write_rows(tmp_path / "r", sweep_rows())
    report.write_report(folder)
    assert (folder / "rates_relay.png").read_bytes().startswith(b"\x89PNG")
    assert "(rates_relay.png)" in (folder / "report.md").read_text()
