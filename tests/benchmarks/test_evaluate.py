"""evaluate.py: the default team, transcripts and rows; wrong options are one line."""

import json

import pytest

from benchmarks import evaluate
from benchmarks.analysis import rows_schema
from benchmarks.experiment import untrained_team


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
    config = untrained_team.config_of(evaluate.parse(["--model", model]), dataset)
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
    assert "tiny duo on relay, greedy: accuracy " in text and "no answer " in text and "not graded 0.0% (0)" in text
    row = rows_schema.check_row(json.loads(out.read_text()), "rows.jsonl, line 1")
    assert (row["kind"], row["arm"], row["n"], row["answers"]) == ("eval", "untrained", 4, 4)


def test_an_environment_without_data_sets_is_evaluated_with_its_own_team(clean_registry):
    """Its environment takes no argument ``dataset``, so none is passed, and no team either."""
    assert untrained_team.default_datasets("math_v0") == ["gsm8k"]
    options = evaluate.parse(["--model", "tiny", "--env", "tests.baselines.task_without_split:counting_v0"])
    assert untrained_team.default_datasets(options.env) == [None]
    config = untrained_team.config_of(options, None)
    assert (config.environment_arguments, config.task) == ({}, options.env)


def test_without_any_verdict_there_is_no_accuracy():
    config = untrained_team.config_of(evaluate.parse(["--model", "tiny"]), "relay")
    row = {"n": 0, "answers": 0, "no_answer": 0, "not_graded": 3, "item_score": [], "accuracy": None}
    assert untrained_team.summary(config, "greedy", row) == (
        "tiny duo on relay, greedy: nothing graded; no answer 0.0% (0), not graded 100.0% (3)"
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
