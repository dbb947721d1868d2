"""Cost, stability and cooperation: figures from train rows, and from messages in eval rows."""

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.report_text import render_text
from tests.benchmarks.made_rows import change_rows, make_rows


def test_budget_seconds_and_stability():
    summary = summarise(make_rows())
    task = summary["tasks"]["relay"]
    assert task["budget"]["marft"]["episodes"] == 640 and task["budget"]["marft"]["generated_tokens"] == 3030
    assert task["budget"]["ippo"]["wall_s"] == pytest.approx(8.0)
    assert task["seconds"]["ippo"] == pytest.approx({"wall_s": 0.8, "rollout": 0.4, "actor": 0.2})
    # Last quarter of 10 updates: 8, 9, 10 -> mean clip .09; largest .10.
    clip = task["stability"]["ippo"]["actor_0"]["clip_fraction"]
    assert clip == pytest.approx({"late": 0.09, "min": 0.01, "max": 0.1})
    assert "factor_ess" in task["stability"]["marft"]["actor_0"]
    assert "factor_ess" not in task["stability"]["ippo"]["actor_0"]
    assert task["stability"]["ippo"]["team"]["explained_variance"]["min"] == 0.3  # null is left out
    line = "Equal in all arms: episodes, prompt tokens, trained tokens; different: generated tokens (by 1.0 %)."
    assert line in render_text(summary)


def test_a_large_team_is_one_row_with_the_extreme_of_all_agents():
    def five_agents(row):
        row["agents"] = {f"agent_{i}": {"clip_fraction": i / 10, "entropy": 1.0 - i / 10} for i in range(5)}

    summary = summarise(change_rows(make_rows(), "train", five_agents))
    together = summary["tasks"]["relay"]["stability_over_agents"]["ippo"]
    assert together["clip_fraction"] == pytest.approx({"late": 0.2, "min": 0.0, "max": 0.4})
    text = render_text(summary)
    assert "all 5" in text and "0.2 (0.4)" in text and "0.8 (0.6)" in text and "agent_3" not in text
    assert "agent_3" in summary["tasks"]["relay"]["stability"]["ippo"]


def test_truncated_episodes_are_part_of_the_budget_and_not_of_stability():
    rows = change_rows(make_rows(), "train", lambda row: row.update(truncated=3 * row["update"]))
    task = summarise(rows)["tasks"]["relay"]
    assert task["budget"]["marft"]["truncated"] == 3 * max(r["update"] for r in rows if r["kind"] == "train")
    assert not any("truncated" in figures for figures in task["stability"]["marft"].values())


def test_explained_variance_is_reported_with_its_share_of_the_ceiling():
    def explain(row):
        late = row["update"] >= 8
        row["explained_variance_by_position"] = {"1": 0.0, "2": 0.3 if late else -1.0, "10": None}
        row["explained_variance_ceiling"] = {"1": 0.001, "2": 0.6, "10": 0.9}

    summary = summarise(change_rows(make_rows(), "train", explain))
    found = summary["tasks"]["relay"]["explained_variance"]["marft"]
    assert found["2"] == pytest.approx({"explained": 0.3, "ceiling": 0.6, "share": 0.5})
    assert found["1"]["share"] is None and "10" not in found
    text = render_text(summary)
    assert "% of what the label of Task.progress alone explains" in text and "0.30 (50%)" in text


def test_the_drop_from_shuffled_messages_is_reported_before_and_after():
    def shuffle(row):
        if row["mode"] == "sampled":
            row["cooperation"] = {"reasoner_0": {"accuracy": 0.1, "drop": row["accuracy"] - 0.1, "unmoved": 0.0}}
            row["messages"] = {"actor_0": {"replies": 10, "tokens": 25, "empty": 0.5, "repeated": 0.0, "distinct": 1.0}}

    summary = summarise(change_rows(make_rows(), "eval", shuffle))
    found = summary["tasks"]["relay"]["cooperation"]["ippo"]["reasoner_0"]
    assert found["before"]["mean"] == pytest.approx(0.2) and found["after"]["mean"] == pytest.approx(0.6)
    assert summary["tasks"]["relay"]["messages"]["ippo"]["actor_0"]["tokens"] == 2.5
    text = render_text(summary)
    assert "when a speaker's messages are shuffled" in text and "+60.0 [+35.2, +84.8]" in text


def test_counts_that_are_not_cumulative_are_reported():
    rows = change_rows(make_rows(), "train", lambda row: row.update(generated_tokens=300 - row["update"]))
    note = "NOTE: ippo: generated_tokens falls during a run; expected a cumulative count."
    assert note in render_text(summarise(rows))
