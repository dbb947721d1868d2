"""Replies: an action's text is what it adds to its prompt, and a model's thinking is not part of its message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from baselines.engine.chat_template import ChatSettings
from baselines.engine.prompts import Prompt
from baselines.engine.protocol import Completion, GenerationRequest, Sampling
from baselines.engine.replies import action_text, open_thinking, visible_text
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.policies.policy import SharedBasePolicy
from baselines.trajectory import Generation, padded_turns
from marft_envs.batch import Reply, Request
from tests.baselines.engine.chat_models import byte_level, chat_model, reader
from tests.baselines.engine.generate import generate

WORDS = ["Therefore", "▁the", "▁final", "▁answer", "▁is", "▁22", "22", "▁", "a", "é", "€", ".", "▁Therefore"]


def sentencepiece(strips: bool = True) -> Any:
    """Return a tokenizer as Llama 2, Gemma and Mistral have one: blanks are "▁", rare characters are bytes."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"<0x{i:02X}>": 3 + i for i in range(256)}}
    letters = sorted({c for word in WORDS for c in word} - {"€"})
    for piece in [*letters, *(word for word in WORDS if len(word) > 1)]:
        vocabulary.setdefault(piece, len(vocabulary))
    merges = []
    for word in WORDS:
        for end in range(1, len(word)):
            vocabulary.setdefault(word[: end + 1], len(vocabulary))
            merges.append((word[:end], word[end]))
    backend = Tokenizer(BPE(vocabulary, list(dict.fromkeys(merges)), unk_token="<unk>", byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strips else [decoders.Metaspace()])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def ids_of(tokenizer: Any, *pieces: str) -> list[int]:
    return [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]


@pytest.mark.parametrize("strips", [True, False])
@pytest.mark.parametrize(
    ("prompt", "action", "text"),
    [
        (["▁Therefore", "▁the", "▁final", "▁answer", "▁is"], ["▁22", "."], " 22."),
        (["▁Therefore", "▁the", "▁final", "▁answer", "▁is", "▁"], ["22"], "22"),
        (["▁is"], ["▁22", "</s>"], " 22"),
        (["▁is", "</s>", "<s>"], ["<s>", "▁22"], " 22"),
        (["▁is", "."], [], ""),
    ],
)
def test_an_action_keeps_its_leading_blank(strips: bool, prompt: list[str], action: list[str], text: str) -> None:
    tokenizer = sentencepiece(strips)
    assert action_text(tokenizer, ids_of(tokenizer, *prompt), ids_of(tokenizer, *action)) == text


@pytest.mark.parametrize(
    ("prompt", "action", "text"),
    [
        (["▁is"], ["<0xE2>", "<0x82>", "<0xAC>"], "€"),
        (["▁is"], ["▁22", "<0xE2>", "<0x82>"], " 22\ufffd\ufffd"),  # the length limit cut the last character
        (["▁is", "<0xE2>"], ["<0x82>", "<0xAC>", "▁22"], "€ 22"),  # the prompt ends within a character
        (["▁is", "<0xE2>", "<0x82>", "<0xAC>"], ["<0xE2>"], "\ufffd"),  # the prompt's bytes stay whole
        (["▁is", "<0xEF>", "<0xBF>", "<0xBD>"], ["▁22"], " 22"),  # the prompt ends with U+FFFD itself
    ],
)
def test_bytes_of_a_character_on_both_sides_of_the_cut(prompt: list[str], action: list[str], text: str) -> None:
    tokenizer = sentencepiece()
    assert action_text(tokenizer, ids_of(tokenizer, *prompt), ids_of(tokenizer, *action)) == text


@pytest.mark.parametrize("cut", range(1, 20))
def test_byte_level_actions_complete_the_prompt(cut: int) -> None:
    """Wherever a text is cut, also within "€" and the emoji, the prompt's whole characters and the action give it."""
    tokenizer = byte_level(None).tokenizer
    whole = "ab € 22. 😀 ü\n\ufffd é"
    encoded = whole.encode()
    ids = tokenizer(whole)["input_ids"]
    before = encoded[:cut].decode(errors="ignore")
    assert before + action_text(tokenizer, ids[:cut], ids[cut:]) == whole


def engine_of(tokenizer: Any, **decoding: Any) -> TorchEngine:
    size = len(tokenizer)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=size, max_position_embeddings=128, eos_token_id=2, **shape))
    return TorchEngine(SharedBasePolicy(model, ["a_0"], None, 0), tokenizer, Decoding(**decoding))


def records(engine: TorchEngine, prompt: list[int], completions: list[Completion]) -> list[Generation]:
    sampler = EngineSampler(engine, SimpleNamespace(tokenizer=engine.tokenizer), None)
    return [sampler.generation(Prompt(prompt, 0, ""), completion) for completion in completions]


@pytest.mark.parametrize("newline", [False, True])
def test_generated_texts_continue_their_prompts(newline: bool) -> None:
    tokenizer = sentencepiece()
    engine = engine_of(tokenizer, max_new_tokens=12, stop_strings=("\n",) if newline else ())
    prompt = ids_of(tokenizer, "<s>", "▁Therefore", "▁the", "▁final", "▁answer", "▁is")
    uniforms = np.random.default_rng(0).random((48, 12))
    generations = records(engine, prompt, generate(engine, "a_0", [prompt] * 48, uniforms))
    starts = [tokenizer.convert_ids_to_tokens(g.action_ids[0])[0] == "▁" for g in generations]
    assert any(starts)
    for generation, starts_with_blank in zip(generations, starts, strict=True):
        shown = [i for i in generation.action_ids if i > 2]
        whole = tokenizer.decode(prompt[1:] + shown)
        expected = whole.removeprefix("Therefore the final answer is")
        assert generation.text == (expected.split("\n", 1)[0] if newline else expected)
        assert generation.text.startswith(" ") == starts_with_blank


def test_a_stop_token_that_is_not_special_is_not_text() -> None:
    template = "{% for m in messages %}{{ m.content + '<|turn_end|>' }}{% endfor %}"
    tokenizer = byte_level(template, ("", "</s>"), ("<|turn_end|>",)).tokenizer
    engine = engine_of(tokenizer, max_new_tokens=8)
    end = tokenizer.convert_tokens_to_ids("<|turn_end|>")
    assert end in engine.end_ids
    said = tokenizer("So 22")["input_ids"]
    (generation,) = records(engine, [5], [Completion((*said, end), (0.0,) * 6, "stop", 0)])
    assert generation.text == "So 22" and not generation.truncated and generation.action_ids[-1] == end


# ---- thinking


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>\nIs it 5?\n</think>\n\n22", "22"),
        ("<think>Is it 5?", ""),
        ("So <think>5</think> 22", "So 22"),
        ("So<think>5</think> 22", "So 22"),
        ("<think>a</think>x<think>b</think>y<think>c", "xy"),
        ("no one opened it</think>\n22", "22"),
        ("a</think>b</think>22", "22"),
        ("<think><think>a</think>b</think>22", "22"),
        ("</think>", ""),
        ("<think></think>", ""),
        (" 2 < 3 think > \n", " 2 < 3 think > \n"),
        ("", ""),
    ],
)
def test_visible_text(text: str, visible: str) -> None:
    assert visible_text(text) == visible


@pytest.mark.parametrize(
    ("text", "opened"),
    [("<think>a", "<think>a"), ("x<think>a</think>", ""), ("<think>a</think> <think>b", "<think>b"), ("x", "")],
)
def test_open_thinking(text: str, opened: str) -> None:
    assert open_thinking(text) == opened


@dataclass
class Says:
    """An engine that always generates the same tokens."""

    token_ids: tuple[int, ...]
    sampling: Sampling
    prompt_limit: int = 4096
    invocation_ids: tuple[int, ...] = ()
    end_ids: frozenset[int] = frozenset()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Completion]:
        return [Completion(self.token_ids, (-1.0,) * len(self.token_ids), "stop", 0) for _ in requests]


@pytest.mark.parametrize(
    ("model", "prefix", "generated", "visible", "kept"),
    [
        ("qwen3", "", "<think>\n5?\n</think>\n\n22", "22", "<think>\n5?\n</think>\n\n22"),
        ("qwen3", "", "<think>\n5?", "", "<think>\n5?"),
        ("qwen3", "So", " 22", " 22", " 22"),
        ("qwen3", "Hm. <think>Let", " me</think> 22", "22", "<think>Let me</think> 22"),
        ("deepseek_r1", "", "5?\n</think>\n\n22", "22", "<think>\n5?\n</think>\n\n22"),
        ("deepseek_r1", "", "5?", "", "<think>\n5?"),  # its template opens the thinking
        ("deepseek_r1", "So", " 22", " 22", " 22"),
    ],
)
def test_the_message_lacks_the_thinking_and_the_tokens_are_complete(
    model: str, prefix: str, generated: str, visible: str, kept: str
) -> None:
    loaded = chat_model(model)
    observation = {"messages": ({"role": "user", "name": "task", "content": "7+4="},), "reply_prefix": prefix}
    ids = tuple(loaded.tokenizer(generated, add_special_tokens=False)["input_ids"])
    for keep, text in ((False, visible), (True, kept)):
        sampler = EngineSampler(Says(ids, Sampling()), loaded, None, ChatSettings(keep_thinking=keep))
        (reply,) = sampler([Request(0, 0, "a_0", 0, 0, observation)])
        assert isinstance(reply, Reply) and reply.text == text
        assert reply.data.action_ids == ids and sampler.generated_tokens == len(ids)
        turns = padded_turns([reply.data], [(0, 0)], 0)  # the words are those of the trained tokens
        assert turns.words.tolist() == [len(generated.split())]


def test_a_template_gets_enable_thinking_from_the_settings() -> None:
    loaded = chat_model("qwen3")
    prompts = {}
    for thinks in (False, True):
        sampler = replace(reader(loaded), chat=ChatSettings(enable_thinking=thinks))
        observation = {"messages": ({"role": "user", "name": "task", "content": "7+4="},), "reply_prefix": ""}
        prompts[thinks] = loaded.tokenizer.decode(sampler.prompt(observation))
    assert prompts[False] == prompts[True] + "<think>\n\n</think>\n\n"


def test_thinking_tags_that_are_special_tokens_are_seen() -> None:
    tokenizer = byte_level(None, ("", "</s>")).tokenizer
    tokenizer.add_tokens([AddedToken(text, special=True) for text in ("<think>", "</think>")])
    ids = tokenizer("<think>5</think>22</s>", add_special_tokens=False)["input_ids"]
    assert visible_text(action_text(tokenizer, [], ids)) == "22"
