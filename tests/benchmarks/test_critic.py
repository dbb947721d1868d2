"""critic.py from end to end on the tiny model, and its control where a message decides the outcome."""

import json
from types import SimpleNamespace

import pytest
import torch

from baselines.ladder import arm
from baselines.ppo.learner import Learner
from benchmarks import critic
from tests.baselines.ppo.bigram import AGENTS, EOS, HALF, A, B, C, batch_of, bigram_policy

SMALL = ["--env-arg", "dataset=report", "--env-arg", "team=panel_2", "--set", "evaluation_items=1",
         "--set", "decoding.max_new_tokens=3", "--updates", "4", "--episodes", "6"]  # fmt: skip


def known_run():
    """A run of the bigram model, with what ``explained`` reads of it, and 12 batches in which a's message decides.

    a writes "b c" in the episodes that succeed and "c b" in the others, and b always writes "a b".
    """
    policy = bigram_policy()
    learner = Learner(policy, arm("marft"), temperature=HALF, seed=0)
    run = SimpleNamespace(policy=policy, learner=learner, config=SimpleNamespace(seed=0))
    actions = [(B, C, EOS), (A, B, EOS), (C, B, EOS), (A, B, EOS)]
    batch = batch_of([AGENTS] * 16, [1.0, 0.0] * 8, actions=actions)
    return run, [critic.read(run, batch)] * 12


def test_a_message_that_decides_is_explained_and_another_episodes_message_is_not():
    run, data = known_run()
    generator = torch.Generator().manual_seed(0)
    found = critic.explained(run, data)
    control = critic.explained(run, [(batch, critic.shuffled(x, generator)) for batch, x in data])
    assert len(found["2"]) == len(control["2"]) == critic.ROTATIONS
    assert min(found["2"]) > 0.8 and max(found["1"]) <= 0.0
    assert max(control["2"]) < 0.05


def test_a_shuffled_message_is_the_same_agents_in_another_episode():
    _, features = known_run()[1][0]
    features.message[..., 0] = torch.arange(32.0).reshape(16, 2)  # a mark: episode and turn
    before = features.message[..., 0].clone()
    after = critic.shuffled(features, torch.Generator().manual_seed(0)).message[..., 0]
    assert not (after == before).any()
    assert after.sort(0).values.tolist() == before.tolist(), "each message moves once, to the same turn"


def test_the_command_resumes_and_prints_the_table(tmp_path, capsys):
    words = [*SMALL, "--batches", str(tmp_path / "batches"), "--json", str(tmp_path / "critic.json")]
    assert critic.main(words) == 0
    first = capsys.readouterr().out
    files = sorted((tmp_path / "batches").iterdir())
    assert [file.name for file in files] == [f"batch_{n:04d}.pt" for n in (1, 2, 3, 4)]
    files[1].unlink()
    times = [file.stat().st_mtime_ns for file in files if file.exists()]
    assert critic.main(words) == 0
    assert capsys.readouterr().out == first, "a batch depends on the seed and its number alone"
    assert [file.stat().st_mtime_ns for file in files if file != files[1]] == times
    assert first.startswith("24 episodes, 48 messages of ")
    assert "| explained variance at position | critic | control | ceiling |" in first
    result = json.loads((tmp_path / "critic.json").read_text())
    assert list(result["positions"]) == ["1", "2"] and result["settings"]["episodes"] == 6
    assert result["positions"]["1"]["ceiling"] == pytest.approx(0.0, abs=1e-6)
    assert 0 < result["positions"]["2"]["ceiling"] < 1
    assert set(result["positions"]["2"]["critic"]) == {"mean", "error"}

    assert critic.main([*words, "--set", "learner.critic_epochs=3"]) == 0, "the batches do not depend on it"
    assert critic.main([*words, "--seed", "5"]) == 2
    assert "sampled with other settings (seed was 0, now 5)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--updates", "3"], "--updates 3: expected at least 4"),
        (["--arm", "magrpo", "--episodes", "8"], "critic='none'"),
        (["--set", "learner.critic_network=head"], "critic_network='head': expected a critic with"),
        (["--json", "/proc/critic.json"], "/proc/critic.json"),
    ],
)
def test_wrong_options_are_one_line(words, message, tmp_path, capsys):
    assert critic.main([*SMALL, "--batches", str(tmp_path / "batches"), *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("critic: ") and message in errors and errors.count("\n") == 1
    assert not (tmp_path / "batches").exists()


def test_means_leave_out_positions_without_variance_and_errors_need_two_values():
    """The values 1 and 3 have the mean 2 and the standard deviation sqrt(2), so the error of the mean is 1."""
    assert critic.mean_and_error([1.0, float("nan"), 3.0]) == pytest.approx({"mean": 2.0, "error": 1.0})
    assert critic.mean_and_error([1.0]) == {"mean": 1.0, "error": None}
    assert critic.mean_and_error([float("nan")]) == {"mean": None, "error": None}
