"""Progress of a run: a tqdm bar on a terminal, plain lines elsewhere."""

import io

import pytest

from baselines.runs.progress import Reporter, RunProgress

TRAIN = {
    "kind": "train", "arm": "marft", "task": "relay", "seed": 0, "update": 3, "reward": 0.5, "wall_s": 2.0,
    "explained_variance": None, "lam_in": 1.0, "skipped_batches": 0, "explained_variance_by_position": {"1": 0.25},
    "agents": {"a_0": {"kl_reference": 0.01, "entropy": 1.5}}, "seconds": {"rollout": 0.1},
}  # fmt: skip
EVAL = {
    "kind": "eval", "arm": "marft", "task": "relay", "seed": 0, "update": 5, "mode": "sampled", "accuracy": 0.75,
    "n": 8, "no_answer": 0, "not_graded": 1, "item_index": [1], "item_score": [1.0],
    "cooperation": {"a_0": {"accuracy": 0.25, "drop": 0.5, "unmoved": 0.0}},
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    progress = RunProgress(10, out, interval_s=0.0)
    for row in (EVAL, TRAIN, {**EVAL, "accuracy": None}, {**TRAIN, "reward": None, "skipped": "no graded episode"}):
        progress.row(row)
    progress.close()
    assert out.getvalue() == (
        "update 5/10: relay, sampled accuracy 75.0% of 8, 1 not graded\n"
        "    with a_0's messages shuffled -50.0%\n"
        "update 3/10: reward 0.500, lam_in 1.00, kl 0.010, 2.0 s, 00:14 left\n"
        "update 5/10: relay, sampled nothing graded, 1 not graded\n"
        "    with a_0's messages shuffled -50.0%\n"
        "update 3/10: nothing graded, lam_in 1.00, kl 0.010, skipped: no graded episode, 2.0 s, 00:14 left\n"
    )


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_the_last_update_is_always_printed(stream):
    """Also within the interval between two status lines, and on a terminal, where the bar is erased."""
    out = stream()
    progress = RunProgress(4, out, interval_s=60.0)
    for row in (TRAIN, {**TRAIN, "update": 4}, {**EVAL, "update": 4}):
        progress.row(row)
    progress.close()
    last = "update 4/4: reward 0.500, lam_in 1.00, kl 0.010, 2.0 s, 00:00 left\n"
    assert last in out.getvalue() and "update 3/4" not in out.getvalue()


def test_plain_status_lines_are_rate_limited():
    out = io.StringIO()
    reporter = Reporter(10, out, unit="run", interval_s=60.0)
    reporter.update(1, "dropped")
    reporter.line("printed")
    reporter.update(2, "dropped")
    reporter.close()
    assert out.getvalue() == "printed\n"


def test_a_bar_on_a_terminal():
    out = Terminal()
    progress = RunProgress(10, out)
    progress.line("header")
    for row in (TRAIN, EVAL, {**TRAIN, "update": 4}):
        progress.row(row)
    assert out.getvalue().startswith("header\n") and "\r3/10 [" in out.getvalue()
    assert "], reward 0.500, lam_in 1.00, kl 0.010" in out.getvalue()
    assert "\rupdate 5/10: relay, sampled accuracy 75.0% of 8" in out.getvalue()  # above the bar, which is redrawn
    assert "\r4/10 [" in out.getvalue()
    progress.close()
    assert out.getvalue().endswith(" \r")  # the bar is erased


def test_a_run_that_trained_nothing_says_so_at_its_end():
    def report(*rows):
        out = io.StringIO()
        progress = RunProgress(10, out)
        for row in rows:
            progress.row(row)
        progress.close()
        return out.getvalue()

    skipped = {**TRAIN, "skipped": "no reward variance"}
    assert report(skipped, skipped).startswith("no batch trained a policy (no reward variance). If all episodes")
    assert report(skipped, TRAIN, skipped) == "" and report() == ""
