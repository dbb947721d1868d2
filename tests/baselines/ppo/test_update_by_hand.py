"""Updates of a team whose log-probabilities are known exactly, at temperature 1/2.

A new team equals the reference, so every quantity of the first step follows from the table of the bigram model.
"""

from dataclasses import replace

import pytest
import torch

from baselines.ladder import arm
from baselines.ppo.learner import Learner
from tests.baselines.ppo.bigram import (
    ACTION,
    HALF,
    A,
    B,
    C,
    batch_of,
    bigram_policy,
    duo_batch,
    entropy,
    logprobs,
    zero_weights,
)

ONE_STEP = {"epochs": 1, "minibatches": 1, "advantage_floor": 0.0, "kl_coefficient": 0.0, "learning_rate": 1e-2}


def learner_of(name="ippo", policy=None, **settings):
    config = arm(name).with_settings({**ONE_STEP, **settings})
    return Learner(policy or bigram_policy(), config, temperature=HALF, seed=3)


def shifted(batch, by):
    """Return the batch with other log-probabilities from the sampler."""
    turns = {agent: replace(part, behaviour=part.behaviour + by) for agent, part in batch.turns.items()}
    return replace(batch, turns=turns)


# ---- the temperature


# With the KL in the loss, the first epoch records the old log-probabilities; else they need a pass of their own.
PLACEMENTS = pytest.mark.parametrize("kl_placement", ["loss", "reward"])


@PLACEMENTS
def test_the_old_log_probabilities_are_at_the_sampling_temperature(kl_placement):
    """The sampler's log-probabilities in the batch are exact."""
    for agent, metrics in learner_of(kl_placement=kl_placement).update(duo_batch())["agents"].items():
        assert metrics["sampler_gap"] == pytest.approx(0.0, abs=1e-5), (
            f"{agent}: the temperature is missing in the training path's log-probabilities before the update"
        )


@PLACEMENTS
def test_before_the_first_step_every_ratio_is_one(kl_placement):
    """At temperature 1 the action B, C, EOS has probability 3/8 * 4/8 * 4/8 in place of 9/18 * 16/22 * 16/22."""
    learner = learner_of(normalization="sum", kl_placement=kl_placement)
    for agent, metrics in learner.update(duo_batch())["agents"].items():
        assert metrics["kl_behaviour"] == pytest.approx(0.0, abs=1e-6) and metrics["clip_fraction"] == 0.0, (
            f"{agent}: the temperature of the loss is not that of the old log-probabilities"
        )
        assert metrics["entropy"] == pytest.approx((entropy(A) + entropy(B) + entropy(C)) / 3, abs=1e-5), (
            f"{agent}: the temperature is missing in the entropy bonus"
        )


@PLACEMENTS
def test_the_ratio_does_not_contain_the_samplers_log_probabilities(kl_placement):
    """The sampler's differ by .3 per token here; a ratio to them would be exp(-.9)."""
    learner = learner_of(normalization="sum", kl_placement=kl_placement)
    metrics = learner.update(shifted(duo_batch(), 0.3))["agents"]["a_0"]
    cause = "the old log-probabilities are the sampler's, not those of the training path"
    assert metrics["kl_behaviour"] == pytest.approx(0.0, abs=1e-6), cause
    assert metrics["sampler_gap"] == pytest.approx(0.3, abs=1e-5), cause


def test_a_new_team_is_at_no_distance_from_the_reference():
    """Also if the KL is in the loss, where the reference's log-probabilities are used again."""
    for agent, metrics in learner_of(kl_coefficient=1.0).update(duo_batch())["agents"].items():
        assert metrics["kl_reference"] == pytest.approx(0.0, abs=1e-7), (
            f"{agent}: the log-probabilities of the reference pi_0 are at another temperature than the policy's"
        )
        assert metrics["loss"] == pytest.approx(metrics["policy_loss"], abs=1e-6)


def test_the_reference_is_the_base_model_without_adapters(training_data):
    """The adapters are moved away from it. The reference's log-probabilities are still those of the table."""
    policy = bigram_policy()
    generator = torch.Generator().manual_seed(0)
    for agent in policy.agents:
        for p in policy.adapter_parameters(agent):
            p.data.normal_(std=0.5, generator=generator)
    metrics = learner_of(policy=policy).update(duo_batch())["agents"]
    for agent, data in training_data.items():
        torch.testing.assert_close(
            data.reference, torch.tensor([logprobs((A,), ACTION)] * 4), rtol=0, atol=1e-5,
            msg=lambda text, agent=agent: f"{agent}: an adapter is active in the reference pi_0\n{text}",
        )  # fmt: skip
        assert metrics[agent]["kl_reference"] > 0.01, f"{agent}: the KL to the reference is missing"


# ---- which number reaches which agent


def test_whitened_advantages_have_a_standard_deviation_of_one(training_data):
    """Of the population: scores 1, 0, 0, 0 have mean 1/4 and deviation sqrt(3)/4, so 3 / sqrt(3) and -1 / sqrt(3)."""
    learner = learner_of(reward="maporl")
    zero_weights(learner.critic)
    learner.update(batch_of([("a_0", "b_0")] * 4, [0.0] * 4, reply_scores=[[1.0, 1.0]] + [[0.0, 0.0]] * 3))
    found = training_data["a_0"].advantage.squeeze(-1)
    assert found.tolist() == pytest.approx([3**0.5] + [-(3**-0.5)] * 3, abs=1e-4), (
        "the advantages are not whitened with the population's standard deviation"
    )


def test_each_agent_gets_the_advantages_of_its_own_turns(training_data):
    """Each reply has a score of its own (MAPoRL), and every value is the same. a replies first in every second episode.

    The scores of a are 1, 0, 1, 0 and those of b are 1, 1, 0, 0: whitened 1, -1, 1, -1 and 1, 1, -1, -1.
    """
    order = [("a_0", "b_0"), ("b_0", "a_0")] * 2
    training_data.train = lambda actor, adapter, data, record: {}
    batch = batch_of(order, [0.0] * 4, reply_scores=[[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    learner = learner_of(reward="maporl")
    zero_weights(learner.critic)
    learner.update(batch)
    assert not training_data["a_0"].advantage.requires_grad, "the advantages carry the critic's gradient"
    expected = {"a_0": [1.0, -1.0, 1.0, -1.0], "b_0": [1.0, 1.0, -1.0, -1.0]}
    for agent, advantages in expected.items():
        found = training_data[agent].advantage.squeeze(-1)
        assert found.tolist() == pytest.approx(advantages, abs=1e-4), (
            f"{agent} is trained on the advantage of another agent's turn (the slot is off)"
        )


def test_an_agent_with_almost_equal_advantages_is_skipped():
    """The scores of a's replies are 1, 0, 1, 0, and those of b's all 1: deviations .5 and 0, and a mean of .25.

    With a floor of .4 an agent is trained if its deviation is at least .1.
    """
    learner = learner_of(reward="maporl", advantage_floor=0.4)
    zero_weights(learner.critic)
    batch = batch_of([("a_0", "b_0")] * 4, [0.0] * 4, reply_scores=[[1.0, 1.0], [0.0, 1.0]] * 2)
    skipped = {agent: metrics["skipped"] for agent, metrics in learner.update(batch)["agents"].items()}
    assert skipped == {"a_0": 0.0, "b_0": 1.0}, (
        "the advantage floor does not skip the agent below it, and only that one"
    )


def test_each_agent_has_its_own_coefficient_of_the_kl(training_data):
    """Advantages of 0 and log-probabilities that are .5 below pi_0's: k3 = exp(.5) - 1 - .5 per token.

    The coefficient of a is 0 and that of b is 2, so the losses are 0 and 2 k3.
    """
    learner = learner_of(kl_coefficient=1.0, learning_rate=0.0)
    learner.update(duo_batch())
    learner.actor.beta.update(a_0=0.0, b_0=2.0)
    k3 = float(torch.tensor(0.5).exp()) - 1.5
    for agent, expected in (("a_0", 0.0), ("b_0", 2 * k3)):
        data = training_data[agent]
        data = replace(data, advantage=torch.zeros_like(data.advantage), reference=data.reference + 0.5)
        assert learner.actor.train(agent, data)["loss"] == pytest.approx(expected, abs=1e-5), (
            f"{agent}: the KL term is not the agent's coefficient times k3 (its sign, or another agent's coefficient)"
        )


# ---- the steps of an adapter


def without_advantage(training_data, learner, agent="a_0"):
    """Return an agent's data of an update on one batch, with advantages of 0."""
    learner.update(duo_batch())
    data = training_data[agent]
    return replace(data, advantage=torch.zeros_like(data.advantage))


def test_the_entropy_bonus_lowers_the_loss_and_raises_the_entropy(training_data):
    """Without advantages and KL the loss is -c times the mean entropy per token."""
    data = without_advantage(training_data, learner_of(learning_rate=0.0))
    first = (entropy(A) + entropy(B) + entropy(C)) / 3
    policy = bigram_policy()
    learner = learner_of(policy=policy, entropy_coefficient=0.5)
    assert learner.actor.train("a_0", data)["loss"] == pytest.approx(-0.5 * first, abs=1e-5), (
        "the entropy bonus has the wrong sign or size in the loss"
    )
    for _ in range(20):
        last = learner.actor.train("a_0", data)["entropy"]
    assert last > first + 0.01, "training with an entropy bonus does not raise the entropy: its sign is wrong"


def test_every_epoch_makes_its_steps():
    metrics = learner_of(epochs=3).update(duo_batch())
    assert metrics["trained_tokens"] == 3 * 2 * 4 * 3, "the number of epochs is ignored"


@pytest.mark.parametrize(("epochs", "minibatches"), [(3, 1), (1, 2)])
def test_gradients_do_not_accumulate_over_steps(training_data, epochs, minibatches):
    """Every turn is the same and the learning rate is 0, so every step has the same gradient.

    With the gradients of earlier steps the norms would be g, 2 g, 3 g, ...
    """
    learner = learner_of(learning_rate=0.0, max_grad_norm=1e9, epochs=epochs, minibatches=minibatches)
    data = without_advantage(training_data, learner)
    data = replace(data, advantage=torch.ones_like(data.advantage))
    single = learner_of(learning_rate=0.0, max_grad_norm=1e9).actor.train("a_0", data)
    stats = learner.actor.train("a_0", data)
    assert stats["steps"] == epochs * minibatches and single["grad_norm"] > 1e-3
    assert stats["grad_norm"] == pytest.approx(single["grad_norm"], rel=1e-4), (
        "the gradient of a step contains those of earlier steps: it is not zeroed between them"
    )


def test_a_gradient_is_scaled_down_to_the_largest_norm(training_data):
    learner = learner_of(learning_rate=0.0, max_grad_norm=1e-3)
    data = without_advantage(training_data, learner)
    norms = []

    def measure(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norms.append(float(torch.nn.utils.get_total_norm(gradients)))

    learner.actor.optimizers["a_0"].register_step_pre_hook(measure)
    stats = learner.actor.train("a_0", replace(data, advantage=torch.ones_like(data.advantage)))
    assert stats["grad_norm"] > 0.1, "the norm in the metrics is that before the gradient is scaled"
    assert norms == pytest.approx([1e-3], rel=1e-3), "the gradient is not clipped to max_grad_norm"


@pytest.mark.parametrize("minibatches", [1, 2, 4])
def test_an_epoch_reads_every_token_once(minibatches):
    """Two agents in four episodes with three tokens each."""
    metrics = learner_of(minibatches=minibatches).update(duo_batch())
    assert metrics["trained_tokens"] == 2 * 4 * 3, "the minibatches of an epoch are not a partition of the batch"
    assert metrics["agents"]["a_0"]["steps"] == minibatches


def test_a_permuted_order_varies_and_the_first_agent_has_a_factor_of_one(training_data):
    orders = {"fixed": [], "reversed": [], "permuted": []}
    for order, found in orders.items():
        learner = learner_of("marft", order=order, normalization="sum")
        for _ in range(6):
            training_data.clear()
            learner.update(duo_batch(2))
            found.append(tuple(training_data))
            first, second = (training_data[agent].factor for agent in training_data)
            assert torch.equal(first, torch.ones_like(first)) and (second != 1).any()
    assert set(orders["fixed"]) == {("a_0", "b_0")}, "order='fixed' is not the team's order"
    assert set(orders["reversed"]) == {("b_0", "a_0")}, "order='reversed' is not the opposite of the team's order"
    assert set(orders["permuted"]) == {("a_0", "b_0"), ("b_0", "a_0")}, (
        "order='permuted' is ignored: six updates trained the agents in one order"
    )
