"""Configurations: files, flags, --set, the hash, and the messages for invalid settings."""

import json
from dataclasses import replace

import pytest

from baselines.engine.chat_template import ChatSettings
from baselines.engine.torch_engine import Decoding
from baselines.policies.weights import LoraSettings
from baselines.runs.config_files import build, read_settings, set_keys
from baselines.runs.run_config import RunConfig, differences
from marft_envs.cli.key_values import parse_key_values, parse_value

SETTINGS = {
    "arm": "marft",
    "updates": 7,
    "environment_arguments": {"dataset": "relay"},
    "learner": {"learning_rate": 1e-3, "factor_clamp": [0.8, 1.25]},
    "decoding": {"max_new_tokens": 6},
}
TOML = """
arm = "marft"
updates = 7
[environment_arguments]
dataset = "relay"
[learner]
learning_rate = 1e-3
factor_clamp = [0.8, 1.25]
[decoding]
max_new_tokens = 6
"""
YAML = """
arm: marft
updates: 7
environment_arguments: {dataset: relay}
learner: {learning_rate: 0.001, factor_clamp: [0.8, 1.25]}
decoding: {max_new_tokens: 6}
"""


def test_a_mapping_gives_the_same_run_as_keywords():
    run = RunConfig(
        arm="marft",
        updates=7,
        environment_arguments={"dataset": "relay"},
        settings={"learning_rate": 1e-3, "factor_clamp": (0.8, 1.25)},
        decoding=Decoding(max_new_tokens=6),
    )
    from_mapping = RunConfig.from_mapping(SETTINGS)
    assert from_mapping.resolved() == run.resolved() and from_mapping.hash() == run.hash()
    assert from_mapping.task == "relay" and from_mapping.learner().factor_clamp == (0.8, 1.25)


@pytest.mark.parametrize(("name", "text"), [("a.toml", TOML), ("a.yaml", YAML), ("a.json", json.dumps(SETTINGS))])
def test_settings_files_of_each_format(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_settings(tmp_path / name) == SETTINGS


def test_resolved_settings_give_the_same_run():
    run = RunConfig.from_mapping(SETTINGS)
    again = RunConfig.from_mapping(json.loads(json.dumps(run.resolved())))
    assert again.hash() == run.hash() and again.learner() == run.learner()
    assert json.dumps(again.resolved()) == json.dumps(run.resolved())


def test_the_hash_covers_the_settings_that_affect_results():
    run = RunConfig.from_mapping(SETTINGS)
    other = {"seed": 1, "model": "tiny-report", "episodes": 64, "evaluate_every": 3, "frozen": ("actor_0",),
             "decoding": Decoding(max_new_tokens=7), "settings": {}, "environment_arguments": {}}  # fmt: skip
    hashes = {replace(run, **{name: value}).hash() for name, value in other.items()}
    chats = ({"date": "2026-01-02"}, {"enable_thinking": True}, {"keep_thinking": True})
    hashes |= {replace(run, chat=ChatSettings(**changed)).hash() for changed in chats}
    adapters = ({"rank": 4}, {"activated": True}, {"activated": True, "invocation": "="})
    hashes |= {replace(run, lora=LoraSettings(**changed)).hash() for changed in adapters}
    assert len(hashes) == len(other) + len(chats) + len(adapters) and run.hash() not in hashes
    for name, value in {"updates": 9, "checkpoint_every": 1, "keep_checkpoints": 9, "transcripts": 0}.items():
        assert replace(run, **{name: value}).hash() == run.hash()
    assert replace(run, decoding=replace(run.decoding, max_prompt_tokens=9999)).hash() == run.hash()


def test_differences_describe_new_changed_and_missing_values():
    old, new = {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}, {"a": {"b": 3, "f": None}, "e": [1]}
    expected = ["a.b was 1, now 3", "a.c was a mapping, now not set", "a.f was not set, now null"]
    assert differences(old, new) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arn": "marft"}, r"config has no key 'arn' \(did you mean 'arm'\?\): expected some of arm, task"),
        ({"updates": 1}, "config has no arm: expected arm = NAME"),
        ({"arm": "marfft"}, "arm='marfft': expected one of ippo, mappo"),
        ({"arm": "marft", "lr": 1e-3}, r"config has no key 'lr' \(did you mean 'learner.learning_rate'\?\)"),
        ({"arm": "marft", "clip": 0.1}, r"config has no key 'clip' \(did you mean 'learner.clip'\?\)"),
        ({"arm": "marft", "update": 2}, r"config has no key 'update' \(did you mean 'updates'\?\)"),
        ({"arm": "marft", "updatse": 3}, r"config has no key 'updatse' \(did you mean 'updates'\?\)"),
        ({"arm": "marft", "learner": {"clipp": 1}}, r"learner has no key 'clipp' \(did you mean 'clip'\?\)"),
        (
            {"arm": "marft", "tuning": "full", "quantization": "4bit"},
            "quantization='4bit': expected 'none' with tuning='full'",
        ),
        ({"arm": "marft", "learner": {"clip": -1}}, "clip=-1: expected a positive number"),
        ({"arm": "marft", "learner": {"lr": 1e-3}}, r"learner has no key 'lr' \(did you mean 'learning_rate'\?\)"),
        ({"arm": "marft", "learner": 3}, "learner=3: expected a mapping"),
        ({"arm": "marft", "environment_arguments": []}, r"environment_arguments=\[\]: expected a mapping"),
        ({"arm": "marft", "decoding": {"top_p": 0.9}}, "decoding has no key 'top_p': expected some of max_new_tokens"),
        ({"arm": "marft", "chat": {"thinking": True}}, "chat has no key 'thinking'"),
        ({"arm": "marft", "chat": {"keep_thinking": 1}}, "ChatSettings keep_thinking=1: expected true or false"),
        (
            {"arm": "marft", "chat": {"date": "26 Jul"}},
            "ChatSettings date='26 Jul': expected a date such as '2024-07-26'",
        ),
        ({"arm": "marft", "lora": {"rank": 0}}, "LoraSettings rank=0: expected at least 1"),
        ({"arm": "marft", "lora": {"invocation": "="}}, "LoraSettings invocation='=': expected activated=True with it"),
        ({"arm": "marft", "tuning": "full", "lora": {"activated": True}}, "activated=True: expected tuning='lora'"),
        ({"arm": "marft", "updates": "ten"}, "RunConfig updates='ten': expected an integer"),
        ({"arm": "marft", "updates": True}, "RunConfig updates=True: expected an integer"),
        ({"arm": "marft", "updates": -1}, "RunConfig updates=-1: expected at least 0"),
        ({"arm": "marft", "episodes": 0}, "RunConfig episodes=0: expected at least 1"),
        ({"arm": "marft", "checkpoint_every": 0}, "RunConfig checkpoint_every=0: expected at least 1"),
        ({"arm": "marft", "keep_checkpoints": 0}, "RunConfig keep_checkpoints=0: expected at least 1"),
        ({"arm": "marft", "environment": "maths_v0"}, "maths_v0"),
        ({"arm": "magrpo", "episodes": 9}, "episodes=9: expected a multiple of group_size=8"),
    ],
)
def test_invalid_settings_are_reported(settings, message):
    with pytest.raises(ValueError, match=message):
        RunConfig.from_mapping(settings)


@pytest.mark.parametrize("text", ["2026-01-02", '"2026-01-02"'])
def test_the_date_of_chat_templates_may_be_a_date_or_a_string(tmp_path, text):
    (tmp_path / "chat.toml").write_text(f'arm = "marft"\n[chat]\ndate = {text}\n')
    run = RunConfig.from_mapping(read_settings(tmp_path / "chat.toml"))
    assert run.chat.date == "2026-01-02" and json.loads(json.dumps(run.resolved()))["chat"]["date"] == "2026-01-02"


def test_a_wrong_field_of_the_learner_has_a_suggestion_in_front_of_the_list():
    with pytest.raises(ValueError, match=r"no field 'lr' \(did you mean 'learning_rate'\?\): expected one of critic"):
        RunConfig(arm="marft", settings={"lr": 1})


def test_a_value_that_is_not_json_is_reported():
    run = RunConfig(arm="marft", environment_arguments={"team": object()})
    with pytest.raises(
        ValueError, match="object is not JSON serializable; expected strings, numbers, lists and mappings"
    ):
        run.hash()


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("true", True), ("[1, 2]", [1, 2]), ('"7"', "7"), ("sum", "sum"), ("7+4=", "7+4="),
     ("", ""), ("1\nx = 2", "1\nx = 2")],
)  # fmt: skip
def test_values_of_flags(text, value):
    assert parse_value(text) == value and type(parse_value(text)) is type(value)


def test_flags_override_files_and_set_overrides_flags():
    run = build([SETTINGS, {"updates": 8, "environment_arguments": {"style": "symbols"}}],
                {"learner.clip": 0.1, "updates": 9, "decoding.temperature": 0.7})  # fmt: skip
    assert run.updates == 9 and run.learner().clip == 0.1 and run.learner().learning_rate == 1e-3
    assert run.environment_arguments == {"dataset": "relay", "style": "symbols"}
    assert (run.decoding.max_new_tokens, run.decoding.temperature) == (6, 0.7)
    assert (
        SETTINGS["updates"] == 7
        and "clip" not in SETTINGS["learner"]
        and "style" not in SETTINGS["environment_arguments"]
    )


def test_invalid_files_and_keys_are_reported(tmp_path):
    with pytest.raises(ValueError, match="--env-arg dataset: expected KEY=VALUE"):
        parse_key_values("--env-arg", ["dataset"])
    with pytest.raises(ValueError, match=r"--set arm\.clip: arm is not a mapping"):
        set_keys(SETTINGS, {"arm.clip": 1})
    with pytest.raises(ValueError, match="no such file"):
        read_settings(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"expected a file that ends in one of \.toml"):
        read_settings(tmp_path / "none.txt")
    (tmp_path / "bare.toml").write_text("arm = ippo")
    with pytest.raises(ValueError, match=r'Invalid value .*; strings need quotes, as in arm = "marft"'):
        read_settings(tmp_path / "bare.toml")
    for name, text in (("a.toml", "arm = "), ("a.yaml", "arm: ["), ("a.json", "{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"config .*{name}: "):
            read_settings(tmp_path / name)
    (tmp_path / "a.yaml").write_text("- 1")
    with pytest.raises(ValueError, match="holds a list, expected a mapping"):
        read_settings(tmp_path / "a.yaml")
