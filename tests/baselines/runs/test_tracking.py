"""Numbers on their way to a tracker, and what a person sees."""

import io
import sys
import types

import pytest

from baselines.runs import tracking
from baselines.runs.progress import Progress
from baselines.runs.run_config import RunConfig
from baselines.runs.tracking import Nowhere, TrackerError, choose_tracker, make_tracker, scalars

CONFIG = RunConfig(arm="marft", environment_arguments={"dataset": "relay"}, updates=10)
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


def test_every_number_has_a_name():
    assert dict(scalars(TRAIN)) == {
        "train/reward": 0.5, "train/wall_s": 2.0, "train/lam_in": 1.0, "train/skipped_batches": 0.0,
        "train/explained_variance_by_position/1": 0.25, "train/agents/a_0/kl_reference": 0.01,
        "train/agents/a_0/entropy": 1.5, "train/seconds/rollout": 0.1,
    }  # fmt: skip
    names = dict(scalars(EVAL))
    assert names["eval/relay/sampled/accuracy"] == 0.75 and names["eval/relay/sampled/cooperation/a_0/drop"] == 0.5
    assert not any("item" in name for name in names)


def test_tensorboard_has_them_and_a_resumed_run_hides_what_it_says_again(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for rewards in ((0.1, 0.2, 0.3), (0.25, 0.35)):  # killed after update 3, resumed from the checkpoint of update 1
        tracker = make_tracker("tensorboard", CONFIG, tmp_path, resumed=len(rewards) == 2)
        for update, reward in enumerate(rewards, 4 - len(rewards)):
            tracker.row({**TRAIN, "update": update, "reward": reward})
        tracker.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    seen = [(e.step, round(e.value, 3)) for e in events.Scalars("train/reward")]
    assert seen == [(1, 0.1), (2, 0.25), (3, 0.35)]


def test_which_tracker(monkeypatch):
    installed = {"tensorboard"}
    monkeypatch.setattr(tracking, "find_spec", lambda name: name in installed or None)
    assert choose_tracker(None) == "tensorboard" and choose_tracker("none") == "none"
    with pytest.raises(TrackerError, match=r"track='wandb' needs the package wandb: pip install 'marft-envs\[wandb\]'"):
        choose_tracker("wandb")
    with pytest.raises(ValueError, match="track='mlflow': expected one of tensorboard, wandb, trackio, none"):
        choose_tracker("mlflow")
    installed.clear()
    assert choose_tracker(None) == "none" and isinstance(make_tracker("none", CONFIG, None, resumed=False), Nowhere)


class Recording:
    def __init__(self):
        self.begun, self.logged, self.finished = {}, [], 0

    def init(self, **keywords):
        self.begun = keywords
        return types.SimpleNamespace(log=self.logged.append, finish=self.finish)

    def finish(self):
        self.finished += 1


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_services_get_config_and_rows(monkeypatch, tmp_path, name):
    service = Recording()
    monkeypatch.setitem(sys.modules, name, service)
    tracker = make_tracker(name, CONFIG, tmp_path, resumed=True)
    tracker.row(EVAL)
    tracker.close()
    assert service.begun["config"]["learner"]["critic"] == "central" and service.begun["resume"] == "allow"
    assert service.logged == [{**dict(scalars(EVAL)), "update": 5}] and service.finished == 1


def test_a_service_that_does_not_begin_is_told(monkeypatch, tmp_path):
    def offline(**keywords):
        raise ConnectionError("no network")

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=offline))
    with pytest.raises(TrackerError, match=r"track='wandb' did not begin \(ConnectionError: no network\)"):
        make_tracker("wandb", CONFIG, tmp_path, resumed=False)


# --- what a person sees


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    progress = Progress(10, out, quiet_s=0.0)
    for row in (EVAL, TRAIN, {**EVAL, "accuracy": None}, {**TRAIN, "reward": None, "skipped": "no graded episode"}):
        progress.row(row)
    progress.close()
    assert out.getvalue() == (
        "update 5/10: relay, sampled accuracy 75.0% of 8, 1 not graded\n"
        "    without a_0's own messages -50.0%\n"
        "update 3/10: reward 0.500, lam_in 1.00, kl 0.010, 2.0 s, 14 s left\n"
        "update 5/10: relay, sampled nothing graded, 1 not graded\n"
        "    without a_0's own messages -50.0%\n"
        "update 3/10: nothing graded, lam_in 1.00, kl 0.010, skipped: no graded episode, 2.0 s, 14 s left\n"
    )
    quiet = io.StringIO()
    Progress(10, quiet).row(TRAIN)
    assert quiet.getvalue() == ""


def test_a_live_line_on_a_terminal():
    out = Terminal()
    progress = Progress(10, out)
    for row in (TRAIN, EVAL):
        progress.row(row)
    progress.close()
    live, evaluation, rest = out.getvalue().split("\r\x1b[K")[1:]
    assert live.startswith("3/10 [======              ] reward 0.500, lam_in 1.00, kl 0.010") and "\n" not in live
    assert evaluation.startswith("update 5/10: relay, sampled accuracy 75.0%") and rest == ""


def test_a_run_that_learned_nothing_says_so_at_its_end():
    def last_words(*rows):
        out = io.StringIO()
        progress = Progress(10, out)
        for row in rows:
            progress.row(row)
        progress.close()
        return out.getvalue()

    idle = {**TRAIN, "skipped": "no reward variance"}
    assert last_words(idle, idle).startswith("no batch trained a policy (no reward variance): where all scores")
    assert last_words(idle, TRAIN, idle) == "" and last_words() == ""
