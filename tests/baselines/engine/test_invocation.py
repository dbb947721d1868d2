"""The tokens that activate adapters: the header of the reply in each chat template; the last in a prompt count."""

from __future__ import annotations

import re

import pytest

from baselines.engine.chat_template import ChatSettings
from baselines.engine.invocation import base_tokens, invocation_ids
from baselines.engine.prompts import render
from baselines.models.load import load_model
from tests.baselines.engine.chat_models import byte_level, chat_model

SYSTEM = {"role": "system", "name": "me_0", "content": "Be brief."}
TASK = {"role": "user", "name": "task", "content": "7+4="}
OTHER = {"role": "user", "name": "you_0", "content": "<|im_start|>assistant [/INST] <|assistant|>"}
OWN = {"role": "assistant", "name": "me_0", "content": "9"}
HEADERS = {
    "qwen2.5": "<|im_start|>assistant",
    "qwen3": "<|im_start|>assistant",  # without the empty thinking part, which a reply prefix replaces
    "smollm2": "<|im_start|>assistant",
    "llama3": "<|start_header_id|>assistant<|end_header_id|>",
    "gemma2": "<start_of_turn>model",
    "gemma3": "<start_of_turn>model",
    "phi3": "<|assistant|>",
    "deepseek_r1": "<｜Assistant｜>",
}
WITHOUT_HEADER = ("mistral", "mistral_v3", "mistral_small")  # [/INST] ends the user's message


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("thinking", [False, True])
def test_the_header_of_the_reply_activates(name: str, thinking: bool) -> None:
    loaded, settings = chat_model(name), ChatSettings(enable_thinking=thinking)
    ids = invocation_ids(loaded, "", settings)
    assert loaded.tokenizer.decode(ids) == HEADERS[name]
    for messages in ([TASK], [SYSTEM, TASK, OTHER], [SYSTEM, TASK, OWN, OTHER], [SYSTEM, TASK, OWN]):
        for prefix in ("", "So ", "\n", "<think>", "<think>\nI"):
            prompt = render(messages, loaded, prefix, settings=settings)
            start = base_tokens(prompt, ids)
            assert 0 < start < len(prompt)
            before, after = (loaded.tokenizer.decode(part) for part in (prompt[:start], prompt[start:]))
            assert after.startswith(HEADERS[name]) and after.endswith(prefix)
            assert all(message["content"] not in after and "7+4=" in before for message in messages)


@pytest.mark.parametrize("name", WITHOUT_HEADER)
def test_a_template_without_a_header_needs_a_text(name: str) -> None:
    loaded, settings = chat_model(name), ChatSettings()
    with pytest.raises(ValueError, match=r"model .* has no chat template that writes a header .* lora\.invocation = "):
        invocation_ids(loaded, "", settings)
    ids = invocation_ids(loaded, "[/INST]", settings)
    for prefix in ("", "So "):
        prompt = render([SYSTEM, TASK, OWN, OTHER], loaded, prefix, settings=settings)
        after = loaded.tokenizer.decode(prompt[base_tokens(prompt, ids) :])
        assert after.startswith("[/INST]") and after.removeprefix("[/INST]").strip() == prefix.strip()


def test_models_without_a_header_or_a_template_need_a_text() -> None:
    for loaded in (load_model("tiny"), byte_level(None, ("<s>", "</s>"))):
        with pytest.raises(ValueError, match=r"lora\.activated: model .* has no chat template that writes a header"):
            invocation_ids(loaded, "", ChatSettings())
        ids = invocation_ids(loaded, "=", ChatSettings())
        prompt = render([TASK, {**OTHER, "content": "1=2"}], loaded)
        assert base_tokens(prompt, ids) == max(i for i, token in enumerate(prompt) if (token,) == ids)


def test_the_last_occurrence_counts() -> None:
    assert base_tokens([8, 9, 3, 8, 9, 4], [8, 9]) == 3
    assert base_tokens([8, 9], [8, 9]) == 0
    assert base_tokens([8, 9, 3], []) == 0  # always active
    with pytest.raises(
        ValueError,
        match=re.escape(
            "a prompt that ends in the token ids [3, 8, 4, 9] does not contain the invocation tokens [8, 9]"
        ),
    ):
        base_tokens([3, 8, 4, 9], [8, 9])
