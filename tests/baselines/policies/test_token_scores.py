"""Scores of action tokens: which positions the head reads, in which chunks, on which device, and with what memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from baselines.policies import policy as policy_module
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import AgentTurns, Generation
from tests.baselines.models.architectures import VOCABULARY, make_model, padded_turns

TEMPERATURE = 0.7
ACTIONS = (5, 1, 9, 4)  # tokens of each action


def turns() -> AgentTurns:
    generator = torch.Generator().manual_seed(3)
    ids = [torch.randint(3, VOCABULARY, (12,), generator=generator).tolist() for _ in ACTIONS]
    return padded_turns(
        [
            Generation(tuple(row[: 2 + i]), tuple(row[-count:]), (0.0,) * count, "", False)
            for i, (row, count) in enumerate(zip(ids, ACTIONS, strict=True))
        ]
    )


def policy_of(name: str, lora: LoraSettings | None) -> SharedBasePolicy:
    """Return a policy that differs from the reference."""
    policy = SharedBasePolicy(make_model(name), ("x_0",), lora, 0)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for p in policy.adapter_parameters("x_0"):
            p.add_(0.05 * torch.randn(p.shape, generator=generator))
    return policy


def in_chunks(monkeypatch: pytest.MonkeyPatch, positions: int) -> None:
    monkeypatch.setattr(policy_module, "chunk_positions", lambda vocabulary_size: positions)


def scores_and_gradients(policy: SharedBasePolicy) -> tuple[list[Tensor], list[Tensor]]:
    with policy.use("x_0"):
        scores = policy.scores(turns(), TEMPERATURE)
    # outside of the block: the backward pass must not compute another model's logits again
    parameters = policy.adapter_parameters("x_0")
    loss = (scores.logprobs * torch.arange(9)).sum() - 0.1 * scores.entropy.sum()
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    gradients = [g for g in found if g is not None]
    return [x.detach() for x in scores], gradients


@pytest.mark.parametrize("name", ["llama", "granite"])
@pytest.mark.parametrize("lora", [LoraSettings(2, 4), None], ids=["lora", "full"])
@pytest.mark.parametrize("positions", [1, 4, 18])
def test_scores_and_gradients_do_not_depend_on_the_chunks(monkeypatch, name, lora, positions):
    policy = policy_of(name, lora)
    in_chunks(monkeypatch, 19)  # all at once
    expected, expected_gradients = scores_and_gradients(policy)
    in_chunks(monkeypatch, positions)
    scores, gradients = scores_and_gradients(policy)
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-5)
    assert gradients and any(bool(g.any()) for g in gradients)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-5, atol=1e-4)


def test_a_chunk_has_at_most_64_mib_of_logits():
    for vocabulary in (24, 49_152, 262_144):
        positions = policy_module.chunk_positions(vocabulary)
        assert 4 * vocabulary * positions <= 64 * 2**20 < 4 * vocabulary * (positions + 1)
    assert policy_module.chunk_positions(2**26) == 1


def test_the_head_reads_the_positions_of_action_tokens_once(monkeypatch):
    policy, read = policy_of("llama", LoraSettings(2, 4)), []
    policy.head.register_forward_hook(lambda module, inputs, output: read.append(inputs[0].shape[:-1].numel()))
    with torch.no_grad(), policy.use("x_0"):
        policy.scores(turns(), TEMPERATURE)
    assert read == [sum(ACTIONS)]


def test_the_graph_keeps_hidden_states_but_the_logits_of_no_chunk(monkeypatch):
    """Saved for the backward pass of the head: less than one tensor of logits, with chunks; several, without."""
    saved = {}
    for positions in (4, 19):
        in_chunks(monkeypatch, positions)
        policy, data, sizes = policy_of("llama", LoraSettings(2, 4)), turns(), []
        with policy.use("x_0"):
            hidden = policy.hidden(data)

            def pack(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
                sizes.append(tensor.numel() if tensor.shape[-1] == VOCABULARY else 0)
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                policy.token_scores(hidden, data, TEMPERATURE)
        saved[positions] = sum(sizes)
    assert saved[4] == 0 and saved[19] >= 2 * sum(ACTIONS) * VOCABULARY


def test_turns_without_actions_have_empty_scores():
    policy = policy_of("llama", LoraSettings(2, 4))
    data = padded_turns([Generation((3, 4), (), (), "", False)])
    with policy.use(None):
        scores = policy.scores(data, TEMPERATURE)
    assert all(x.shape == (1, 0) for x in scores)


@pytest.mark.parametrize("name", ["llama", "gpt2", "granite"])
@pytest.mark.parametrize("lora", [LoraSettings(2, 4), None], ids=["lora", "full"])
def test_scores_are_computed_on_the_policys_device(name, lora):
    """On the meta device, an operation with a tensor of another device is an error."""
    model = make_model(name)
    model.set_attn_implementation("eager")
    policy = SharedBasePolicy(model.to("meta"), ("x_0",), lora, 0)
    data = AgentTurns(**{field: getattr(turns(), field).to("meta") for field in AgentTurns.__slots__})
    assert policy.device == torch.device("meta")
    assert {p.device.type for p in policy.parameters()} == {"meta"}
    with policy.use("x_0"):
        scores = policy.scores(data, TEMPERATURE)
        (scores.logprobs.sum() + scores.entropy.sum()).backward()
    assert all(x.device == policy.device and x.shape == data.action_mask.shape for x in scores)
    assert any(p.grad is not None for p in policy.adapter_parameters("x_0"))
