"""Validation before the first run: every wrong option, preset and data set is one line, and no folder is made."""

import json
import re

import pytest

from benchmarks import compare
from benchmarks.experiment import comparison, grid
from benchmarks.experiment.grid import load_preset
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.results_folder import ResultsFolder
from tests.benchmarks.small_comparison import SMALL


def errors_of(arguments, tmp_path, capsys):
    """Run compare.py, which must fail before it makes the results folder; return its error message."""
    assert compare.main([*arguments, "--out", str(tmp_path / "r")]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("compare: ") and "Traceback" not in errors and not (tmp_path / "r").exists()
    return errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "quik"], ", or the path of a .toml file (did you mean 'quick'?)"),
        (["--arms", "ippo", "marfft"], "arm='marfft': expected one of ippo, mappo"),
        (["--learning-rates", "1e-3", "-1"], "learning_rates=[0.001, -1.0]: expected a list of different positive"),
        (["--model", "smolm2"], "smolm2"),
        (["--seeds", "0"], "seeds=0"),
        (["--updates", "-1"], "updates=-1: expected at least 0"),
        (["--workers", "0"], "--workers 0: expected at least 1"),
        (["--only", "relay/marft"], "--only relay/marft: expected TASK/ARM/SEED, such as relay/ippo/0 or 'relay/*/*'"),
        (["--dataset", "gsm9k"], "dataset='gsm9k': expected one of"),
        (["--dataset", "gsm8k", "--path", "no/such/folder"], "no/such/folder"),
    ],
)
def test_a_wrong_option_is_named(arguments, message, tmp_path, capsys):
    assert message in errors_of(arguments, tmp_path, capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms = [", "Invalid value|Unclosed|Expected"),
        ('arms = ["ippo"]', "expected arms and tasks"),
        (SMALL + "\n[setings]\nclip = 1\n", r"no key 'setings' \(did you mean 'settings'\?\)"),
        (SMALL.replace("[tasks.relay.arguments]", "[tasks.relay.argments]"), r"tasks.relay has no key 'argments'"),
        (
            SMALL.replace("learning_rate", "leaning_rate"),
            r"settings has no key 'leaning_rate' \(did you mean 'learning_rate'\?\)",
        ),
        (SMALL.replace('"relay"', '"relai"'), "dataset='relai'"),
        (SMALL.replace("max_new_tokens", "armz"), "decoding has no key 'armz': expected some of max_new_tokens"),
        (SMALL + "\n[lora]\nrnk = 4\n", r"lora has no key 'rnk' \(did you mean 'rank'\?\)"),
        (SMALL + "\n[tasks.relay.decoding]\ntop = 4\n", "tasks.relay.decoding has no key 'top': expected some of"),
        (
            SMALL.replace('dataset = "relay"', "").replace('style = "symbols"', "")
            + '\n[tasks.relay]\nenvironment = "tests.baselines.task_without_split:counting_v0"\n',
            "need an environment with the argument split .*counting_v0 has none",
        ),
    ],
)
def test_a_wrong_preset_is_named(text, message, tmp_path, clean_registry, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    errors = errors_of(["--preset", str(path)], tmp_path, capsys)
    assert re.search(message, errors), errors


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[transfer.hard]\ndataset = "one_step"\nteam = "panel_2"',
            "transfer data set 'hard' has the agents agent_0, ",
        ),
        ('[bases]\nactor_1 = "tiny"', "bases: agent='actor_1': expected one of reasoner_0, actor_0"),
        ('[scripted]\nactor_1 = "a.txt"', "scripted: agent='actor_1': expected one of"),
        ('[scripted]\nactor_0 = "no/such.txt"', "no/such.txt"),
        ('[sharing]\nactor_1 = "one"', "sharing: agent='actor_1': expected one of"),
        ('[sharing]\nactor_0 = "a"\nreasoner_0 = "a"\n[bases]\nactor_0 = "tiny-report"', "on one base"),
    ],
)
def test_settings_that_do_not_fit_the_agents_are_named(more, message, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(f"{SMALL}\n{more}\n")
    errors = errors_of(["--preset", str(path)], tmp_path, capsys)
    assert errors.startswith("compare: task relay, arm ippo: ") and message in errors and errors.count("\n") == 1


@pytest.mark.parametrize("frozen", [["actor_1"], ["actor_0"]], ids=" ".join)
def test_frozen_agents_that_do_not_fit_are_named(frozen):
    sharing = {"actor_0": "one", "reasoner_0": "one"}
    tasks = {"relay": {"arguments": {"dataset": "relay"}, "sharing": sharing, "frozen": frozen}}
    with pytest.raises(GridError, match="task relay, arm marft: frozen"):
        comparison.check_tasks(grid.Grid(arms=("marft",), tasks=tasks))


@pytest.mark.parametrize(("option", "message"), [("--items", "evaluation_items=0"), ("--updates", "updates=-1")])
def test_options_are_validated_before_the_results_folder(option, message, tmp_path, capsys):
    (tmp_path / "grid.json").write_text("{}")
    assert compare.main(["--out", str(tmp_path), option, message.partition("=")[2]]) == 2
    assert message in capsys.readouterr().err


def test_a_base_that_does_not_fit_the_memory_is_refused_before_it_is_loaded(monkeypatch):
    monkeypatch.setattr(comparison, "check_model", None)
    tasks = {"relay": {"arguments": {"dataset": "relay"}}}
    with pytest.raises(ValueError, match=r"memory_gib=0\.001: expected more than 0\.\d+, the size of weights"):
        comparison.check_models(grid.Grid(arms=("marft",), tasks=tasks, memory_gib=0.001))


def test_a_comparison_whose_problems_have_changed_is_not_resumed(tmp_path, capsys):
    problems, preset = tmp_path / "own.jsonl", tmp_path / "own.toml"
    problems.write_text("".join(json.dumps({"q": f"{i} + {i} = ?", "a": str(2 * i)}) + "\n" for i in range(16)))
    preset.write_text(SMALL + f'\n[transfer.own]\ndataset = "custom"\npath = "{problems}"\n'
                      'columns = {prompt = "q", answer = "a"}\n')  # fmt: skip
    command = ["--preset", str(preset), "--out", str(tmp_path / "r"), "--resume"]
    built = comparison.grid_of(compare.parse(command))
    ResultsFolder(tmp_path / "r").open(built, resume=False, data=comparison.check_models(built))
    problems.write_text(problems.read_text().replace('"a": "', '"a": "1'))
    assert compare.main(command) == 2
    errors = capsys.readouterr().err
    assert 'was started with other problems; task relay: transfer.own.sha256 was "' in errors
    assert errors.count("\n") == 1


def test_a_transfer_data_set_is_played_by_each_task_s_own_team():
    built = comparison.grid_of(compare.parse(["--preset", "quick", "--dataset", "one_step"]))
    comparison.check_tasks(built)
    teams = {run.task: run.transfer["one_step"]["team"] for run in built.runs()}
    assert teams == {"relay": "duo", "report_8": "panel_8"}
    built = comparison.grid_of(compare.parse(["--preset", "rounds", "--dataset", "one_step", "--path", "x"]))
    own = {"dataset": "one_step", "team": "panel_4", "rounds": 3, "memory": "none", "path": "x"}
    assert built.runs()[0].transfer == {"one_step": own}


def test_both_arms_get_the_same_problems_in_the_same_order(tmp_path):
    from baselines.runs.run import Run

    (tmp_path / "small.toml").write_text(SMALL)
    one, two = (Run(config) for config in load_preset(str(tmp_path / "small.toml")).runs())
    assert [one.problems(u).tolist() for u in (1, 2)] == [two.problems(u).tolist() for u in (1, 2)]
    assert one.problems(1).tolist() != one.problems(2).tolist()
