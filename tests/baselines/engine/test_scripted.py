"""Scripted agents: invalid replies are reported with the agent's name, and a changed script makes another run."""

import importlib
import json
import sys
from dataclasses import replace

import pytest

from baselines.engine.torch_engine import Decoding
from baselines.runs.config_files import read_settings
from baselines.runs.load_team import load_team
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy, check_team
from baselines.train import main
from marft_envs.batch import Request

HERE = "tests.baselines.engine.test_scripted"


def nothing(requests):
    return None


def too_few(requests):
    return ["7"] * (len(requests) - 1)


def a_number(requests):
    return [7] * len(requests)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nothing", TypeError, "returned NoneType: expected a list"),
        ("too_few", ValueError, "returned 1 replies: expected a list"),
        ("a_number", TypeError, "returned a list with a int: expected a list"),
    ],
)
def test_invalid_replies_of_a_script_are_reported(name, error, message, monkeypatch):
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])
    config = RunConfig(arm="ippo", scripted={"a_0": f"{HERE}:{name}"})
    sampler = TeamPolicy(config, ("a_0", "b_0"), config.decoding).sampler(None)
    requests = [Request(i, i, "a_0", 0, 0, {}) for i in range(2)]
    with pytest.raises(error, match=rf"scripted\.a_0='{HERE}:{name}' {message}"):
        sampler(requests)


@pytest.fixture(params=["fixed.txt", "script_module.py"])
def script(request, tmp_path, monkeypatch):
    """Return a script's path, another content for it, and its name in the settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "script_module", raising=False)
    path = tmp_path / request.param
    contents = ("12\n", "13\n")
    if path.suffix == ".py":
        contents = tuple(f"def reply(requests):\n    return [{text!r}] * len(requests)\n" for text in ("12", "13"))
    path.write_text(contents[0])
    importlib.invalidate_caches()
    return path, contents[1], "fixed.txt" if path.suffix == ".txt" else "script_module:reply"


def run_with(spec):
    relay = {"dataset": "relay", "style": "symbols"}
    return RunConfig(
        arm="marft", environment_arguments=relay, updates=0, evaluation_items=1, scripted={"reasoner_0": spec},
        decoding=Decoding(max_new_tokens=4),
    )  # fmt: skip


def test_a_run_whose_script_has_changed_is_not_resumed(script, tmp_path, capsys, caplog):
    path, other, spec = script
    config, out = run_with(spec), tmp_path / "run"
    train(config, folder=out)
    train(run_with(spec), folder=out, resume=True)  # the same one
    load_team(out)
    assert "scripted" not in caplog.text
    path.write_text(other)
    assert load_team(out).update == 0  # it loads with a warning
    assert "000000: the team was trained with another script: scripted_sha256.reasoner_0 was " in caplog.text
    changed = run_with(spec)
    assert changed.hash() != config.hash()
    message = "holds a run with another configuration: scripted_sha256.reasoner_0 was "
    with pytest.raises(ValueError, match=message):
        train(changed, folder=out, resume=True)
    assert main(["--resume", "--out", str(out)]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1
    path.unlink()
    assert main(["--resume", "--out", str(out)]) == 2
    assert message in capsys.readouterr().err


def test_a_script_that_changes_after_the_settings_were_made_is_refused(script):
    path, other, spec = script
    config = run_with(spec)
    check_team(config, ("reasoner_0", "actor_0"))
    path.write_text(other)
    for make in (check_team, lambda c, agents: TeamPolicy(c, agents, c.decoding)):
        with pytest.raises(
            ValueError, match=rf"^scripted\.reasoner_0='{spec}' has changed since the run was configured"
        ):
            make(config, ("reasoner_0", "actor_0"))


def test_resolved_settings_have_the_hash_of_each_script(script, tmp_path):
    config = run_with(script[2])
    resolved = json.loads(json.dumps(config.resolved()))
    assert set(resolved["scripted_sha256"]) == {"reasoner_0"} and len(resolved["scripted_sha256"]["reasoner_0"]) == 12
    (tmp_path / "config.json").write_text(json.dumps({"config_hash": config.hash(), **resolved}))
    for again in (
        RunConfig.from_mapping(resolved),
        RunConfig.from_mapping(read_settings(tmp_path / "config.json")),
        replace(config, updates=3),
    ):
        assert again.hash() == config.hash()


def test_resolved_settings_without_scripts_have_no_script_hashes():
    """Otherwise the hash of every run without scripts would change."""
    config = RunConfig(arm="marft", environment_arguments={"dataset": "relay"})
    assert "scripted_sha256" not in config.resolved() and not config.scripted_sha256


@pytest.mark.parametrize("spec", ["none.txt", "no_such_module:reply", "sys:exit", "nothing", "a:b:c"])
def test_the_settings_accept_a_script_that_cannot_be_read(spec):
    assert run_with(spec).scripted_sha256 == {"reasoner_0": None}
