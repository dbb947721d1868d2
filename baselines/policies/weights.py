"""Trained weights on a frozen base model: a LoRA adapter, or a full copy, for each name. The base model is pi_0."""

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
    """Shape of the LoRA adapters, which are added to all linear layers that can have one: W + (alpha / rank) B A.

    An activated adapter acts from the header of the reply on, which the chat template writes at the end of the prompt
    (``<|im_start|>assistant``): these *invocation tokens*, the beginning of the reply and the action. What comes before
    them is read by the frozen base alone, so its keys and values are the same for all agents, all epochs and pi_0.

    Sources: Hu et al. 2021, https://arxiv.org/abs/2106.09685; Li et al. 2025, serving with Activated LoRA,
    https://arxiv.org/abs/2512.17910.

    Attributes:
        rank: Rank of B A, at least 1.
        alpha: Scale of B A, at least 1.
        activated: Whether the adapters are activated LoRA.
        invocation: The text that activates the adapters where it occurs last in a prompt. "": the header of the reply
            in the chat template.

    Raises:
        ValueError: If rank or alpha is not an integer of at least 1, or there is an invocation and the adapters are not
            activated.
    """

    rank: int = 8
    alpha: int = 16
    activated: bool = False
    invocation: str = ""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name in ("rank", "alpha"):
            if getattr(self, name) < 1:
                raise ValueError(f"LoraSettings {name}={getattr(self, name)!r}: expected at least 1")
        if self.invocation and not self.activated:
            raise ValueError(f"LoraSettings invocation={self.invocation!r}: expected activated=True with it")


class LoraWeights(nn.Module):
    """One LoRA adapter per name on a frozen base model.

    B is 0 at first, so every adapter starts as the base model. Adapter weights are fp32 for every dtype of the base
    model. Adapters are saved as folders that ``peft.PeftModel.from_pretrained(base, folder)`` loads.

    Args:
        base: The base model.
        names: Names of the adapters.
        trained: The names whose parameters require a gradient.
        lora: Rank and alpha.
        seed: Seed of the adapters' A matrices.
        invocation_ids: Token ids that activate the adapters, for their configuration; empty if they are always active.
    """

    def __init__(
        self,
        base: nn.Module,
        names: Sequence[str],
        trained: Collection[str],
        lora: LoraSettings,
        seed: int,
        invocation_ids: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.trained = frozenset(trained)
        self._invocation_ids = list(invocation_ids) or None
        config = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            target_modules="all-linear",
            exclude_modules=_bypassed(base) or None,
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # raised inside peft 0.21
            torch.default_generator.manual_seed(seed)  # peft draws initial weights from it, on the CPU
            first, *others = names
            self.model = get_peft_model(base, config, adapter_name=first)
            for adapter in others:
                self.model.add_adapter(adapter, config)
        self.model.eval()
        if next(self.causal_lm.get_output_embeddings().parameters()).dtype != torch.float32:
            # SharedBasePolicy.use casts the weights, so peft must not cast the inputs.
            for module in self.model.modules():
                if isinstance(module, BaseTunerLayer):
                    module.cast_input_dtype_enabled = False
        # Parameter names end in lora_A.NAME.weight. Searching for NAME anywhere would also find parts of the model's
        # own names, such as "layers".
        paths = [(name.split("."), p) for name, p in self.model.named_parameters()]
        self._parameters_of = {
            name: [p for path, p in paths if path[-3].startswith("lora_") and path[-2] == name] for name in names
        }
        self._restore_gradients()

    def _restore_gradients(self) -> None:
        """Restore ``requires_grad`` of all adapters.

        peft's ``set_adapter`` and ``disable_adapter`` change it: the active adapter requires a gradient, the others
        not.
        """
        for name, parameters in self._parameters_of.items():
            for p in parameters:
                p.requires_grad_(name in self.trained)

    @property
    def causal_lm(self) -> Any:
        """The active model."""
        return self.model.get_base_model()

    def parameters_of(self, name: str) -> list[nn.Parameter]:
        """Return the parameters of one adapter."""
        return self._parameters_of[name]

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Activate an adapter within the block, or the base model alone if the name is None."""
        try:
            if name is None:
                with self.model.disable_adapter():
                    yield
            else:
                self.model.set_adapter(name)
                self._restore_gradients()
                yield
        finally:
            self._restore_gradients()

    def files(self, name: str, base_name: str) -> dict[str, bytes]:
        """Return the files of a saved adapter, file name -> content.

        Args:
            name: Name of the adapter.
            base_name: Name of the base model in the adapter's config, in place of a path on this machine.
        """
        config = copy.deepcopy(self.model.peft_config[name])
        config.base_model_name_or_path, config.inference_mode = base_name, True
        # Here the adapters are plain layers of peft, which act on every token of a pass. peft itself needs the ids.
        config.alora_invocation_tokens = self._invocation_ids
        # A set has no order: sorted, the file is the same in every process.
        settings = {k: sorted(v) if isinstance(v, set) else v for k, v in config.to_dict().items()}
        state = get_peft_model_state_dict(self.model, adapter_name=name, save_embedding_layers=False)
        return {CONFIG: json.dumps(settings, indent=2, sort_keys=True).encode(), WEIGHTS: _bytes(state)}

    def load(self, name: str, folder: Path) -> None:
        """Load an adapter's weights from a folder. Raise ValueError if their shapes differ from the adapter's."""
        state = safetensors.torch.load_file(folder / WEIGHTS)
        expected = get_peft_model_state_dict(self.model, adapter_name=name, save_embedding_layers=False)
        _check_shapes(folder, state, expected, "an adapter of the same base and rank")
        set_peft_model_state_dict(self.model, state, adapter_name=name)


class FullWeights(nn.Module):
    """Full fine-tuning: an fp32 copy of the whole base model per trained name, beside the frozen base model.

    Names that are not trained act as the base model. Copies are saved as folders that
    ``AutoModelForCausalLM.from_pretrained`` loads.

    Memory for a base model of P parameters: the base model itself, and for each trained name 4 P bytes of weights, 4 P
    bytes of gradients during its update, and 8 P bytes of Adam's moments. Beside a 16-bit base model a copy has its
    residual stream in fp32, so it starts as the base model up to rounding.

    Args:
        base: The base model.
        names: Names of the policies.
        trained: The names that get a copy.
    """

    def __init__(self, base: nn.Module, names: Sequence[str], trained: Collection[str]) -> None:
        super().__init__()
        self.base = base
        self.copies = nn.ModuleDict({n: copy.deepcopy(base).float().requires_grad_() for n in names if n in trained})
        self.eval()
        self._active: nn.Module = base

    @property
    def causal_lm(self) -> Any:
        """The active model."""
        return self._active

    def parameters_of(self, name: str) -> list[nn.Parameter]:
        """Return the parameters of a copy; an empty list if the name is not trained."""
        return list(self.copies[name].parameters()) if name in self.copies else []

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Activate a copy within the block, or the base model if the name is None or not trained."""
        active = self.copies[name] if name is not None and name in self.copies else self.base
        before, self._active = self._active, active
        try:
            yield
        finally:
            self._active = before

    def files(self, name: str, base_name: str) -> dict[str, bytes]:
        """Return the files of a saved copy, file name -> content; {} if the name is not trained.

        Args:
            name: Name of the copy.
            base_name: Name of the base model in the config, in place of a path on this machine.
        """
        if name not in self.copies:
            return {}
        model: Any = self.copies[name]
        settings = {**model.config.to_dict(), "_name_or_path": base_name, "dtype": "float32"}
        state = dict(model.named_parameters())  # lists tied weights once, as transformers saves them
        return {MODEL_CONFIG: json.dumps(settings, indent=2, sort_keys=True).encode(), MODEL_WEIGHTS: _bytes(state)}

    def load(self, name: str, folder: Path) -> None:
        """Load a copy's weights from a folder. Raise ValueError if their shapes differ from the copy's."""
        if name not in self.copies:
            return
        state, own = safetensors.torch.load_file(folder / MODEL_WEIGHTS), dict(self.copies[name].named_parameters())
        _check_shapes(folder, state, own, "a model of the same shape")
        with torch.no_grad():
            for key, parameter in own.items():
                parameter.copy_(state[key])


Weights = LoraWeights | FullWeights


def weights_state(weights: Weights, name: str) -> int:
    """Return a number that increases whenever the weights of a name change."""
    # Every change in place, such as an optimiser step, increases the version of a parameter.
    return sum(p._version for p in weights.parameters_of(name))


def _bypassed(base: nn.Module) -> list[str]:
    """Return the names of linear layers whose weights are read without calling the layer, which would skip an adapter.

    These are projections of state-space layers (Mamba, Jamba, Bamba, Falcon-H1, ...), which their kernels read.
    """
    parts, read = ("conv1d", "D", "out_proj"), ("out_proj", "x_proj", "dt_proj")
    mixers = [(name, m) for name, m in base.named_modules() if all(hasattr(m, part) for part in parts)]
    return [f"{name}.{layer}" for name, mixer in mixers for layer in read if hasattr(mixer, layer)]


def _bytes(state: dict[str, Tensor]) -> bytes:
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in state.items()}
    return safetensors.torch.save(tensors, {"format": "pt"})


def _check_shapes(folder: Path, found: dict[str, Tensor], expected: dict[str, Any], what: str) -> None:
    shapes, wanted = ({k: tuple(v.shape) for k, v in tensors.items()} for tensors in (found, expected))
    if shapes != wanted:
        wrong = sorted(k for k in {*shapes, *wanted} if shapes.get(k) != wanted.get(k))
        raise ValueError(
            f"adapter {folder}: {wrong[0]} has shape {shapes.get(wrong[0])}, the model's is {wanted.get(wrong[0])}; "
            f"expected {what} ({len(wrong)} tensors differ)"
        )
