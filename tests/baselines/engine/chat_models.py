"""Stand-ins for chat models: a template of tests/data/chat_templates and a byte-level tokenizer with its tokens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tokenizers import AddedToken, Tokenizer, pre_tokenizers
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from baselines.engine.protocol import Sampling
from baselines.engine.sampler import EngineSampler
from baselines.models.load import LoadedModel

TEMPLATES = Path(__file__).parents[2] / "data" / "chat_templates"
# Special tokens: BOS ("" for none), EOS, others. Mistral's first format has no token for [INST].
SPECIAL = {
    "qwen2.5": ("", "<|im_end|>", "<|endoftext|>", "<|im_start|>"),
    "qwen3": ("", "<|im_end|>", "<|endoftext|>", "<|im_start|>"),
    "smollm2": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "llama3": ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"),
    "gemma2": ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
    "gemma3": ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
    "mistral": ("<s>", "</s>"),
    "mistral_v3": ("<s>", "</s>", "[INST]", "[/INST]"),
    "mistral_small": ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "phi3": ("<s>", "<|endoftext|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"),
    "deepseek_r1": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
}
ADDED = {  # added tokens that are not special
    "qwen3": ("<think>", "</think>", "<tool_call>"),
    "deepseek_r1": ("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"),
    "gemma3": ("\n\n", "<table>"),
}


@cache
def chat_model(name: str) -> LoadedModel:
    """Return a model with the template and the control tokens of a format."""
    template = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    return byte_level(template, SPECIAL[name], ADDED.get(name, ()), name)


def byte_level(
    template: str | None, special: tuple[str, ...] = (), added: tuple[str, ...] = (), name: str = "bytes"
) -> LoadedModel:
    """Return a stand-in for a chat model with one token per byte, so that decode shows the prompt exactly."""
    alphabet = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(BPE(alphabet, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = ByteLevel()
    names = {"bos_token": special[0] or None, "eos_token": special[1]} if special else {}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=template, **names)
    tokenizer.add_tokens([AddedToken(text, special=True, normalized=False) for text in special if text])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added])
    return LoadedModel(None, tokenizer, name, "local", "", names_in_template=False)


def reader(loaded: LoadedModel, max_prompt_tokens: int = 4096) -> EngineSampler:
    """Return a sampler that makes prompts and generates nothing."""
    engine: Any = SimpleNamespace(sampling=Sampling(), prompt_limit=max_prompt_tokens)
    return EngineSampler(engine, loaded, None)


def control_ids(loaded: LoadedModel, ids: list[int]) -> list[str]:
    """Return the added tokens among the ids, without white space and HTML tags, in their order."""
    added = loaded.tokenizer.added_tokens_decoder
    found = [str(added[i].content) for i in ids if i in added]
    return [text for text in found if text.strip() and text != "<table>"]
