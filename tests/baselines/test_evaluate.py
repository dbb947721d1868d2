"""The command ``evaluate``: the default team, transcripts and rows; wrong options are one line."""

import json

import numpy as np
import pytest

from baselines import evaluate
from baselines.engine.torch_engine import Decoding
from baselines.runs import evaluate_command
from baselines.runs.evaluation import item_interval
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from benchmarks.analysis import rows_schema
from benchmarks.analysis.intervals import wilson_interval


@pytest.mark.parametrize(
    ("model", "dataset", "team"),
    [
        ("tiny", "relay", "duo"),
        ("smollm2-135m", "relay", "duo"),
        ("tiny-report", "report", "panel_8"),
        ("tiny", "one_step", "duo"),
        ("smollm2-135m", "gsm8k", "duo_guided"),
    ],
)
def test_the_team_suits_the_data_and_the_model(model, dataset, team):
    config = evaluate_command.config_of_model(evaluate.parse(["--model", model]), dataset)
    assert config.environment_arguments["team"] == team
    assert config.decoding.temperature == (1.0 if model.startswith("tiny") else 0.7)
    assert config.decoding.stop_strings == (("\n",) if team == "duo_guided" else ())


def test_a_transcript_has_the_private_parts_and_the_verdicts(tmp_path, capsys):
    out = tmp_path / "rows.jsonl"
    words = ["--model", "tiny", "--dataset", "relay", "--items", "4", "--show", "2", "--out", str(out)]
    assert evaluate.main(words) == 0
    text = capsys.readouterr().out
    assert text.count("only reasoner_0 reads: ") == text.count("only actor_0 reads: ") == 2
    assert text.count("gold: ") == text.count("=> ") == 2 and "(actor_0 " in text
    assert "tiny duo on relay, greedy: accuracy " in text and "not graded 0 of 4 items (0.0%)" in text
    assert "no answer in " in text and " of 4 answers (" in text
    row = rows_schema.check_row(json.loads(out.read_text()), "rows.jsonl, line 1")
    assert (row["kind"], row["arm"], row["n"], row["answers"]) == ("eval", "untrained", 4, 4)


def test_an_environment_without_data_sets_is_evaluated_with_its_own_team(clean_registry):
    """Its environment takes no argument ``dataset``, so none is passed, and no team either."""
    assert evaluate_command.default_datasets("math_v0") == ["gsm8k"]
    options = evaluate.parse(["--model", "tiny", "--env", "tests.baselines.task_without_split:counting_v0"])
    assert evaluate_command.default_datasets(options.env) == [None]
    config = evaluate_command.config_of_model(options, None)
    assert (config.environment_arguments, config.task) == ({}, options.env)


def test_without_any_verdict_there_is_no_accuracy():
    config = evaluate_command.config_of_model(evaluate.parse(["--model", "tiny"]), "relay")
    row = {"n": 0, "answers": 0, "no_answer": 0, "not_graded": 3, "item_score": [], "accuracy": None}
    assert evaluate_command.summary("tiny duo", config, "greedy", row) == (
        "tiny duo on relay, greedy: nothing graded; "
        "no answer in 0 of 0 answers (0.0%), not graded 3 of 3 items (100.0%)"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "relai"], "(did you mean 'relay'?)"),
        (["--dataset", "relay", "--team", "dou"], "(did you mean 'duo'?)"),
        (["--dataset", "relay", "--env-arg", "style"], "--env-arg style: expected KEY=VALUE"),
        (["--dataset", "relay", "--items", "0"], "evaluation_items=0"),
    ],
)
def test_wrong_options_are_one_line(words, message, capsys):
    assert evaluate.main(["--model", "tiny", *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("evaluate: ") and message in errors and errors.count("\n") == 1


def test_an_unwritable_file_is_one_line_before_the_first_evaluation(capsys):
    words = ["--model", "tiny", "--dataset", "relay", "--items", "2", "--out", "/proc/rows.jsonl"]
    assert evaluate.main(words) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("evaluate: ") and "/proc/rows.jsonl" in errors and errors.count("\n") == 1


# ---- a trained team


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run of two updates, and its rows."""
    folder, rows = tmp_path_factory.mktemp("trained") / "run", []
    config = RunConfig(
        arm="marft",
        environment_arguments={"dataset": "relay", "style": "symbols"},
        updates=2,
        episodes=16,
        evaluate_every=2,
        evaluation_items=12,
        checkpoint_every=1,
        seed=3,
        settings={"learning_rate": 3e-3, "normalization": "sum"},
        decoding=Decoding(max_new_tokens=4),
    )
    train(config, rows.append, folder=folder)
    return folder, rows


@pytest.mark.parametrize("mode", ["greedy", "sampled"])
def test_a_run_is_evaluated_as_it_evaluated_itself(trained, tmp_path, capsys, mode):
    folder, rows = trained
    out = tmp_path / "rows.jsonl"
    assert evaluate.main([str(folder), "--mode", mode, "--out", str(out)]) == 0
    expected = next(r for r in rows if r["kind"] == "eval" and (r["mode"], r["update"]) == (mode, 2))
    found = rows_schema.check_row(json.loads(out.read_text()), "rows.jsonl, line 1")
    keys = ("arm", "task", "seed", "update", "mode", "accuracy", "item_index", "item_score")
    assert {key: found[key] for key in keys} == {key: expected[key] for key in keys}
    low, high = item_interval(expected["item_score"])
    words = f"{folder} (marft after update 2, tiny) on relay, {mode}: accuracy {expected['accuracy']:.1%} [{low:.1%}, "
    assert f"{words}{high:.1%}] of 12 items" in capsys.readouterr().out


def test_an_earlier_update_and_another_data_set_of_a_run(trained, capsys):
    folder, _ = trained
    words = [str(folder), "--update", "1", "--dataset", "one_step", "relay", "--items", "4"]
    assert evaluate.main(words) == 0
    text = capsys.readouterr().out
    assert "after update 1, tiny) on one_step, greedy: " in text and "after update 1, tiny) on relay, greedy: " in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "report", "--team", "panel_2"], "was not trained: expected one of reasoner_0, actor_0"),
        (["--update", "7"], "has no checkpoint of update 7"),
    ],
)
def test_wrong_options_with_a_run_are_one_line(trained, capsys, words, message):
    assert evaluate.main([str(trained[0]), *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("evaluate: ") and message in errors and errors.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--model", "tiny"], "--model: expected no RUN with it"),
        (["run", "--max-new-tokens", "4"], "--max-new-tokens: expected no RUN with it"),
        (["--update", "3"], "--update: expected a RUN with it"),
    ],
)
def test_options_that_exclude_each_other(capsys, words, message):
    with pytest.raises(SystemExit) as end:
        evaluate.parse(words)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_a_folder_without_a_run_is_one_line(tmp_path, capsys):
    assert evaluate.main([str(tmp_path)]) == 2
    assert "expected the folder of a run or of a checkpoint" in capsys.readouterr().err


def test_the_interval_is_that_of_the_reports():
    for scores in ([1.0] * 8 + [0.0] * 2, [0.0], [1.0] * 7, [0.25, 0.5, 1.0], np.linspace(0, 1, 100).tolist()):
        found = wilson_interval(scores)
        assert item_interval(scores) == (pytest.approx(found.low, abs=1e-9), pytest.approx(found.high, abs=1e-9))
