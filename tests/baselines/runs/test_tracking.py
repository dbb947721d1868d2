"""Trackers: names of numbers, choice of the tracker, TensorBoard and the services."""

import html
import json
import sys
import types
from dataclasses import replace

import pytest

import marft_envs
from baselines.runs import tracking
from baselines.runs.episode_text import SAMPLE_COLUMNS, sample_row
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from baselines.runs.tracking import NoTracker, TrackerError, choose_tracker, make_tracker, scalars
from marft_envs.batch import BatchRunner

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


def test_every_number_of_a_row_has_a_path_as_its_name():
    assert dict(scalars(TRAIN)) == {
        "train/reward": 0.5, "train/wall_s": 2.0, "train/lam_in": 1.0, "train/skipped_batches": 0.0,
        "train/explained_variance_by_position/1": 0.25, "train/agents/a_0/kl_reference": 0.01,
        "train/agents/a_0/entropy": 1.5, "train/seconds/rollout": 0.1,
    }  # fmt: skip
    names = dict(scalars(EVAL))
    assert names["eval/relay/sampled/accuracy"] == 0.75 and names["eval/relay/sampled/cooperation/a_0/drop"] == 0.5
    assert not any("item" in name for name in names)


def test_a_resumed_run_hides_the_updates_that_it_repeats_in_tensorboard(tmp_path):
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


EPISODES = BatchRunner(marft_envs.math_v0.env(dataset="relay", split="test"), 2).play(
    lambda requests: ["<b>|\\boxed{12}" for _ in requests], indices=[0, 1]
)


def test_tensorboard_has_the_configuration_and_a_table_of_samples(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracker = make_tracker("tensorboard", CONFIG, tmp_path, resumed=False)
    tracker.row({**EVAL, "mode": "greedy"})
    tracker.samples(5, EPISODES)
    tracker.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    (settings,) = (e.tensor_proto.string_val[0].decode() for e in events.Tensors("configuration/text_summary"))
    assert json.loads(html.unescape(settings).removeprefix("<pre>").removesuffix("</pre>")) == json.loads(
        json.dumps(CONFIG.resolved())
    )
    (table,) = (e.tensor_proto.string_val[0].decode().splitlines() for e in events.Tensors("samples/text_summary"))
    assert len(table) == 4 and {line.count("|") for line in table} == {len(SAMPLE_COLUMNS) + 1}
    for line, episode in zip(table[2:], EPISODES, strict=True):
        cells = [html.unescape(cell.strip()) for cell in line.strip("| ").split(" | ")]
        assert cells[:2] == ["5", str(episode.index)] and cells[3] == episode.problem.gold
        assert cells[4].split("<br>")[-1] == "[actor_0] <b>|\\boxed{12}" and float(cells[6]) == episode.score


def test_a_sample_that_was_not_graded_has_the_reason_and_no_score():
    fault = replace(EPISODES[0], not_graded="lost the worker")
    row = dict(zip(SAMPLE_COLUMNS, sample_row(5, fault), strict=True))
    assert row["verdicts"] == "lost the worker" and row["score"] is None


def test_a_run_passes_the_samples_of_its_sampled_evaluations_on():
    config = RunConfig(arm="marft", environment_arguments={"dataset": "relay"}, updates=0, evaluation_items=4,
                       transcripts=2)  # fmt: skip
    rows, samples = [], []
    train(config, rows.append, on_samples=lambda update, episodes: samples.append((update, episodes)))
    ((update, episodes),) = samples
    sampled = next(row for row in rows if row["mode"] == "sampled")
    assert update == 0 and [e.index for e in episodes] == sampled["item_index"][:2]
    assert [e.score for e in episodes] == sampled["item_score"][:2]


def test_choice_of_the_tracker(monkeypatch):
    installed = {"tensorboard"}
    monkeypatch.setattr(tracking, "find_spec", lambda name: name in installed or None)
    assert choose_tracker(None) == "tensorboard" and choose_tracker("none") == "none"
    with pytest.raises(TrackerError, match=r"track='wandb' needs the package wandb: pip install '\.\[wandb\]'"):
        choose_tracker("wandb")
    with pytest.raises(ValueError, match="track='mlflow': expected one of tensorboard, wandb, trackio, none"):
        choose_tracker("mlflow")
    installed.clear()
    assert choose_tracker(None) == "none" and isinstance(make_tracker("none", CONFIG, None, resumed=False), NoTracker)


class Recording:
    """Stands in for the package of a service."""

    def __init__(self):
        self.keywords, self.logged, self.finished = {}, [], 0

    def init(self, **keywords):
        self.keywords = keywords
        return types.SimpleNamespace(log=self.logged.append, finish=self.finish)

    @staticmethod
    def Table(columns=None, data=None, dataframe=None):
        """As trackio's, which takes a data frame, and as that of wandb."""
        if dataframe is not None:
            columns, data = list(dataframe.columns), dataframe.values.tolist()
        return {"columns": columns, "data": data}

    def finish(self):
        self.finished += 1


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_services_get_config_rows_and_samples(monkeypatch, tmp_path, name):
    pytest.importorskip("pandas")  # a dependency of trackio
    service = Recording()
    monkeypatch.setitem(sys.modules, name, service)
    tracker = make_tracker(name, CONFIG, tmp_path, resumed=True)
    tracker.row(EVAL)
    tracker.samples(5, EPISODES)
    tracker.close()
    table = service.logged.pop()
    columns, data = table["samples"]["columns"], table["samples"]["data"]
    assert columns == list(SAMPLE_COLUMNS) and [row[1] for row in data] == [0, 1] and table["update"] == 5
    assert service.keywords["config"]["learner"]["critic"] == "central" and service.keywords["resume"] == "allow"
    assert service.logged == [{**dict(scalars(EVAL)), "update": 5}] and service.finished == 1


def test_a_service_that_cannot_start_is_reported(monkeypatch, tmp_path):
    def offline(**keywords):
        raise ConnectionError("no network")

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=offline))
    with pytest.raises(TrackerError, match=r"track='wandb' could not start \(ConnectionError: no network\)"):
        make_tracker("wandb", CONFIG, tmp_path, resumed=False)
