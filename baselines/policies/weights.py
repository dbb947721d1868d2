"""What of a base is trained: an adapter for each name, or a full copy. The base itself never moves: it is pi_0."""

from __future__ import annotations

import contextlib
import copy
import json
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils.save_and_load import get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor, nn

from baselines.field_types import check_field_types

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MODEL_CONFIG, MODEL_WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True)
class LoraSettings:
    """rank r and alpha of every adapter (W + alpha / r B A, Hu et al. 2021, arXiv 2106.09685); all linear layers."""

    rank: int = 8
    alpha: int = 16

    def __post_init__(self) -> None:
        check_field_types(self)
        for name in ("rank", "alpha"):
            if getattr(self, name) < 1:
                raise ValueError(f"LoraSettings {name}={getattr(self, name)!r}: expected at least 1")


class LoraWeights(nn.Module):
    """One LoRA adapter per name on a frozen base, B = 0 at first. Saved in peft's own format: folders that
    ``peft.PeftModel.from_pretrained(base, folder)`` loads, and hubs take.

    Adapter weights are fp32 whatever the base's type. trained: the names whose parameters require a gradient. seed: for
    the adapters' A matrices.
    """

    def __init__(
        self, base: nn.Module, names: Sequence[str], trained: Collection[str], lora: LoraSettings, seed: int
    ) -> None:
        super().__init__()
        self.trained = frozenset(trained)
        config = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # peft 0.21 still reads it
            torch.manual_seed(seed)  # noqa: TID251 - peft initialises from the global generator, forked here
            first, *others = names
            self.model = get_peft_model(base, config, adapter_name=first)
            for adapter in others:
                self.model.add_adapter(adapter, config)
        self.model.eval()
        if next(self.causal_lm.get_output_embeddings().parameters()).dtype != torch.float32:
            for (
                module
            ) in self.model.modules():  # ``SharedBasePolicy.use`` casts the weights, so peft need not cast inputs
                if isinstance(module, BaseTunerLayer):
                    module.cast_input_dtype_enabled = False
        parts = [(name.split("."), p) for name, p in self.model.named_parameters()]  # ....lora_A.NAME.weight
        self._parameters_of = {
            name: [p for words, p in parts if words[-3].startswith("lora_") and words[-2] == name] for name in names
        }
        self._restore_gradients()

    def _restore_gradients(self) -> None:
        """peft's ``set_adapter`` and ``disable_adapter`` freeze the other adapters and thaw the active one: undo that,
        always."""
        for name, parameters in self._parameters_of.items():
            for p in parameters:
                p.requires_grad_(name in self.trained)

    @property
    def causal_lm(self) -> Any:
        """The model that acts now."""
        return self.model.get_base_model()

    def parameters_of(self, name: str) -> list[nn.Parameter]:
        """One adapter's parameters."""
        return self._parameters_of[name]

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Within the block the adapter acts; the bare base when it is None."""
        if name is None:
            with self.model.disable_adapter():
                yield
        else:
            self.model.set_adapter(name)
            self._restore_gradients()
            yield
        self._restore_gradients()

    def files(self, name: str, base_name: str) -> dict[str, bytes]:
        """File name to content. base_name: what the config calls the base; a path of this machine would help nobody."""
        config = copy.deepcopy(self.model.peft_config[name])
        config.base_model_name_or_path, config.inference_mode = base_name, True
        table = {k: sorted(v) if isinstance(v, set) else v for k, v in config.to_dict().items()}
        state = get_peft_model_state_dict(self.model, adapter_name=name, save_embedding_layers=False)
        return {CONFIG: json.dumps(table, indent=2, sort_keys=True).encode(), WEIGHTS: _bytes(state)}

    def load(self, name: str, folder: Path) -> None:
        """Put the folder's weights into the adapter. ValueError where they are not of its shape."""
        state = safetensors.torch.load_file(folder / WEIGHTS)
        expected = get_peft_model_state_dict(self.model, adapter_name=name, save_embedding_layers=False)
        _check_shapes(folder, state, expected, "an adapter of the same base and rank")
        set_peft_model_state_dict(self.model, state, adapter_name=name)


class FullWeights(nn.Module):
    """Full fine-tuning: a copy of the whole base per trained name, in fp32, beside the frozen base. Saved as folders
    that ``AutoModelForCausalLM.from_pretrained`` loads.

    Memory, for P parameters of the base: P of the base in its own type, and for each trained name 4 P bytes of weights,
    4 P of gradients while it is updated, and 8 P of Adam's moments. Names that are not trained act as the base. Beside
    a base of 16 bits a copy carries its residual stream in fp32, so it begins as the base up to rounding.
    """

    def __init__(self, base: nn.Module, names: Sequence[str], trained: Collection[str]) -> None:
        super().__init__()
        self.base = base
        self.copies = nn.ModuleDict({n: copy.deepcopy(base).float().requires_grad_() for n in names if n in trained})
        self.eval()
        self._acting: nn.Module = base

    @property
    def causal_lm(self) -> Any:
        """The model that acts now."""
        return self._acting

    def parameters_of(self, name: str) -> list[nn.Parameter]:
        """The copy's parameters; none where the name is not trained."""
        return list(self.copies[name].parameters()) if name in self.copies else []

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Within the block the copy acts; the base when the name is None or not trained."""
        acting = self.copies[name] if name is not None and name in self.copies else self.base
        before, self._acting = self._acting, acting
        try:
            yield
        finally:
            self._acting = before

    def files(self, name: str, base_name: str) -> dict[str, bytes]:
        """File name to content; {} where the name is not trained. base_name: in the config, see ``LoraWeights``."""
        if name not in self.copies:
            return {}
        model: Any = self.copies[name]
        table = {**model.config.to_dict(), "_name_or_path": base_name, "dtype": "float32"}
        state = dict(model.named_parameters())  # tied weights are there once, as transformers saves them
        return {MODEL_CONFIG: json.dumps(table, indent=2, sort_keys=True).encode(), MODEL_WEIGHTS: _bytes(state)}

    def load(self, name: str, folder: Path) -> None:
        """Put the folder's weights into the copy. ValueError where they are not of its shape."""
        if name not in self.copies:
            return
        state, own = safetensors.torch.load_file(folder / MODEL_WEIGHTS), dict(self.copies[name].named_parameters())
        _check_shapes(folder, state, own, "a model of the same shape")
        with torch.no_grad():
            for key, parameter in own.items():
                parameter.copy_(state[key])


Weights = LoraWeights | FullWeights


def _bytes(state: dict[str, Tensor]) -> bytes:
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in state.items()}
    return safetensors.torch.save(tensors, {"format": "pt"})


def _check_shapes(folder: Path, found: dict[str, Tensor], expected: dict[str, Any], what: str) -> None:
    shapes, wanted = ({k: tuple(v.shape) for k, v in table.items()} for table in (found, expected))
    if shapes != wanted:
        odd = sorted(k for k in {*shapes, *wanted} if shapes.get(k) != wanted.get(k))
        raise ValueError(
            f"adapter {folder}: {odd[0]} has shape {shapes.get(odd[0])}, the model's is {wanted.get(odd[0])}; "
            f"expected {what} ({len(odd)} tensors differ)"
        )
