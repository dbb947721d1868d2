"""The update runs on a device that is not the CPU: no tensor is left behind, and the numbers are those of the CPU."""

import io

import pytest
import torch

from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.functional import advantages, losses, ratios
from baselines.ladder import arm
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.ppo.learner import Learner
from tests.baselines.engine.generate import activated_generate
from tests.second_device import StrayTensor, second_device

CPU = torch.device("cpu")


def test_a_stray_tensor_is_an_error():
    with second_device() as device, pytest.raises(StrayTensor, match=r"\(3,\)"):
        torch.ones(3, device=device) + torch.ones(3)


def pure_functions(device):
    """Return what every pure function gives on a device, each after a backward pass where it has a gradient."""
    g = torch.Generator().manual_seed(0)
    floats = lambda *shape: torch.rand(*shape, generator=g).to(device)  # noqa: E731
    mask = (torch.rand(4, 3, generator=g) > 0.2).to(device)
    agent, words = torch.tensor([0, 1, 0, 1]).to(device), torch.tensor([1, 2, 3, 4]).to(device)
    score, group = floats(4), torch.tensor([0, 0, 1, 1]).to(device)
    ended = torch.tensor([False, False, True]).expand(4, 3).to(device)
    logprob, ratio = floats(4, 3).requires_grad_(), floats(4, 3).requires_grad_()
    weights = losses.loss_weights(mask, agent, "agent_balanced")
    discounts = advantages.Discounts(0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    gae = advantages.token_gae(floats(4, 3), floats(4, 3), mask | ended, ended, ended, ended, floats(4, 3), discounts)
    found = [
        *gae,
        advantages.whiten(gae[0], mask),
        *advantages.group_advantages(score, group),
        advantages.maporl_returns(floats(2, 3, 2), 0.5),
        weights,
        *losses.clipped_policy_loss(ratio, floats(4, 3), 0.2, floats(4, 3), weights),
        losses.clipped_value_loss(floats(4), floats(4), floats(4), 0.2),
        losses.bce_value_loss(floats(4), floats(4)),
        ratios.effective_sample_size(floats(4)),
        ratios.step_monitor(ratio),
        ratios.compound(floats(4), floats(4), floats(4), (0.5, 2.0)),
        *(losses.kl_to_reference(logprob, floats(4, 3), mask, kind) for kind in ("k1", "k2", "k3")),
        *(ratios.action_logprob(logprob, mask, kind, words) for kind in ("sum", "token", "word")),
    ]
    sum(x.sum() for x in found if x.requires_grad).backward()
    numbers = [losses.explained_variance(floats(4), score), losses.explained_variance_ceiling(group, score)]
    return [x.detach().cpu() for x in (*found, logprob.grad, ratio.grad)], numbers


def test_pure_functions_compute_on_the_device_of_their_inputs():
    expected, expected_numbers = pure_functions(CPU)
    with second_device() as device:
        found, numbers = pure_functions(device)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert numbers == expected_numbers


@pytest.fixture(scope="module")
def team(make_setup):
    """A duo with a batch of eight episodes: every operation on the second device runs in Python."""
    return make_setup(episodes=8)


@pytest.fixture(scope="module")
def activated(make_setup):
    """The same with activated adapters."""
    return make_setup(episodes=8, lora=LoraSettings(activated=True, invocation="="))


def fresh_policy(setup, device):
    """Return the model and the policies of a fresh team, with the adapters' settings of another, on a device."""
    loaded, ids = setup.fresh_model(), setup.policy.invocation_ids
    lora = LoraSettings(activated=bool(ids))
    return loaded, SharedBasePolicy(loaded.model.to(device), setup.policy.agents, lora, 0, invocation_ids=ids)


def update(setup, device, config):
    """Return metrics, weights and learner after the update of a fresh team on a device."""
    _, policy = fresh_policy(setup, device)
    learner = Learner(policy, config, temperature=0.7, seed=3)
    metrics = learner.update(setup.batch.to(device))
    weights = {a: [p.detach().cpu() for p in policy.adapter_parameters(a)] for a in policy.agents}
    return {**metrics, "seconds": 0}, weights, learner


def flat(metrics, path=""):
    """Return the numbers of nested metrics by path; attention on another device sums in another order."""
    if not isinstance(metrics, dict | list):
        return {path: metrics}
    items = metrics.items() if isinstance(metrics, dict) else enumerate(metrics)
    return {k: v for name, value in items for k, v in flat(value, f"{path}.{name}").items()}


SETTINGS = {"learning_rate": 1e-3, "entropy_coefficient": 0.01, "minibatches": 2}
CASES = {
    "ippo": {"kl_placement": "reward"},
    "mappo": {"critic_network": "head", "value_loss": "huber"},
    "marft": {"critic_network": "transformer", "order": "permuted"},
    "marft_token": {},
}


@pytest.mark.parametrize(
    "name", ["marft_token", *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name != "marft_token")]
)
def test_an_update_gives_the_numbers_of_the_cpu(team, name):
    check_update(team, arm(name).with_settings({**SETTINGS, **CASES[name]}))


def test_an_update_with_activated_adapters_gives_the_numbers_of_the_cpu(activated):
    check_update(activated, arm("marft").with_settings(SETTINGS))


def check_update(team, config):
    expected, expected_weights, _ = update(team, CPU, config)
    with second_device() as device:
        metrics, weights, _ = update(team, device, config)
    assert flat(metrics) == pytest.approx(flat(expected), rel=1e-3, abs=1e-5, nan_ok=True)
    # A step of Adam may move a weight whose gradient is near 0 by another part of the learning rate, 1e-3.
    torch.testing.assert_close(weights, expected_weights, rtol=1e-3, atol=3e-4)


@pytest.mark.slow
def test_a_checkpoint_moves_between_devices(team):
    """A run that is resumed on another device makes the update that it would have made."""
    config = arm("marft").with_settings(SETTINGS)
    _, _, learner = update(team, CPU, config)
    file = io.BytesIO()
    torch.save(learner.state_dict(), file)
    with second_device() as device:
        _, _, moved = update(team, device, config)
        moved.load_state_dict(torch.load(io.BytesIO(file.getvalue()), map_location="cpu", weights_only=True))
        found = moved.update(team.batch.to(device))
    expected = learner.update(team.batch)
    assert flat({**found, "seconds": 0}) == pytest.approx(flat({**expected, "seconds": 0}), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("name", ["team", "activated"])
def test_generation_gives_the_tokens_of_the_cpu(name, request):
    team = request.getfixturevalue(name)
    prompts = [[5, 6, 7], [8], [5, 6, 7, 8, 9]]
    prompts = [[*prompt, *team.policy.invocation_ids] for prompt in prompts]
    uniforms = torch.rand(3, 6, generator=torch.Generator().manual_seed(0)).numpy()

    def generations(device):
        loaded, policy = fresh_policy(team, device)
        engine = TorchEngine(policy, loaded.tokenizer, Decoding(max_new_tokens=6, temperature=0.7))
        return [g for chosen in (uniforms, None) for g in activated_generate(engine, "actor_0", prompts, chosen)]

    with second_device() as device:
        found = generations(device)
    for other, own in zip(found, generations(CPU), strict=True):
        assert other.token_ids == own.token_ids
        assert other.logprobs == pytest.approx(own.logprobs, abs=1e-5)
