"""Scores of the training path, against probabilities that are known exactly, at a temperature that is not 1."""

import pytest
import torch

from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.engine.generate import generate
from tests.baselines.ppo.bigram import HALF, A, B, C, bigram_policy, duo_batch, entropy, one_turn


def scores(policy, agent, turns, temperature):
    with torch.no_grad(), policy.use(agent):
        return policy.scores(turns, temperature)


def test_the_log_probability_of_a_token_is_read_at_the_position_before_it():
    """At temperature 1, after A the table is (1, 2, 3, 2) / 8, after B (1, 1, 2, 4) / 8, after C (4, 1, 1, 2) / 8."""
    turns = duo_batch(1, actions=[(B, C, 0)]).turns["a_0"]
    torch.testing.assert_close(
        scores(bigram_policy(), "a_0", turns, 1.0).logprobs, torch.tensor([[3 / 8, 4 / 8, 4 / 8]]).log(), rtol=0,
        atol=1e-5, msg=lambda text: f"the training path reads a token's log-probability at another position\n{text}",
    )  # fmt: skip


def test_log_probabilities_entropy_and_gap_are_those_at_the_temperature():
    """After A the squared table is (1, 4, 9, 4) / 18, after B (1, 1, 4, 16) / 22, after C (16, 1, 1, 4) / 22.

    The action B, C, EOS has probability 9/18, 16/22 and 16/22, and A, B, C has 4/18, 9/18 and 16/22.
    """
    turns = duo_batch(1, actions=[(B, C, 0), (A, B, C)]).turns
    expected = {"a_0": [9 / 18, 16 / 22, 16 / 22], "b_0": [4 / 18, 9 / 18, 16 / 22]}
    gaps = {"a_0": [1.0, 1.0, 1.0], "b_0": [9 / 4, 1.0, 1.0]}
    lasts = {"a_0": (A, B, C), "b_0": (A, A, B)}
    policy = bigram_policy()
    for agent, part in turns.items():
        found = scores(policy, agent, part, HALF)
        for name, value in {
            "log-probabilities": (found.logprobs, torch.tensor([expected[agent]]).log()),
            "entropies": (found.entropy, torch.tensor([[entropy(last) for last in lasts[agent]]])),
            "distances from the mode": (found.gap, torch.tensor([gaps[agent]]).log()),
        }.items():
            cause = f"the temperature is missing in the training path's {name}"
            torch.testing.assert_close(*value, rtol=0, atol=1e-5, msg=lambda text, cause=cause: f"{cause}\n{text}")


@pytest.mark.parametrize(("rank", "alpha"), [(2, 6), (4, 1), (8, 16)])
def test_an_adapter_adds_alpha_over_rank_times_b_a_to_its_layer(rank, alpha):
    """The scores of an adapter are those of a plain model with the weights W + (alpha / rank) B A."""
    policy = SharedBasePolicy(load_model("tiny").model, ["a_0", "b_0"], LoraSettings(rank, alpha), 0)
    plain, merged = load_model("tiny").model, 0
    generator = torch.Generator().manual_seed(1)
    for p in policy.adapter_parameters("b_0"):
        p.data.normal_(std=0.1, generator=generator)
    named = dict(policy.named_parameters())
    for name, first in named.items():
        if ".lora_A.b_0." in name:
            second = named[name.replace("lora_A", "lora_B")]
            layer = plain.get_submodule(name.split("base_model.model.")[-1].split(".lora_A")[0])
            layer.weight.data += alpha / rank * (second @ first).detach()
            merged += 1
    assert merged == 21, "three layers of seven linear maps"
    prompt = [10, 13, 7, 17]
    action = greedy(plain, prompt, 3)
    with torch.no_grad():
        logits = plain(torch.tensor([[*prompt, *action]])).logits[0, 3:-1] / HALF
    expected = logits.log_softmax(-1).gather(-1, torch.tensor(action).unsqueeze(-1)).squeeze(-1)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=3, temperature=HALF))
    (found,) = generate(engine, "b_0", [prompt])
    cause = f"LoRA's alpha={alpha} at rank={rank} is not what scales the adapter"
    assert list(found.token_ids) == action, cause
    torch.testing.assert_close(
        torch.tensor(found.logprobs), expected, rtol=0, atol=1e-4, msg=lambda text: f"{cause}, sampling\n{text}"
    )
    torch.testing.assert_close(
        scores(policy, "b_0", one_turn(prompt, action), HALF).logprobs[0], expected, rtol=0, atol=1e-4,
        msg=lambda text: f"{cause}, training\n{text}",
    )  # fmt: skip


def greedy(model, prompt, count):
    """Return the ``count`` most likely tokens, or fewer if the tiny model's end token 1 is among them."""
    ids = list(prompt)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == 1:
            break
    return ids[len(prompt) :]
