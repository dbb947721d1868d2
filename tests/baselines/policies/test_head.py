"""Whether a model's logits are those of its linear layer alone, in the types that models are stored in."""

from __future__ import annotations

import pytest
import torch

from baselines.policies.head import head_is_plain
from tests.baselines.models.architectures import make_model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("name", "plain"), [("llama", True), ("gemma2", False), ("granite", False)])
@pytest.mark.parametrize("scale", [1, 100])
def test_a_plain_head_is_recognized_in_every_type(dtype: torch.dtype, name: str, plain: bool, scale: float) -> None:
    """Large hidden states, as real models have them, must not exceed the largest number of float16."""
    model = make_model(name).to(dtype)
    with torch.no_grad():
        model.model.norm.weight.mul_(scale)
    assert head_is_plain(model) == plain
