"""The report against a small rows.jsonl whose figures are known, and against every kind of broken folder."""

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report
from benchmarks.tables.curves import curve_figure, limits
from benchmarks.tables.layout import WIDTH, points
from tests.benchmarks.made_rows import SOLVED, eval_row, make_rows, sampled

ROOT = Path(__file__).resolve().parents[2]


def write(folder, rows, tail=""):
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "results", make_rows())


def test_accuracy_before_and_after_with_t_intervals():
    block = sampled(report.summarise(make_rows()))["arms"]["ippo"]
    # finals .7 .8 .6: mean .7, sd .1, half-width 4.30265 * .1 / sqrt 3 = .248414.
    assert block["finals"] == [0.7, 0.8, 0.6] and block["seeds"] == [0, 1, 2]
    assert block["after"]["mean"] == pytest.approx(0.7)
    assert block["after"]["low"] == pytest.approx(0.7 - 0.248414, abs=1e-6)
    assert block["before"]["mean"] == pytest.approx(0.3)
    assert block["iqm"] == pytest.approx(0.7)  # 3 // 4 = 0 are cut
    assert (block["graded"], block["no_answer"], block["not_graded"]) == (30, 3, 6)


def test_paired_difference_and_discordant_items():
    pair = sampled(report.summarise(make_rows()))["pairs"][0]
    assert (pair["first"], pair["second"]) == ("marft", "ippo")
    # Seeds: .9-.7, .6-.8, .9-.6 = .2, -.2, .3: mean .1, sd sqrt(.07) = .264575; half 4.30265 * .264575 / sqrt 3.
    assert pair["by_seed"] == pytest.approx([0.2, -0.2, 0.3])
    assert pair["mean"] == pytest.approx(0.1)
    assert pair["high"] - pair["mean"] == pytest.approx(0.657243, abs=1e-5)
    assert pair["verdict"] == "inconclusive"
    # The solved items are the first ones, so 2 + 3 items go to marft, 2 to ippo, of 30.
    assert (pair["first_better"], pair["second_better"], pair["items"]) == (5, 2, 30)
    # marft's .9 .6 .9 against .7 .8 .6: wins 2x3, of .6: one tie: (6 + .5) / 9.
    assert pair["probability_of_improvement"] == pytest.approx(6.5 / 9)


def test_course_of_training():
    block = sampled(report.summarise(make_rows()))
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


def test_budget_seconds_and_stability():
    task = report.summarise(make_rows())["tasks"]["relay"]
    assert task["budget"]["marft"]["episodes"] == 640 and task["budget"]["marft"]["generated_tokens"] == 3030
    assert task["budget"]["ippo"]["wall_s"] == pytest.approx(8.0)
    assert task["seconds"]["ippo"] == pytest.approx({"wall_s": 0.8, "rollout": 0.4, "actor": 0.2})
    # Last quarter of 10 updates: 8, 9, 10 -> mean clip .09; largest .10.
    clip = task["stability"]["ippo"]["actor_0"]["clip_fraction"]
    assert clip == pytest.approx({"late": 0.09, "min": 0.01, "max": 0.1})
    assert "factor_ess" in task["stability"]["marft"]["actor_0"]
    assert "factor_ess" not in task["stability"]["ippo"]["actor_0"]
    assert task["stability"]["ippo"]["team"]["explained_variance"]["min"] == 0.3  # null is left out
    text = report.render_text(report.summarise(make_rows()))
    assert "Equal in all arms: episodes, prompt tokens, trained tokens; differ: generated tokens (by 1.0 %)." in text


def test_a_large_team_is_told_in_a_row_with_its_worst_agent():
    rows = make_rows()
    for row in rows:
        if row["kind"] == "train":
            row["agents"] = {f"agent_{i}": {"clip_fraction": i / 10, "entropy": 1.0 - i / 10} for i in range(5)}
    summary = report.summarise(rows)
    together = summary["tasks"]["relay"]["stability_over_agents"]["ippo"]
    assert together["clip_fraction"] == pytest.approx({"late": 0.2, "min": 0.0, "max": 0.4})
    text = report.render_text(summary)
    assert "all 5" in text and "0.2 (0.4)" in text and "0.8 (0.6)" in text and "agent_3" not in text
    assert "agent_3" in summary["tasks"]["relay"]["stability"]["ippo"]


def test_truncated_episodes_are_counted_so_far_and_are_no_stability():
    rows = make_rows()
    for row in rows:
        if row["kind"] == "train":
            row["truncated"] = 3 * row["update"]
    task = report.summarise(rows)["tasks"]["relay"]
    assert task["budget"]["marft"]["truncated"] == 3 * max(r["update"] for r in rows if r["kind"] == "train")
    assert not any("truncated" in figures for figures in task["stability"]["marft"].values())


def test_explained_variance_stands_beside_its_ceiling():
    rows = make_rows()
    for row in rows:
        if row["kind"] == "train":
            early = row["update"] < 8
            row["explained_variance_by_position"] = {"1": 0.0, "2": -1.0 if early else 0.3, "10": None}
            row["explained_variance_ceiling"] = {"1": 0.001, "2": 0.6, "10": 0.9}
    summary = report.summarise(rows)
    found = summary["tasks"]["relay"]["explained_variance"]["marft"]
    assert found["2"] == pytest.approx({"explained": 0.3, "ceiling": 0.6, "share": 0.5})
    assert found["1"]["share"] is None and "10" not in found
    text = report.render_text(summary)
    assert (
        "(% of what the label explains)" in text
        and "the most that any critic could" not in text
        and "0.30 (50%)" in text
    )


def test_the_fall_when_messages_are_shuffled_is_told_before_and_after():
    rows = make_rows()
    for row in rows:
        if row["kind"] == "eval" and row["mode"] == "sampled":
            row["cooperation"] = {"reasoner_0": {"accuracy": 0.1, "drop": row["accuracy"] - 0.1, "unmoved": 0.0}}
            row["messages"] = {"actor_0": {"replies": 10, "tokens": 25, "empty": 0.5, "repeated": 0.0, "distinct": 1.0}}
    summary = report.summarise(rows)
    found = summary["tasks"]["relay"]["cooperation"]["ippo"]["reasoner_0"]
    assert found["before"]["mean"] == pytest.approx(0.2) and found["after"]["mean"] == pytest.approx(0.6)
    assert summary["tasks"]["relay"]["messages"]["ippo"]["actor_0"]["tokens"] == 2.5
    text = report.render_text(summary)
    assert "when a speaker's messages are shuffled" in text and "+60.0 [+35.2, +84.8]" in text


def test_sharpening_is_said_where_greedy_starts_above_the_end_of_sampling_and_does_not_rise():
    def rows(greedy):
        """Sampling goes from 3 to 7 of 10 items, greedy decoding as given."""
        made = make_rows({(arm, s): (3, 5, 7) for arm in ("ippo", "marft") for s in range(2)}, modes=("sampled",))
        for (arm, seed), (update, solved) in product(
            product(("ippo", "marft"), (0, 1)), zip((0, 5, 10), greedy, strict=True)
        ):
            made.append(eval_row(arm, seed, update, solved, mode="greedy"))
        return report.render_text(report.summarise(made))

    assert "Greedy decoding starts at 80.0 %, above the end of sampling, and does not rise (ippo, marft)" in rows(
        (8, 8, 8)
    )
    assert "sharpening" not in rows((8, 9, 10)) and "sharpening" not in rows((6, 6, 6))


def test_sharpening_is_not_said_of_a_gain_that_may_be_noise():
    def rows(*ends):
        solved = {("ippo", seed): (3, 5, end) for seed, end in enumerate(ends)}
        made = make_rows(solved, modes=("sampled",))
        made += [eval_row("ippo", seed, update, 9, mode="greedy") for seed in range(len(ends)) for update in (0, 5, 10)]
        return report.render_text(report.summarise(made))

    assert "sharpening" in rows(7, 8, 7)
    assert "sharpening" not in rows(7, 2, 5)  # the mean rises by 17 points, the interval holds 0
    assert "sharpening" not in rows(7)  # one seed has no interval


def test_faults_and_missing_answers_are_rates():
    rows = [row | ({"answers": 40} if row["kind"] == "eval" else {}) for row in make_rows()]
    for row in rows:
        if row["kind"] == "train":
            row["not_graded"] = 6 * row["update"]
    text = report.render_text(report.summarise(rows))
    # 1 of 40 texts in each of 3 seeds; 2 of 12 items; 60 of 640 training episodes.
    assert "2.5 (3)" in text and "16.7 (6)" in text and "9.4 (60)" in text


def test_other_code_in_a_later_session_is_noted():
    rows = make_rows()
    rows[0]["sessions"].append(rows[0]["sessions"][0] | {"sources": "4567"})
    assert "gone on with under other sources" in report.render_text(report.summarise(rows))


def test_a_grader_that_gives_something_for_nothing_is_not_passed_over():
    rows = make_rows()
    rows.insert(
        1,
        {
            "kind": "cell",
            "task": "relay",
            "models": {"tiny": {"name": "tiny-v1", "revision": "v1", "sha256": "f" * 64}},
        },
    )
    data = {"train": {"sha256": "a"}, "test": {"sha256": "b"}, "negative_control": 0.0}
    rows[0]["data"] = {"relay": data}
    assert "relay: model tiny-v1 v1 (sha256 ffffffffffff)" in report.render_text(report.summarise(rows))
    assert "answers nothing scores 0.0 %" in report.render_text(report.summarise(rows)).replace("\n    ", " ")
    data["negative_control"] = 0.25
    assert "EXPECTED 0: do not believe this grader" in report.render_text(report.summarise(rows)).replace("\n    ", " ")


def test_counts_that_are_not_totals_are_reported():
    rows = [row | {"generated_tokens": 300 - row["update"]} if row["kind"] == "train" else row for row in make_rows()]
    text = report.render_text(report.summarise(rows))
    assert "NOTE: ippo: generated_tokens falls during a run; expected a total." in text


def test_every_figure_is_rebuilt_from_the_rows_alone(folder):
    text = report.write_report(folder)
    before = (folder / "summary.json").read_bytes()
    for name in ("summary.json", "report.md", "curve_relay.png"):
        (folder / name).unlink()
    assert report.write_report(folder) == text
    assert (folder / "summary.json").read_bytes() == before
    assert text in (folder / "report.md").read_text() and "(curve_relay.png)" in (folder / "report.md").read_text()
    assert (folder / "curve_relay.png").read_bytes().startswith(b"\x89PNG")


def test_summary_equals_a_direct_recomputation(folder):
    rows = report.load_rows(folder)
    summary = json.loads(json.dumps(report.summarise(rows), allow_nan=False))
    for arm in ("ippo", "marft"):
        for mode in ("sampled", "greedy"):
            last = [row for row in rows if (row.get("mode"), row.get("arm"), row.get("update")) == (mode, arm, 10)]
            finals = [np.mean(row["item_score"]) for row in last]
            block = summary["tasks"]["relay"]["modes"][mode]
            assert block["arms"][arm]["after"]["mean"] == pytest.approx(np.mean(finals))
            assert block["curves"][arm]["mean"][-1] == pytest.approx(np.mean(finals))
            half = 4.302653 * np.std(finals, ddof=1) / np.sqrt(3)
            assert block["curves"][arm]["high"][-1] == pytest.approx(np.mean(finals) + half, abs=1e-6)


def test_the_text_shows_seeds_words_and_fits():
    text = report.render_text(report.summarise(make_rows()))
    assert max(map(len, text.splitlines())) <= WIDTH and text.isascii()
    assert "6 of 6 runs finished" in text and "inconclusive" in text
    assert "  sampled  marft   90.0  60.0   90.0" in text
    assert "+10.0  [-55.7, +75.7]" in text and "5/2/30" in text


def test_a_clear_difference_is_not_called_inconclusive():
    solved = {("ippo", s): (3, 4, 4 + s % 2) for s in range(5)} | {("marft", s): (3, 8, 8 + s % 2) for s in range(5)}
    solved[("marft", 0)] = (3, 8, 9)  # differences .5 .4 .4 .4 .4
    pair = sampled(report.summarise(make_rows(solved)))["pairs"][0]
    assert pair["verdict"] == "marft ahead" and pair["p"] < 0.001


@pytest.mark.parametrize("seeds", [1, 3])
def test_identical_arms_have_a_verdict_of_their_own(seeds):
    solved = {(arm, s): (3, 5, 7 + s) for arm in ("ippo", "marft") for s in range(seeds)}
    rows = [r | ({"generated_tokens": 9 * r["update"]} if r["kind"] == "train" else {}) for r in make_rows(solved)]
    summary = report.summarise([*rows, *make_rows(SOLVED, task="other")[1:]])
    pair = sampled(summary)["pairs"][0]
    assert (pair["mean"], pair["verdict"], pair["reason"]) == (0, "identical", "")
    assert sampled(summary)["equal_tokens"]["pairs"][0]["verdict"] == "identical"
    text = report.render_text(summary)
    row = next(line for line in text.splitlines() if line.startswith("  sampled  marft - ippo") and "identical" in line)
    assert row.split()[-6:-1] == ["-", str(seeds), "-", "-", "0.50"] and "identical *" not in text  # MDE, p, p (Holm)
    assert "Identical on every item of every seed (all pairs)." in text


def test_the_same_accuracy_by_other_items_is_not_identical():
    rows = make_rows({(arm, s): (3, 5, 5) for arm in ("ippo", "marft") for s in range(3)})
    for row in rows:
        if row["kind"] == "eval" and row["arm"] == "marft":
            row["item_score"] = row["item_score"][::-1]
    pair = sampled(report.summarise(rows))["pairs"][0]
    assert pair["mean"] == 0 and pair["verdict"] == "inconclusive"


def test_pairs_follow_the_ladder_with_marft_against_ippo_first():
    solved = {(arm, s): (3, 5, 7 + s) for arm in ("marft", "ippo", "mappo", "own_arm") for s in range(2)}
    pairs = sampled(report.summarise(make_rows(solved)))["pairs"]
    names = [(pair["first"], pair["second"]) for pair in pairs]
    assert names[0] == ("marft", "ippo") and len(names) == 6
    assert ("mappo", "ippo") in names and ("own_arm", "marft") in names


def test_unfinished_runs_are_listed_and_only_common_seeds_compared():
    rows = [row for row in make_rows(arms=["ippo", "marft"], seeds=4)
            if not (row.get("arm") == "marft" and row.get("seed") == 2 and row["update"] > 6)]  # fmt: skip
    summary = report.summarise(rows)
    task, pair = summary["tasks"]["relay"], sampled(summary)["pairs"][0]
    assert task["runs"] == {"finished": 5, "planned": 8, "unfinished": [{"arm": "marft", "seed": 2, "update": 6}]}
    assert pair["seeds"] == [0, 1] and pair["mean"] == pytest.approx(0.0)
    text = report.render_text(summary)
    assert "5 of 8 runs finished" in text and "marft seed 2 (update 6)" in text
    assert "Planned runs without any row yet: 2." in text
    assert "Only seeds finished in both arms are compared: 0, 1; 1 finished in one arm only" in text


def test_nothing_finished_is_said_and_drawn(tmp_path):
    folder = write(tmp_path / "r", [row for row in make_rows() if row.get("update", 0) < 10])
    text = report.write_report(folder)
    assert "0 of 6 runs finished" in text and (folder / "curve_relay.png").exists()


def test_untrained_arm_is_finished_with_its_first_evaluation():
    rows = make_rows()
    rows += [eval_row("untrained", s, 0, 3 + s, mode=mode) for s in range(3) for mode in ("sampled", "greedy")]
    summary = report.summarise(rows)
    assert summary["tasks"]["relay"]["runs"]["unfinished"] == []
    assert sampled(summary)["arms"]["untrained"]["finals"] == [0.3, 0.4, 0.5]
    assert sampled(summary)["arms"]["untrained"]["area_under_curve"] is None


def test_one_seed_shows_the_item_interval_and_no_verdict():
    summary = report.summarise(make_rows({key: value for key, value in SOLVED.items() if key[1] == 0}))
    after = sampled(summary)["arms"]["marft"]["after"]
    # Wilson, 9 of 10: [.5958, .9821] (published tables).
    assert (after["low"], after["high"]) == (pytest.approx(0.5958, abs=1e-4), pytest.approx(0.9821, abs=1e-4))
    assert after["method"] == "Wilson over items" and after["item_standard_error"] == pytest.approx(0.1)
    pair = sampled(summary)["pairs"][0]
    assert (pair["low"], pair["p"], pair["verdict"]) == (None, None, "inconclusive")
    text = report.render_text(summary)
    assert "One seed: no interval, therefore inconclusive (all pairs)." in text
    assert "Team accuracy in % of one seed [95 % Wilson interval over items" in text and "t interval over" not in text


def test_holm_over_two_tasks_can_take_a_difference_back():
    # Differences .1 .1 .1 .2 .2 (mean .14, sd .0548): t = 5.72, p = .0046; .3 -.1 .2 .2 .1 (mean .14): p = .11.
    clear = {("ippo", s): (3, 5, 5) for s in range(5)} | {("marft", s): (3, 5, 6 + s // 3) for s in range(5)}
    vague = {("ippo", s): (3, 5, 5) for s in range(5)}
    vague |= {("marft", s): (3, 5, n) for s, n in enumerate((8, 4, 7, 7, 6))}
    summary = report.summarise([*make_rows(clear, task="a"), *make_rows(vague, task="b")[1:]])
    first, second = sampled(summary, "a")["pairs"][0], sampled(summary, "b")["pairs"][0]
    assert first["p_holm"] == pytest.approx(2 * first["p"]) and second["p_holm"] == pytest.approx(second["p"])
    assert first["verdict"] == "marft ahead" and "p (Holm)" in report.render_text(summary)
    first["p_holm"] = 0.06
    assert "marft ahead *" in report.render_text(summary)


def test_repeated_samples_of_an_item_count_once():
    rows = make_rows()
    for row in rows:
        if row["kind"] == "eval":
            row["item_index"], row["item_score"] = row["item_index"] * 3, row["item_score"] * 3
    assert sampled(report.summarise(rows))["pairs"][0]["items"] == 30


def test_items_that_one_arm_could_not_grade_are_left_out_of_the_pair():
    rows = make_rows()
    last = next(row for row in rows if row["kind"] == "eval" and row["arm"] == "marft" and row["update"] == 10)
    last["item_index"], last["item_score"] = last["item_index"][:9], last["item_score"][:9]  # the unsolved one
    last["accuracy"] = 1.0
    summary = report.summarise(rows)
    pair = sampled(summary)["pairs"][0]
    assert pair["items"] == 29 and pair["items_left_out"] == 1
    assert pair["by_seed"][0] == pytest.approx(2 / 9)  # 9 of 9 against 7 of 9, not against 7 of 10
    assert "1 items graded in one arm only are left out" in report.render_text(summary)


def test_ten_seeds_are_bootstrapped_the_same_way_each_time():
    solved = {(arm, s): (3, 5, 5 + (s * (1 + (arm == "marft"))) % 5) for arm in ("ippo", "marft") for s in range(10)}
    once, again = (report.summarise(make_rows(solved)) for _ in range(2))
    assert once == again and sampled(once)["pairs"][0]["method"] == "hierarchical bootstrap"
    assert "Interval: hierarchical bootstrap" in report.render_text(once)


def test_different_items_cannot_be_paired(folder, capsys):
    rows = make_rows()
    for row in rows:
        if row["kind"] == "eval" and row["arm"] == "marft":
            row["item_index"] = [index + 100 for index in row["item_index"]]
    write(folder, rows)
    assert report.main([str(folder)]) == 2
    assert "seed 0: marft and ippo share no evaluation item" in capsys.readouterr().err


def test_a_resumed_run_that_wrote_rows_twice_counts_once():
    rows = make_rows()
    stale = [eval_row("ippo", 0, 10, solved, mode=mode) for solved, mode in ((0, "sampled"), (1, "greedy"))]
    summary = report.summarise([*stale, *rows])
    assert summary["tasks"]["relay"]["modes"] == report.summarise(rows)["tasks"]["relay"]["modes"]
    assert summary["notes"] == ["2 rows were written twice (a resumed run); the last one counts"]


def test_two_configurations_in_one_file_are_flagged():
    rows = make_rows()
    assert "several configurations" in report.render_text(report.summarise([*rows, rows[0] | {"config_hash": "def"}]))


def test_a_half_written_last_line_is_tolerated_and_reported(tmp_path):
    folder = write(tmp_path / "r", make_rows(), tail='{"kind": "eval", "arm": "ip')
    text = report.write_report(folder)
    number = len(make_rows()) + 1
    assert f"NOTE: line {number}, the last of rows.jsonl, is half-written and was left out" in text


BAD_ROWS = {
    "accuracy nan": (eval_row("ippo", 0, 0, 3, accuracy=float("nan")), r"accuracy must lie in \[0, 1\], got nan"),
    "wrong mean": (eval_row("ippo", 0, 0, 3, accuracy=0.5), "accuracy 0.5 is not the mean of its item scores, 0.3000"),
    "score nan": (eval_row("ippo", 0, 0, 3, item_score=[float("nan")] * 10), r"item_score of item 0 must lie in"),
    "lengths": (eval_row("ippo", 0, 0, 3, item_index=[1]), "lists of one length"),
    "mode": (eval_row("ippo", 0, 0, 3, mode="argmax"), "mode must be one of sampled, greedy, got 'argmax'"),
    "seed": (eval_row("ippo", "one", 0, 3), "seed must be a whole number of 0 or more, got 'one'"),
    "missing": ({"kind": "eval", "arm": "ippo"}, "eval row without task, seed, update"),
    "not an object": ([1], "is not an object with a 'kind'"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_is_named_with_its_line(tmp_path, name):
    row, message = BAD_ROWS[name]
    folder = write(tmp_path / "r", [make_rows()[0], row, *make_rows()[1:]])
    with pytest.raises(report.ReportError, match=rf"rows.jsonl line 2.*{message}"):
        report.load_rows(folder)


def test_an_evaluation_without_any_graded_item_is_no_zero(tmp_path):
    rows = make_rows()
    for row in rows:
        if row["kind"] == "eval" and (row["arm"], row["seed"], row["update"]) == ("marft", 2, 10):
            row.update(accuracy=None, n=0, item_index=[], item_score=[], not_graded=10)
    summary = report.summarise(report.load_rows(write(tmp_path / "r", rows)))
    assert sampled(summary)["arms"]["marft"]["finals"] == [0.9, 0.6]
    assert summary["tasks"]["relay"]["runs"]["unfinished"] == [{"arm": "marft", "seed": 2, "update": 10}]


def run_script(*arguments, cwd):
    command = [sys.executable, str(ROOT / "benchmarks" / "report.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_it_runs_as_a_file_from_anywhere_and_loads_no_torch(folder, tmp_path):
    done = run_script(folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "COMPARISON OF LEARNERS" in done.stdout and str(folder) in done.stdout.splitlines()[-1]
    unwanted = ("torch", "matplotlib.pyplot", "pandas")
    code = f"import sys, benchmarks.report; print([m for m in {unwanted} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_broken_folder_is_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "none").mkdir()
    lines = [json.dumps(row) for row in make_rows()]
    cases = {
        tmp_path / "absent": "does not exist",
        tmp_path / "file": "is not a folder",
        tmp_path / "none": "holds no rows.jsonl",
        write(tmp_path / "empty", []): "is empty",
        write(tmp_path / "head", make_rows()[:1]): "has no eval rows",
        write(tmp_path / "middle", [], tail="\n".join([lines[0], "{broken", *lines[1:]])): "line 2 is not JSON",
    }
    for folder, words in cases.items():
        assert report.main([str(folder)]) == 2
        error = capsys.readouterr().err
        assert words in error and str(folder) in error and error.count("\n") == 1


def test_a_script_error_has_no_stack_trace(tmp_path):
    done = run_script(tmp_path / "absent", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


def test_module_names_shadow_nothing():
    shadowed = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} & set(sys.stdlib_module_names)
    assert not shadowed, f"these modules in benchmarks/ hide the standard library's when a script runs: {shadowed}"


def test_axis_limits_come_from_the_data_and_flat_curves_look_flat():
    summary = report.summarise(make_rows({("ippo", s): (3, 3, 3) for s in range(2)}, modes=("sampled",)))
    # All at 30 %: a span of 10 points around it.
    assert limits(summary["tasks"]["relay"]) == pytest.approx((25, 35))
    # From 20 to 100 % (greedy 10 of 10): margin .08 * 80 = 6.4 below, cut at 101.5 above.
    assert limits(report.summarise(make_rows())["tasks"]["relay"]) == pytest.approx((13.6, 101.5))


@pytest.mark.parametrize(("seeds", "bands"), [(1, 0), (2, 0), (3, 2)])
def test_a_band_is_drawn_from_three_seeds_on(seeds, bands):
    solved = {key: counts for key, counts in SOLVED.items() if key[1] < seeds}
    figure = curve_figure("relay", report.summarise(make_rows(solved, modes=("sampled",)))["tasks"]["relay"])
    assert len(figure.axes[0].collections) == bands
    assert ("band" in figure.legends[0].get_title().get_text()) == (bands > 0)


def test_task_names_become_safe_file_names(tmp_path):
    folder = write(tmp_path / "r", make_rows(task="relay/k=2 ../x"))
    report.write_report(folder)
    assert (folder / "curve_relay-k-2-..-x.png").exists()


@pytest.mark.parametrize(("value", "text"), [(0.0041, "+0.4"), (-0.0001, "0.0"), (0.0, "0.0"), (None, "-")])
def test_points(value, text):
    assert points(value) == text
