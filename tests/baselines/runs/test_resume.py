"""A run that is killed and resumed has the rows and adapters of an undisturbed run, bit for bit."""

import contextlib
import json
import logging
import os
import re
import signal
from dataclasses import replace

import peft
import pytest
import torch

from baselines.critics.critic import TeamCritic
from baselines.engine.running_batch import RunningBatch
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding
from baselines.errors import RunError
from baselines.models.load import load_model
from baselines.policies.weights import LoraSettings
from baselines.runs import checkpoint
from baselines.runs import run as run_module
from baselines.runs.evaluation import play_items
from baselines.runs.run import Run, train
from baselines.runs.run_config import RunConfig
from baselines.runs.run_folder import RunFolder

LEARNING = {"learning_rate": 3e-3, "normalization": "sum", "lam_in": 0.5, "ev_gate": 0.0}


def config(**changes):
    fields = {
        "arm": "marft",
        "environment_arguments": {"dataset": "relay", "style": "symbols", "order": "random"},
        "updates": 4,
        "episodes": 16,
        "evaluate_every": 2,
        "evaluation_items": 4,
        "checkpoint_every": 2,
        "transcripts": 1,
        "settings": LEARNING,
        "decoding": Decoding(max_new_tokens=4),
    }
    return RunConfig(**{**fields, **changes})


def rows(folder):
    """The rows without clock times."""
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(x).items() if k not in ("wall_s", "seconds", "started")} for x in lines]


def adapter_bytes(folder, update=4):
    files = sorted((folder / "checkpoints" / f"{update:06d}").rglob("adapter_*"))
    return {f"{f.parent.name}/{f.name}": f.read_bytes() for f in files}


def transcripts(folder):
    return {p.name: p.read_bytes() for p in (folder / "transcripts").iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an undisturbed run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(config(), folder=folder)
    return folder


def train_until_killed(folder, owner, name, call, resume):
    """Train in a child process that is killed when ``owner.name`` is called for the ``call``-th time."""
    child = os.fork()
    if child == 0:
        real, calls = getattr(owner, name), 0

        def dying(*arguments, **keywords):
            nonlocal calls
            calls += 1
            if calls == call:
                if name == "write" and owner is RunFolder:  # leave half a row in the file
                    arguments[0]._rows.write(json.dumps(arguments[1]).encode()[:40])
                    arguments[0]._rows.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **keywords)

        setattr(owner, name, dying)
        try:
            train(config(), folder=folder, resume=resume)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"{name} was not called {call} times"


MOMENTS = [
    (checkpoint, "write_synced", 5),  # in the first checkpoint
    (RunFolder, "write", 4),  # its row
    (checkpoint, "_sync_folder", 9),  # in the second checkpoint
    (TeamCritic, "train", 4),  # in the last update, after the second checkpoint
]
MORE_MOMENTS = [
    (checkpoint, "replace_file", 1),  # the folder is still empty
    (RunFolder, "write", 1),  # the head
    (Run, "evaluated", 2),
    (Run, "train_once", 1),
    (TeamCritic, "train", 1),  # in the middle of the first update
    (run_module, "play_items", 3),  # in the evaluation after the second update
    (RunFolder, "record", 2),
    (Run, "train_once", 3),
    (checkpoint, "_remove", 1),  # the last checkpoint is written, the first not deleted
]
PARAMETERS = [*MOMENTS, *(pytest.param(*moment, marks=pytest.mark.slow) for moment in MORE_MOMENTS)]
NAMES = [f"{name}-{call}" for _, name, call in [*MOMENTS, *MORE_MOMENTS]]


@pytest.mark.parametrize(("owner", "name", "call"), PARAMETERS, ids=NAMES)
def test_killed_once(whole, tmp_path, owner, name, call):
    train_until_killed(tmp_path / "run", owner, name, call, resume=False)
    resumed = []
    train(config(), resumed.append, folder=tmp_path / "run", resume=True)
    assert rows(tmp_path / "run") == rows(whole)
    assert adapter_bytes(tmp_path / "run") == adapter_bytes(whole) and len(adapter_bytes(whole)) == 4
    assert transcripts(tmp_path / "run") == transcripts(whole)
    assert len(resumed) < len(rows(whole)) and resumed == sorted(resumed, key=lambda row: row["update"])


@pytest.mark.slow
def test_killed_several_times(whole, tmp_path):
    for owner, name, call in ((Run, "train_once", 2), (TeamCritic, "train", 2), (checkpoint, "write_synced", 3),
                              (Run, "train_once", 2), (RunFolder, "write", 1)):  # fmt: skip
        train_until_killed(tmp_path / "run", owner, name, call, resume=True)
    train(config(), folder=tmp_path / "run", resume=True)
    assert rows(tmp_path / "run") == rows(whole) and adapter_bytes(tmp_path / "run") == adapter_bytes(whole)


def test_a_corrupt_checkpoint_is_skipped(whole, tmp_path, caplog):
    folder = tmp_path / "run"
    train_until_killed(folder, Run, "train_once", 3, resume=False)
    state = folder / "checkpoints" / "000002" / "state.pt"
    state.write_bytes(state.read_bytes()[:-1])
    with caplog.at_level(logging.INFO, "baselines"):
        train(config(), folder=folder, resume=True)
    assert "000002 is corrupt: the SHA-256 of state.pt differs from its manifest; skipped" in caplog.text
    assert "resuming after update 0 of 4" in caplog.text
    assert rows(folder) == rows(whole) and adapter_bytes(folder) == adapter_bytes(whole)


def test_no_checkpoint_can_be_used(tmp_path):
    train(config(updates=0), folder=tmp_path)
    (tmp_path / "checkpoints" / "000000" / "state.pt").unlink()
    before = (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(
        checkpoint.CheckpointError, match="no checkpoint can be used; to start from the beginning, delete checkpoints/"
    ):
        train(config(updates=0), folder=tmp_path, resume=True)
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_a_finished_run_is_not_repeated_and_can_be_trained_for_longer(whole, tmp_path):
    folder = tmp_path / "run"
    train(config(updates=2), folder=folder)
    made = []
    train(config(updates=2), made.append, folder=folder, resume=True)
    assert made == []
    train(config(), made.append, folder=folder, resume=True)
    assert {r["update"] for r in made} == {3, 4}
    assert rows(folder)[1:] == rows(whole)[1:] and adapter_bytes(folder) == adapter_bytes(whole)
    with pytest.raises(ValueError, match="updates=3: expected at least 4, the updates of the run in"):
        train(config(updates=3), folder=folder, resume=True)


def test_a_stopped_run_cannot_be_resumed_for_fewer_updates(tmp_path):
    """Also if its checkpoint, here of update 0, is before the last update that is asked for."""
    train_until_killed(tmp_path, Run, "train_once", 1, resume=False)
    with pytest.raises(ValueError, match="updates=2: expected at least 4, the updates of the run in"):
        train(config(updates=2), folder=tmp_path, resume=True)
    assert json.loads((tmp_path / "config.json").read_text())["updates"] == 4


@pytest.mark.parametrize(
    ("update", "note"),
    [
        (1, []),  # nothing since the checkpoint of update 0
        (2, ["update 1 is in no checkpoint and will be trained again"]),
        (4, ["updates 1 to 3 are in no checkpoint and will be trained again"]),
    ],
)
def test_a_stop_names_the_updates_that_are_in_no_checkpoint(tmp_path, monkeypatch, update, note):
    original = Run.train_once

    def stop(run, number):
        if number == update:
            raise KeyboardInterrupt
        return original(run, number)

    monkeypatch.setattr(Run, "train_once", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        train(config(checkpoint_every=9), folder=tmp_path)
    assert getattr(stopped.value, "__notes__", []) == note


def test_a_run_that_a_problem_was_too_long_for_continues_with_longer_prompts(tmp_path):
    short = config(decoding=replace(config().decoding, max_prompt_tokens=3))
    with pytest.raises(RunError, match="to at least 4, also to resume the run"):
        train(short, folder=tmp_path)
    train(config(), folder=tmp_path, resume=True)
    assert {row["update"] for row in rows(tmp_path)[1:]} == set(range(5))
    assert json.loads((tmp_path / "config.json").read_text())["decoding"]["max_prompt_tokens"] == 1024
    with pytest.raises(ValueError, match=r"decoding\.max_prompt_tokens=3: expected at least 1024, the limit"):
        train(short, folder=tmp_path, resume=True)


def test_out_of_memory_errors_during_generation_are_in_the_rows_and_the_smaller_rows_are_kept(tmp_path, monkeypatch):
    original = RunningBatch._forward

    def forward(batch, ids, *others):
        if len(ids) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(batch, ids, *others)

    monkeypatch.setattr(RunningBatch, "_forward", forward)
    run = train(config(updates=1), folder=tmp_path)
    assert run.engine.rows == 8
    counted = [(row["kind"], row["generation_out_of_memory"]) for row in rows(tmp_path)[1:]]
    # Evaluations play 4 episodes together, the update 16, of which the first pass fails.
    assert counted == [("eval", 0), ("eval", 0), ("train", 1), ("eval", 1), ("eval", 1)]
    resumed = train(config(updates=2), folder=tmp_path, resume=True)
    assert (resumed.engine.rows, resumed.policy.out_of_memory) == (8, 1)
    assert [row["generation_out_of_memory"] for row in rows(tmp_path)[6:]] == [1, 1, 1]
    other = Run(config(memory_gib=8.0))  # the number that fits another amount of memory is not used
    with contextlib.closing(RunFolder(tmp_path, config(memory_gib=8.0), resume=True)) as folder:
        other.restore(folder)
    assert (other.engine.rows, other.policy.out_of_memory) == (256, 1)


VARIANTS = {
    "ippo": {"arm": "ippo"},
    "token": {"arm": "marft_token", "settings": {**LEARNING, "order": "permuted"}},
    "group": {"arm": "magrpo", "settings": {**LEARNING, "group_size": 4}},
    "robin": {"arm": "marft_nofactor", "settings": {**LEARNING, "round_robin": 1, "critic_warmup": 1}},
    "beta": {"arm": "mappo", "settings": {**LEARNING, "kl_target": 0.01, "value_loss": "huber"}},
    "head": {"arm": "mappo_chained", "settings": {**LEARNING, "critic_network": "head", "kl_placement": "reward"}},
    "shared": {"arm": "marft", "sharing": {"reasoner_0": "both", "actor_0": "both"}},
    "frozen": {"arm": "marft", "frozen": ("reasoner_0",)},
    "activated": {"arm": "marft", "lora": LoraSettings(activated=True, invocation="=")},
}


@pytest.mark.parametrize(
    "name", [n if n in ("token", "activated") else pytest.param(n, marks=pytest.mark.slow) for n in VARIANTS]
)
def test_every_kind_of_learner_resumes_exactly(tmp_path, name):
    run = config(**VARIANTS[name], evaluate_every=9, updates=3, keep_checkpoints=9)
    train(run, folder=tmp_path / "whole")
    train(replace(run, updates=2), folder=tmp_path / "parts")
    train(run, folder=tmp_path / "parts", resume=True)
    trained = [[row for row in rows(tmp_path / part) if row["kind"] == "train"] for part in ("whole", "parts")]
    assert trained[0] == trained[1] and len(trained[0]) == 3
    last, start = adapter_bytes(tmp_path / "whole", 3), adapter_bytes(tmp_path / "whole", 0)
    assert last == adapter_bytes(tmp_path / "parts", 3)
    assert [k for k in last if last[k] != start[k]] == {
        "shared": ["both/adapter_model.safetensors"],
        "frozen": ["actor_0/adapter_model.safetensors"],
    }.get(name, ["actor_0/adapter_model.safetensors", "reasoner_0/adapter_model.safetensors"])


def test_without_a_folder_the_rows_are_the_same(whole):
    made = []
    train(config(updates=2), made.append)
    clock = ("wall_s", "seconds")
    plain = [json.loads(json.dumps({k: v for k, v in r.items() if k not in clock})) for r in made]
    assert plain == [row for row in rows(whole)[1:] if row["update"] <= 2]


def test_a_folder_of_another_run_or_of_other_files_is_refused(whole, tmp_path):
    with pytest.raises(ValueError, match=r"holds a run: expected resume=True \(--resume\), or another folder"):
        train(config(), folder=whole)
    message = (
        "another configuration: environment_arguments.k was not set, now 3; episodes was 16, now 17; "
        "learner.learning_rate was 0.003, now 0.001: expected the same settings, or another folder"
    )
    other = {**config().environment_arguments, "k": 3}
    changed = config(episodes=17, settings={**LEARNING, "learning_rate": 1e-3}, environment_arguments=other)
    with pytest.raises(ValueError, match=re.escape(message)):
        train(replace(changed, transcripts=2), folder=whole, resume=True)  # transcripts: without effect on numbers
    (tmp_path / "mine.txt").write_text("text")
    for resume in (False, True):
        with pytest.raises(ValueError, match=r"is not empty and has no config\.json"):
            train(config(), folder=tmp_path, resume=resume)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_in_use_is_refused(tmp_path):
    first = RunFolder(tmp_path, config(), resume=False)
    with pytest.raises(ValueError, match="is in use by another process"):
        train(config(), folder=tmp_path, resume=True)
    first.close()
    RunFolder(tmp_path, config(), resume=True).close()  # the lock was released


def test_a_full_disk_is_reported_when_a_row_is_written(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path, config(), resume=False)
    folder._rows.close()
    folder._rows = open("/dev/full", "wb")  # noqa: SIM115, PTH123 - closed by the folder
    with pytest.raises(checkpoint.CheckpointError, match="No space left on device; make room, then resume the run"):
        folder.write({"kind": "eval"})
    folder.close()


def test_random_choices_of_the_environment_depend_on_the_seed():
    free = {"dataset": "relay", "style": "symbols", "dependency": "none", "order": "random"}

    def orders(seed):
        run = Run(config(environment_arguments=free, seed=seed))
        sampler = EngineSampler(run.engine, run.loaded, None)
        played = run.rollout(1, sampler) + play_items(run.testing, sampler, range(6))
        return [[turn.agent for turn in episode.transcript] for episode in played]

    first = orders(0)
    assert first == orders(0) != orders(1)
    assert all(len({tuple(order) for order in part}) == 2 for part in (first[:16], first[16:]))


def test_adapters_load_with_plain_peft(whole):
    """peft alone, with the base and a folder, gives the logits of the trained agent."""
    run = Run(config())
    run.restore(RunFolder(whole, config(), resume=True))
    ids = torch.tensor([run.loaded.tokenizer("7+4=")["input_ids"]])
    seen = []
    for agent in run.policy.agents:
        folder = whole / "checkpoints" / "000004" / "adapters" / agent
        assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == run.loaded.name
        plain = peft.PeftModel.from_pretrained(load_model("tiny").model, str(folder)).eval()
        with torch.no_grad(), run.policy.of(agent).use(agent):
            ours = run.policy.of(agent).causal_lm(input_ids=ids, use_cache=False).logits
        with torch.no_grad():
            theirs = plain(input_ids=ids, use_cache=False).logits
            untrained = load_model("tiny").model(input_ids=ids, use_cache=False).logits
        assert torch.equal(ours, theirs) and not torch.allclose(theirs, untrained, atol=1e-3)
        seen.append(theirs)
    assert not torch.allclose(*seen, atol=1e-3)  # each agent has its own folder


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "llama"}'])
def test_a_config_file_of_another_program_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json.*expected the config\.json of a run, or another folder"):
        train(config(), folder=tmp_path, resume=True)
