"""Every field of the records that settings are made of says which kind of value it takes."""

import re
from dataclasses import fields

import pytest

from baselines.engine.torch_engine import Decoding
from baselines.field_types import FIELD_TYPES
from baselines.learner_config import _CHOICES, LearnerConfig
from baselines.policies.weights import LoraSettings
from baselines.runs.run_config import RunConfig, from_table

RECORDS = {"config": RunConfig, "learner": LearnerConfig, "decoding": Decoding, "lora": LoraSettings}
RIGHT = {
    "a text": ["ippo"],
    "true or false": [True],
    "a whole number": [8],
    "a number": [8, 0.5],
    "two numbers": [[0.5, 2], (0.5, 2.0)],
    'a list of texts, as in ["a", "b"]': [["a_0"], ("a_0",), []],
    "a table": [{}, {"a": 1}],
    "a table of texts": [{}, {"a_0": "tiny"}],
    "a table of tables": [{}, {"a": {"b": 1}}],
}
ANY = ["abc", None, True, 8, 0.5, [], [1, 2, 3], [0.5, "2"], ["a", 1], {}, {"a": 1}, {1: "a"}, {"a": {1: 2}}]


@pytest.mark.parametrize(("words", "holds"), list(FIELD_TYPES.values()), ids=lambda x: x if isinstance(x, str) else "")
def test_a_kind_takes_its_own_values_and_no_others(words, holds):
    assert all(map(holds, RIGHT[words]))
    also = {"a number": [8], "a table": [{"a": {1: 2}}]}.get(words, [])
    taken = [value for value in ANY if holds(value)]
    assert all(repr(value) in map(repr, RIGHT[words] + also + ["abc"][: words == "a text"]) for value in taken)


def every_field():
    for where, record in RECORDS.items():
        for field in fields(record):
            if field.init and field.name not in ("settings", *RECORDS, *_CHOICES):
                yield where, record, field


@pytest.mark.parametrize(("where", "record", "field"), list(every_field()), ids=lambda x: getattr(x, "name", ""))
@pytest.mark.parametrize("wrong", ["abc", None, True, 0.25, [1], {"a": 1}], ids=repr)
def test_a_value_of_another_kind_is_named_with_its_field(where, record, field, wrong):
    words, holds = FIELD_TYPES[str(field.type)]
    if holds(wrong):
        return
    table = {field.name: wrong} if where == "config" else {where: {field.name: wrong}}
    told = re.escape(f"{record.__name__} {field.name}={wrong!r}: expected {words}")
    with pytest.raises(ValueError, match=f"^{told}$"):
        from_table({"arm": "marft", **table})


@pytest.mark.parametrize("name", _CHOICES)
@pytest.mark.parametrize("wrong", [None, True, 0.25, [1], {"a": 1}], ids=repr)
def test_so_is_one_that_is_no_choice(name, wrong):
    told = re.escape(f"LearnerConfig {name}={wrong!r}: expected one of {', '.join(_CHOICES[name])}")
    with pytest.raises(ValueError, match=f"^{told}$"):
        from_table({"arm": "marft", "learner": {name: wrong}})


@pytest.mark.parametrize(("name", "record"), [("lora", LoraSettings), ("decoding", Decoding)])
def test_a_table_in_the_place_of_a_record_is_told_in_python(name, record):
    with pytest.raises(ValueError, match=rf"^RunConfig {name}={{'rank': 4}}: expected a {record.__name__}$"):
        RunConfig(arm="marft", **{name: {"rank": 4}})
