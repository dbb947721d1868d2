"""Type checks of the settings records: every field accepts its own kind of value and names the expected one."""

import re
from dataclasses import fields

import pytest

from baselines.engine.chat_template import ChatSettings
from baselines.engine.torch_engine import Decoding
from baselines.field_types import FIELD_TYPES, literal_choices
from baselines.learner_config import LearnerConfig
from baselines.policies.weights import LoraSettings
from baselines.runs.run_config import RunConfig

RECORDS = {
    "config": RunConfig, "learner": LearnerConfig, "decoding": Decoding, "lora": LoraSettings, "chat": ChatSettings
}  # fmt: skip
CHOICES = literal_choices(LearnerConfig)
VALID = {
    "a string": ["ippo"],
    "true or false": [True],
    "an integer": [8],
    "a number": [8, 0.5],
    "a number, or none": [8, 0.5, None],
    "two numbers": [[0.5, 2], (0.5, 2.0)],
    'a list of strings, for example ["a", "b"]': [["a_0"], ("a_0",), []],
    "a mapping": [{}, {"a": 1}],
    "a mapping of strings to strings": [{}, {"a_0": "tiny"}],
    "a mapping of strings to mappings": [{}, {"a": {"b": 1}}],
}
ANY = ["abc", None, True, 8, 0.5, [], [1, 2, 3], [0.5, "2"], ["a", 1], {}, {"a": 1}, {1: "a"}, {"a": {1: 2}}]


@pytest.mark.parametrize(("words", "check"), list(FIELD_TYPES.values()), ids=lambda x: x if isinstance(x, str) else "")
def test_a_type_accepts_its_own_values_and_no_others(words, check):
    assert all(map(check, VALID[words]))
    also = {"a number": [8], "a mapping": [{"a": {1: 2}}], "a string": ["abc"]}.get(words, [])
    accepted = [value for value in ANY if check(value)]
    assert all(repr(value) in map(repr, VALID[words] + also) for value in accepted)


def every_field():
    for where, record in RECORDS.items():
        for field in fields(record):
            if field.init and field.name not in ("settings", *RECORDS) and field.name not in literal_choices(record):
                yield where, record, field


@pytest.mark.parametrize(("where", "record", "field"), list(every_field()), ids=lambda x: getattr(x, "name", ""))
@pytest.mark.parametrize("wrong", ["abc", None, True, 0.25, [1], {"a": 1}], ids=repr)
def test_a_value_of_the_wrong_type_is_reported_with_its_field(where, record, field, wrong):
    words, check = FIELD_TYPES[str(field.type)]
    if check(wrong):
        return
    table = {field.name: wrong} if where == "config" else {where: {field.name: wrong}}
    message = re.escape(f"{record.__name__} {field.name}={wrong!r}: expected {words}")
    with pytest.raises(ValueError, match=f"^{message}$"):
        RunConfig.from_mapping({"arm": "marft", **table})


def test_choices_are_read_from_the_annotations():
    assert CHOICES["factor"] == ("off", "on") and CHOICES["kl_estimator"] == ("k1", "k2", "k3")
    assert {"critic", "normalization", "loss_aggregation", "value_loss"} <= set(CHOICES) and "clip" not in CHOICES


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("wrong", [None, True, 0.25, [1], {"a": 1}], ids=repr)
def test_a_value_that_is_not_a_choice_is_reported(name, wrong):
    message = re.escape(f"LearnerConfig {name}={wrong!r}: expected one of {', '.join(CHOICES[name])}")
    with pytest.raises(ValueError, match=f"^{message}$"):
        RunConfig.from_mapping({"arm": "marft", "learner": {name: wrong}})


@pytest.mark.parametrize(("name", "record"), [("lora", LoraSettings), ("decoding", Decoding)])
def test_a_mapping_in_place_of_a_record_is_refused(name, record):
    with pytest.raises(ValueError, match=rf"^RunConfig {name}={{'rank': 4}}: expected a {record.__name__}$"):
        RunConfig(arm="marft", **{name: {"rank": 4}})
