"""Pre-training of the tiny models: the simulated student, loss targets, splits, accuracy, reproducibility."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from baselines.engine.prompts import render
from baselines.models import make_tiny
from baselines.models.card import CARD
from baselines.models.load import load_model
from baselines.models.make_tiny import (
    IGNORE,
    WarmStart,
    dialogue,
    example,
    main,
    starting_level,
    student_sum,
    student_total,
    task_of,
    tiny_prompt,
)
from baselines.models.sources import SHIPPED, TINY
from marft_envs.task import Problem


@pytest.mark.parametrize(
    ("total", "private", "forget_carry", "reply"),
    [
        (0, "7+4=", False, 11),
        (0, "7+4=", True, 1),  # 7 + 4 = 11: its carry is lost
        (11, "7+4=", False, 22),
        (11, "7+4=", True, 12),  # units 1 + 7 + 4 = 12: carry 1
        (7, "6+8=", True, 1),  # units 7 + 6 + 8 = 21: carry 2
        (30, "4+5=", True, 39),  # no carry to forget
    ],
)
def test_the_relay_student(total: int, private: str, forget_carry: bool, reply: int) -> None:
    assert student_total(total, private, forget_carry) == reply


def test_a_later_turn_continues_from_a_wrong_total() -> None:
    problem = Problem(0, "", "22", {"agent_0": "7+4=", "agent_1": "5+6="})
    always, never = np.random.default_rng(0), np.random.default_rng(0)
    assert dialogue("relay", problem, 1.0, always) == [("7+4=", "1"), ("1|5+6=", "2")]
    assert dialogue("relay", problem, 0.0, never) == [("7+4=", "11"), ("11|5+6=", "22")]


def test_only_the_reply_and_its_eos_carry_loss() -> None:
    tokenizer = load_model("tiny").tokenizer
    ids, labels = example("7+4=", "11", tokenizer)
    assert ids == [10, 13, 7, 17, 4, 4, 1]
    assert labels == [IGNORE] * 4 + [4, 4, 1]


def test_prompts_of_training_are_those_of_the_template() -> None:
    tiny = load_model("tiny")
    task = {"role": "user", "name": "task", "content": "7+4="}
    other = {"role": "user", "name": "agent_0", "content": "11"}
    assert tiny.tokenizer.decode(render([task], tiny)) == tiny_prompt("", "7+4=")
    assert tiny.tokenizer.decode(render([task, other], tiny)) == tiny_prompt("11", "7+4=")


def test_training_uses_no_test_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    splits: list[str] = []
    real = make_tiny.task_of

    def spy(family: str, agents: int, split: str, seed: int) -> object:
        splits.append(split)
        return real(family, agents, split, seed)

    monkeypatch.setattr(make_tiny, "task_of", spy)
    tokenizer = make_tiny.tiny_tokenizer()
    make_tiny.train(make_tiny.new_model(tokenizer, WarmStart()), tokenizer, WarmStart(steps=1, batch=2))
    assert splits == ["train"]
    train, test = task_of("relay", 2, "train", 0), task_of("relay", 2, "test", 0)
    keys = [{tuple(task.problem(index).private.values()) for index in range(500)} for task in (train, test)]
    assert not keys[0] & keys[1]


def test_tiny_can_become_better_and_worse() -> None:
    """Accuracy on 2,000 problems: .33 sampled, .54 greedy. The bounds are three standard errors (400 problems) away."""
    tiny = load_model("tiny")
    sampled = starting_level(tiny.model, tiny.tokenizer, WarmStart(), 400, sample_seed=1)
    greedy = starting_level(tiny.model, tiny.tokenizer, WarmStart(), 400, sample_seed=None)
    assert 0.25 <= sampled["accuracy"] <= 0.41 and sampled["no_answer"] <= 0.05
    assert 0.46 <= greedy["accuracy"] <= 0.63 and greedy["no_answer"] == 0


def test_the_card_describes_the_shipped_model() -> None:
    card = json.loads((SHIPPED[TINY] / CARD).read_text())
    warm = WarmStart(**card["warm_start"])
    assert warm == WarmStart(), "the shipped weights are those of the plain command"
    assert set(card["sha256"]) >= {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"}


def test_the_same_command_writes_the_same_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--steps", "3", "--batch", "4", "--agents", "4", "--problems", "5"]
    for folder in ("one", "two"):
        torch.rand(1)  # the state of the global generator must have no effect
        main(["--output", str(tmp_path / folder), *quick])
    assert "step 3/3" in capsys.readouterr().err
    one, two = (load_model(str(tmp_path / folder)) for folder in ("one", "two"))
    assert one.weights_sha256 == two.weights_sha256 and one.name == "tiny-relay-quartet-v1"
    main(["--output", str(tmp_path / "three"), *quick, "--seed", "1"])
    assert load_model(str(tmp_path / "three")).weights_sha256 != one.weights_sha256


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--q", "1.5"], "q=1.5: expected"),
        (["--steps", "0"], "steps=0: expected"),
        (["--agents", "0"], "agents=0: expected"),
    ],
)
def test_invalid_flags_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        main(["--output", str(tmp_path / "new"), *flags])
    assert message in capsys.readouterr().err


def test_a_folder_with_files_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(SystemExit):
        main(["--output", str(tmp_path)])
    assert "expected a new or empty folder" in capsys.readouterr().err


def test_the_shipped_tokenizer_is_the_one_in_the_code() -> None:
    built, shipped = make_tiny.tiny_tokenizer(), load_model("tiny").tokenizer
    assert built.get_vocab() == shipped.get_vocab() and built.chat_template == shipped.chat_template
    assert str(built.backend_tokenizer.decoder) == str(shipped.backend_tokenizer.decoder)


def test_the_report_student_is_wrong_by_one_with_probability_q() -> None:
    rng = np.random.default_rng(0)
    answers = [student_sum("7+4=", 0.45, rng) for _ in range(4000)]
    assert set(answers) == {10, 11, 12}
    assert abs(answers.count(11) / 4000 - 0.55) < 0.03 and abs(answers.count(10) - answers.count(12)) < 200
    assert {student_sum("0+0=", 1.0, rng) for _ in range(20)} == {1}


def test_tiny_report_is_correct_when_greedy_and_uncertain_when_sampled() -> None:
    report, warm = load_model("tiny-report"), WarmStart(family="report", agents=8)
    assert starting_level(report.model, report.tokenizer, warm, 100, sample_seed=None)["accuracy"] > 0.98
    assert 0.5 < starting_level(report.model, report.tokenizer, warm, 100, sample_seed=1)["accuracy"] < 0.63
