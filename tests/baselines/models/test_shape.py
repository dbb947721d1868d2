"""Shapes of models without their weights."""

import json

import huggingface_hub
import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, MixtralConfig, Qwen2Config, Qwen3Config

from baselines.models.find_shape import find_shape
from baselines.models.load import load_model
from baselines.models.shape import NAMED_SHAPES, shape_of
from baselines.models.sources import ModelNotFound
from baselines.policies.policy import LoraSettings, SharedBasePolicy

SIZES = {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 500}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama, tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=64),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=64),
    "mixtral": MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_number_of_parameters_is_the_models_own(name):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(CONFIGS[name])
    own = sum(p.numel() for p in model.parameters())  # lists tied weights once
    assert shape_of(CONFIGS[name]).parameters == pytest.approx(own, rel=0.005)


@pytest.mark.parametrize(("size", "billions"), [("0.5B", 0.49), ("1.5B", 1.54), ("3B", 3.09), ("7B", 7.61),
                                                ("14B", 14.7), ("32B", 32.5), ("72B", 72.7)])  # fmt: skip
def test_the_named_shapes_have_the_published_sizes(size, billions):
    """Qwen2.5 technical report, https://arxiv.org/abs/2412.15115, and the model cards."""
    assert NAMED_SHAPES[size].parameters / 1e9 == pytest.approx(billions, rel=0.02)


def test_lora_parameters_are_those_that_peft_makes():
    policy = SharedBasePolicy(AutoModelForCausalLM.from_config(CONFIGS["llama"]), ["one"], LoraSettings(rank=4), 0)
    own = sum(p.numel() for p in policy.adapter_parameters("one"))
    assert shape_of(policy.causal_lm.config).lora_parameters(4) == own


def test_a_shape_is_found_without_weights(tmp_path):
    CONFIGS["qwen2"].save_pretrained(tmp_path)  # config.json alone
    shape, dtype = find_shape(str(tmp_path))
    assert shape == shape_of(CONFIGS["qwen2"]) and dtype == torch.float32
    assert find_shape("tiny")[0] == shape_of(load_model("tiny").model.config)
    assert find_shape("7B") == (NAMED_SHAPES["7B"], torch.bfloat16)


def test_the_dtype_is_that_of_the_files_if_the_configuration_has_none(tmp_path):
    AutoModelForCausalLM.from_config(CONFIGS["llama"], dtype=torch.bfloat16).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({k: v for k, v in settings.items() if k not in ("dtype", "torch_dtype")}))
    assert find_shape(str(tmp_path))[1] == torch.bfloat16


@pytest.mark.parametrize(("name", "asked"), [("owner/name", True), ("./name", False), ("folder/of/name", False)])
def test_only_a_hub_name_is_looked_up_on_the_hub(name, asked, monkeypatch):
    calls = []
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda api, *names, **_: calls.append(names) or 1 / 0)
    with pytest.raises(ModelNotFound, match="model="):
        find_shape(name)
    assert calls == [(name,)] * asked


def test_an_unknown_model_is_an_error_with_the_names():
    with pytest.raises(ModelNotFound, match=r"model='9B': expected tiny.* also takes 0.5B, 1.5B"):
        find_shape("9B")


@pytest.mark.parametrize(
    ("name", "size"),
    [("Qwen/Qwen2.5-1.5B-Instruct", "1.5B"), ("Qwen/Qwen2.5-3B", "3B"), ("Qwen/Qwen2.5-Coder-7B-Instruct", "7B")],
)
def test_qwen_is_known_by_its_hub_names_without_the_hub(name, size, monkeypatch):
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: pytest.fail("the hub was asked"))
    assert find_shape(name) == (NAMED_SHAPES[size], torch.bfloat16)
