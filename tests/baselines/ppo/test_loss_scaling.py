"""Loss scaling for fp16 base models."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from baselines.ladder import arm
from baselines.policies.micro_batches import MicroBatches, PassLimits
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.ppo.actor import Actor, AgentData
from tests.baselines.turns import turns_of

CONFIG = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=64,
)  # fmt: skip
TURNS, PROMPT, REPLY = 8, 5, 4


def actor_of(dtype, temperature=1.0):
    with torch.random.fork_rng():
        torch.manual_seed(0)  # noqa: TID251 - transformers initialises from the global generator, forked here
        base = AutoModelForCausalLM.from_config(CONFIG).to(dtype).eval()
    base.requires_grad_(False)
    policy = SharedBasePolicy(base, ["one"], LoraSettings(), 0)
    config = arm("ippo").with_settings({"kl_coefficient": 0.0, "max_grad_norm": 1e6, "epochs": 1, "minibatches": 1})
    passes = MicroBatches(PassLimits(turns=3))
    return Actor(policy, config, temperature=temperature, passes=passes, generator=torch.Generator().manual_seed(0))


def data_of(actor, advantage=1.0):
    """Return turns of random tokens, of which every second one has the negative advantage."""
    generator = torch.Generator().manual_seed(2)
    turns = turns_of(torch.randint(64, (TURNS, PROMPT + REPLY), generator=generator).tolist(), REPLY)
    old = actor.token_logprobs("one", turns)
    signs = torch.tensor([1.0, -1.0]).repeat(TURNS // 2).unsqueeze(-1)
    return AgentData(
        turns=turns,
        old_tokens=old,
        reference=old,
        decisions=torch.ones(TURNS, 1, dtype=torch.bool),
        old=actor.decision_logprobs(old, turns),
        advantage=advantage * signs,
        factor=torch.ones(TURNS),
        agent=torch.zeros(TURNS, dtype=torch.long),
    )


def gradient(actor, data):
    """Return the gradient of the only adapter as an optimiser step uses it."""
    with actor.policy.use("one"):
        actor._accumulate("one", data, torch.arange(TURNS))
    actor.scalers["one"].unscale_(actor.optimizers["one"])
    return torch.cat([p.grad.flatten() for p in actor.policy.adapter_parameters("one")])


def test_a_gradient_that_underflows_in_fp16_survives_with_loss_scaling():
    # fp16 has no number between 0 and 6e-8. With advantages of 1e-5 most of the gradients on the way are smaller.
    exact = gradient(actor := actor_of(torch.float32), data_of(actor, 1e-5))
    scaled = gradient(actor := actor_of(torch.float16), data_of(actor, 1e-5))
    actor = actor_of(torch.float16)
    actor.scalers["one"] = torch.amp.GradScaler("cpu", enabled=False)
    unscaled = gradient(actor, data_of(actor, 1e-5))
    assert exact.norm() > 0
    assert float((scaled - exact).norm() / exact.norm()) < 0.02
    assert float((unscaled - exact).norm() / exact.norm()) > 0.2


def test_only_fp16_bases_scale_the_loss():
    enabled = {
        dtype: actor_of(dtype).scalers["one"].is_enabled() for dtype in (torch.float16, torch.bfloat16, torch.float32)
    }
    assert enabled == {torch.float16: True, torch.bfloat16: False, torch.float32: False}


def test_an_overflow_skips_the_step_halves_the_scale_and_is_no_bad_step():
    actor = actor_of(torch.float16)
    actor.scalers["one"] = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    before = [p.detach().clone() for p in actor.policy.adapter_parameters("one")]
    metrics = actor.train("one", data_of(actor))
    assert metrics["steps"] == 0 and actor.counts["overflow_steps"] == 1 and actor.counts["bad_steps"] == 0
    assert actor.scalers["one"].get_scale() == 2.0**39
    assert all(torch.equal(p, b) for p, b in zip(actor.policy.adapter_parameters("one"), before, strict=True))


def test_a_loss_that_is_not_finite_is_a_bad_step_and_no_overflow():
    actor = actor_of(torch.float16)
    actor.train("one", data_of(actor, math.inf))
    assert actor.counts["bad_steps"] == 1 and actor.counts["overflow_steps"] == 0


def test_the_scale_is_in_the_checkpoint():
    actor, other = actor_of(torch.float16), actor_of(torch.float16)
    actor.scalers["one"] = torch.amp.GradScaler("cpu", init_scale=1024.0)
    actor.train("one", data_of(actor))
    other.load_state_dict(actor.state_dict())
    assert other.scalers["one"].get_scale() == 1024.0
    assert other.counts["optimiser_steps"] == 1


def test_a_checkpoint_moves_between_an_fp16_base_and_an_fp32_one():
    """A base in fp16 is loaded in fp32 on a CPU, so a run that changes the device may change it."""
    half, full = actor_of(torch.float16), actor_of(torch.float32)
    scale = half.scalers["one"].get_scale()
    half.load_state_dict(full.state_dict())
    full.load_state_dict(half.state_dict())
    assert half.scalers["one"].get_scale() == scale and not full.scalers["one"].is_enabled()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_an_update_trains_on_every_dtype(dtype):
    actor = actor_of(dtype)
    metrics = actor.train("one", data_of(actor))
    assert metrics["steps"] == 1 and metrics["grad_norm"] > 0
