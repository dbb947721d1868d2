"""Golden prompts of observations for each kind of chat template."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from baselines.engine.conversation import plain_text
from baselines.engine.prompts import make_prompt, render
from baselines.models.load import LoadedModel, load_model
from tests.baselines.engine.chat_models import byte_level

TASK = {"role": "user", "name": "task", "content": "7+4="}
OTHER = {"role": "user", "name": "reasoner_0", "content": "11"}
SYSTEM = {"role": "system", "name": "actor_0", "content": "Add."}
OWN = {"role": "assistant", "name": "actor_0", "content": "9"}
CHATML = (
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '</>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny")


def text_of(messages: list[dict[str, str]], loaded: LoadedModel, prefix: str = "") -> str:
    return loaded.tokenizer.decode(render(messages, loaded, prefix))


@pytest.mark.parametrize(
    ("messages", "prefix", "prompt"),
    [
        ([TASK], "", "7+4="),
        ([SYSTEM, TASK], "", "7+4="),
        ([SYSTEM, TASK, OTHER], "", "11|7+4="),
        ([TASK, OTHER, {**OTHER, "name": "reasoner_1", "content": "30"}], "", "11|30|7+4="),
        ([TASK, OWN, OTHER], "", "9|11|7+4="),  # own earlier message, then another agent's
        ([TASK, OWN], "", "9|7+4="),  # an own message that is last is answered, not continued
        ([TASK, OTHER], "2", "11|7+4=2"),
        ([TASK, OWN, OTHER], "2", "9|11|7+4=2"),
        ([{"role": "user", "content": "7+4="}], "", "7+4="),  # without a name: the task
    ],
)
def test_tiny_template(tiny: LoadedModel, messages: list[dict[str, str]], prefix: str, prompt: str) -> None:
    assert text_of(messages, tiny, prefix) == prompt


def test_tiny_golden_ids(tiny: LoadedModel) -> None:
    # pad, eos, unk are 0, 1, 2; digit d is 3 + d; "+" 13, "=" 17, "|" 20
    assert render([SYSTEM, TASK, OTHER], tiny) == [4, 4, 20, 10, 13, 7, 17]


def test_tiny_add_generation_prompt_adds_nothing(tiny: LoadedModel) -> None:
    chat: list[Any] = [SYSTEM, TASK, OTHER]
    made = [
        tiny.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=flag) for flag in (True, False)
    ]
    assert made == ["11|7+4=", "11|7+4="]


def test_an_own_message_that_is_last_is_answered_not_continued() -> None:
    assert text_of([TASK, OWN], byte_level(CHATML)) == "<user>7+4=</><assistant>9</><assistant>"


def test_neighbouring_user_messages_are_merged_with_names() -> None:
    prompt = text_of([SYSTEM, TASK, OTHER, OWN, {**OTHER, "content": "12"}], byte_level(CHATML))
    assert prompt == "<system>Add.</><user>7+4=\n\nreasoner_0: 11</><assistant>9</><user>reasoner_0: 12</><assistant>"


@pytest.mark.parametrize("prefix", ["So the answer is", "So the answer is ", "7+4=", " ", ""])
def test_a_reply_prefix_is_continued_with_its_white_space(prefix: str) -> None:
    messages = [TASK]
    assert text_of(messages, byte_level(CHATML), prefix) == "<user>7+4=</><assistant>" + prefix
    trimming = byte_level(CHATML.replace("m.content", "m.content | trim"))
    assert text_of(messages, trimming, prefix) == "<user>7+4=</><assistant>" + prefix


def test_a_model_without_a_template_reads_plain_text() -> None:
    assert text_of([SYSTEM, TASK, OTHER], byte_level(None)) == "Add.\n\n7+4=\n\nreasoner_0: 11\n\n"
    assert text_of([TASK], byte_level(None), "2") == "7+4=\n\n2"
    assert plain_text([TASK]) == "7+4=\n\n"


def test_messages_are_not_changed() -> None:
    messages = [dict(TASK), dict(OTHER), dict(OWN)]
    before = [dict(message) for message in messages]
    render(messages, byte_level(CHATML))
    render(messages, load_model("tiny"))
    assert messages == before


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], "got none"),
        ([{"role": "tool", "content": "x"}], r"messages\[0\].*expected a role in"),
        ([TASK, {"role": "user", "content": None}], r"messages\[1\]"),
        ([SYSTEM], "no token to start from"),  # the tiny template drops it
    ],
)
def test_invalid_messages_are_refused(tiny: LoadedModel, messages: list[Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        render(messages, tiny)


def test_render_uses_the_template_flag_not_the_model() -> None:
    tokenizer = load_model("tiny").tokenizer
    nameless = SimpleNamespace(tokenizer=tokenizer, name="tiny", names_in_template=False)
    assert tokenizer.decode(render([TASK], nameless)) == "7+4="  # type: ignore[arg-type]


def test_a_reply_prefix_replaces_what_the_template_begins_a_new_reply_with() -> None:
    thinking = byte_level(CHATML.replace("'<assistant>'", "'<assistant><think>'"))
    assert text_of([TASK], thinking) == "<user>7+4=</><assistant><think>"
    assert text_of([TASK], thinking, "2") == "<user>7+4=</><assistant>2"


def test_words_that_the_tokenizer_does_not_know_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    fresh = load_model("tiny")
    known = {"messages": [TASK], "reply_prefix": ""}
    words = {"messages": [{**TASK, "content": "How many apples? 7+4="}], "reply_prefix": ""}
    with caplog.at_level("WARNING", "baselines"):
        make_prompt(known, fresh, 64)
        assert caplog.messages == []
        for _ in range(2):
            make_prompt(words, fresh, 64)
    (message,) = caplog.messages
    # 21 characters; the tokenizer knows "7+4=" and the three blanks
    assert message.startswith(
        "model 'tiny-relay-duo-v1' does not know 14 of the 21 tokens of the prompt 'How many apples"
    )
    assert "reads them as <unk>" in message


def test_an_unknown_token_that_is_also_the_end_token_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    model = byte_level("{% for m in messages %}{{ m.content + '<end>' }}{% endfor %}", special=("", "<end>"))
    model.tokenizer.unk_token = "<end>"
    assert model.tokenizer.unk_token_id in render([TASK], model)
    with caplog.at_level("WARNING", "baselines"):
        make_prompt({"messages": [{**TASK, "content": "apples"}], "reply_prefix": ""}, model, 64)
    assert caplog.messages == []
