"""Prompts beyond the limit lose whole messages, the oldest first, and the number is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from baselines.engine.message_window import Message, fit, removable
from baselines.engine.scripted import Scripted
from baselines.errors import RunError
from baselines.models.load import load_model
from marft_envs.batch import Request
from tests.baselines.engine.chat_models import reader

SYSTEM = {"role": "system", "name": "me_0", "content": "ss"}
TASK = {"role": "user", "name": "task", "content": "tttt"}
FEEDBACK = {"role": "user", "name": "task", "content": "ff"}


def said(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "name": "you_0", "content": text}


def characters(messages: Sequence[Message]) -> list[int]:
    """Return one token per character."""
    return [ord(c) for m in messages for c in m["content"]]


LONG = [SYSTEM, TASK, said("aaa"), said("bb", "assistant"), FEEDBACK, said("c"), said("ddddd")]


@pytest.mark.parametrize(
    ("limit", "text", "dropped"),
    [
        (19, "ssttttaaabbffcddddd", 0),
        (18, "ssttttbbffcddddd", 1),
        (16, "ssttttbbffcddddd", 1),
        (15, "ssttttffcddddd", 2),
        (13, "ssttttcddddd", 3),
        (11, "ssttttddddd", 4),
        (10, "sstttt", 5),
        (6, "sstttt", 5),
    ],
)
def test_the_oldest_messages_are_left_out(limit: int, text: str, dropped: int) -> None:
    ids, count = fit(LONG, limit, characters, "m")
    assert ("".join(map(chr, ids)), count) == (text, dropped)


def test_what_cannot_be_left_out_has_to_fit() -> None:
    message = (
        "the prompt has more tokens than the limit of 5: instructions, problem and reply prefix alone need 6 tokens of "
        "model 'm', and are never truncated. Raise decoding.max_prompt_tokens to at least 6, also to resume the run"
    )
    with pytest.raises(RunError, match=re.escape(message)):
        fit(LONG, 5, characters, "m")


def test_the_problem_is_the_first_message_of_the_task() -> None:
    assert removable(LONG) == [2, 3, 4, 5, 6]
    assert removable([said("a"), TASK, FEEDBACK]) == [0, 2]
    assert removable([{"role": "user", "content": "no name"}, TASK]) == [1]


def test_a_conversation_without_system_and_problem_keeps_its_newest_message() -> None:
    assert fit([said("aaa"), said("b")], 2, characters, "m") == ([ord("b")], 1)
    with pytest.raises(RunError, match="need 2 tokens"):
        fit([said("aaa"), said("bb")], 1, characters, "m")


def test_prompt_and_reply_of_a_turn_count_what_they_leave_out() -> None:
    observation = {"messages": ({**TASK, "content": "7+4="}, said("11"), said("3")), "reply_prefix": "2"}
    tiny = load_model("tiny")
    short = reader(tiny, 7)
    assert tiny.tokenizer.decode(short.prompt(observation)) == "3|7+4=2"
    assert short.made_prompt(observation).dropped_messages == 1
    (reply,) = Scripted(lambda requests: ["5"], short, "scripted.a_0")([Request(0, 0, "a_0", 0, 0, observation)])
    assert reply.data.dropped_messages == 1 and list(reply.data.prompt_ids) == short.prompt(observation)
    with pytest.raises(RunError, match=r"limit of 4: .* need 5 tokens of model 'tiny-relay-duo-v1'"):
        reader(tiny, 4).prompt(observation)
