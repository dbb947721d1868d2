"""Transcripts of evaluations: tokens, values and advantages of turns, a size limit, and no effect on training."""

import json

import pytest

from baselines.engine.torch_engine import Decoding
from baselines.runs import transcripts
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from marft_envs.traces import read

RELAY = {"dataset": "relay", "style": "symbols"}
CLOCK = ("wall_s", "seconds", "started")


def run_with(folder, arm="marft", transcripts=6, **changes):
    """Train two updates. Return the train and eval rows without clock times."""
    config = RunConfig(
        arm=arm,
        environment_arguments=RELAY,
        updates=2,
        episodes=16,
        evaluate_every=2,
        evaluation_items=8,
        transfer={"longer": {**RELAY, "k": 3}} if arm == "marft" else {},
        transcripts=transcripts,
        decoding=Decoding(max_new_tokens=4),
        settings={"normalization": "sum", "learning_rate": 3e-3, **changes},
    )
    train(config, folder=folder)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()[1:]]
    return [{key: value for key, value in row.items() if key not in CLOCK} for row in rows]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, and its rows."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return folder, run_with(folder)


def turns_of(path):
    return [turn for episode in read(path).episodes for turn in episode["turns"]]


def test_every_evaluation_has_a_transcript_of_its_first_problems(run):
    folder, rows = run
    names = [f"{update:06d}-{mode}{d}.jsonl" for update in (0, 2) for mode in ("greedy", "sampled")
             for d in ("", "-longer")]  # fmt: skip
    assert sorted(path.name for path in (folder / "transcripts").iterdir()) == sorted(names)
    evals = {f"{r['update']:06d}-{r['mode']}{'-longer' * ('trained' in r['task'])}.jsonl": r
             for r in rows if r["kind"] == "eval"}  # fmt: skip
    for name in names:
        trace = read(folder / "transcripts" / name)
        assert [e["index"] for e in trace.episodes] == evals[name]["item_index"][:6], name
        assert [e["score"] for e in trace.episodes] == evals[name]["item_score"][:6], name
        assert (
            trace.header["notes"]["items"] == 8
            and trace.header["arguments"]["split"] == "test"
            and "gold" in trace.episodes[0]
        )
        assert "messages" in trace.episodes[0]["turns"][0]["observation"]


def test_turns_have_tokens_and_after_training_values_and_advantages(run):
    before, after = (turns_of(run[0] / "transcripts" / f"{update:06d}-sampled.jsonl") for update in (0, 2))
    assert len(after) == len(before) == 12
    for turn in before + after:
        assert len(turn["tokens"]) == len(turn["logprobs"]) > 0 and max(turn["logprobs"]) <= 0
        assert "".join(turn["tokens"]).startswith(turn["text"].strip())
    assert not any("value" in turn for turn in before)  # a critic that nothing has been learned by says nothing
    assert all(0 < turn["value"] < 1 for turn in after)
    # One round with lam_in = 1, the ungated value: the last advantage is score - value, and both scores occur.
    episodes = read(run[0] / "transcripts" / "000002-sampled.jsonl").episodes
    for episode in episodes:
        last = episode["turns"][-1]
        assert last["advantage"] == pytest.approx(episode["score"] - last["value"], abs=1e-3)
    assert len({episode["score"] for episode in episodes}) == 2


def test_transcripts_change_no_number(run, tmp_path):
    assert run_with(tmp_path / "without", transcripts=0) == run[1]
    assert not (tmp_path / "without" / "transcripts").exists()
    state, other = ((f / "checkpoints" / "000002" / "state.pt").read_bytes() for f in (run[0], tmp_path / "without"))
    assert state == other


def test_every_token_has_an_advantage_where_tokens_are_decisions(tmp_path):
    run_with(tmp_path / "run", arm="marft_token", transcripts=2)
    for turn in turns_of(tmp_path / "run" / "transcripts" / "000002-greedy.jsonl"):
        assert len(turn["tokens"]) == len(turn["value"]) == len(turn["advantage"])


@pytest.mark.parametrize("arm", ["magrpo", "untrained"])
def test_arms_without_a_critic_have_tokens_only(tmp_path, arm):
    run_with(tmp_path / "run", arm=arm, **({"group_size": 4} if arm == "magrpo" else {}))
    turns = turns_of(tmp_path / "run" / "transcripts" / "000002-sampled.jsonl")
    assert turns and all("tokens" in turn and "value" not in turn for turn in turns)


def test_the_size_of_a_transcript_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(transcripts, "LIMIT_BYTES", 8_000)
    run_with(tmp_path / "run", arm="untrained")
    path = tmp_path / "run" / "transcripts" / "000000-greedy.jsonl"
    assert 1 < len(read(path).episodes) < 6 and path.stat().st_size < 12_000
