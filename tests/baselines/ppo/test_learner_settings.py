"""Settings of the learner on rollouts of the tiny model: each setting has the effect that its description states."""

import math
from dataclasses import replace

import pytest
import torch

from baselines.ladder import arm
from baselines.policies.micro_batches import MicroBatches, PassLimits
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.ppo.learner import Learner
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.trajectory import make_batch, select

SETTINGS = {"learning_rate": 1e-3, "advantage_floor": 0.0}


def learner_of(setup, name="marft", failures=None, **settings):
    config = arm(name).with_settings({**SETTINGS, **settings})
    return Learner(setup.policy, config, temperature=1.0, seed=3, failures=failures)


# ---- token level


def test_token_level_values_start_at_the_turns_value_and_change_inside_the_turn(duo):
    learner = learner_of(duo, "marft_token")
    for _ in range(3):
        learner.update(duo.batch)
    features, _ = learner._read(duo.batch)
    values = learner.critic.values(features)
    assert values.shape == features.decisions.shape and values.shape[-1] > 1
    action = learner_of(duo, "marft")
    action.critic.networks.load_state_dict(learner.critic.networks.state_dict(), strict=False)
    action.critic.started = True
    turn_values = action.critic.values(action._read(duo.batch)[0])
    assert torch.equal(values[..., 0], turn_values[..., 0])
    second = features.decisions[..., 1]
    assert (values[..., 1] - values[..., 0])[second].abs().max() > 1e-3


def test_the_first_tokens_advantage_is_the_action_level_one(duo):
    token, action = learner_of(duo, "marft_token"), learner_of(duo, "marft")
    decisions = token._read(duo.batch)[0].decisions
    g = torch.Generator().manual_seed(0)
    values = torch.rand(decisions.shape, generator=g)
    zeros = torch.zeros_like(values)
    final = torch.zeros_like(duo.batch.round_score)
    a, _ = token.advantages(duo.batch, decisions, values, zeros, 0.5, final)
    b, _ = action.advantages(duo.batch, duo.batch.mask.unsqueeze(-1), values[..., :1], zeros[..., :1], 0.5, final)
    torch.testing.assert_close(a[..., 0], b[..., 0])


def test_at_token_level_the_factor_is_the_action_level_one_for_every_token(duo, training_data):
    learner = learner_of(duo, "marft_token", factor_normalization="sum", factor_clamp=(1e-6, 1e6))
    turns = duo.batch.turns["reasoner_0"]
    old = learner.actor.token_logprobs("reasoner_0", turns).sum(-1)
    metrics = learner.update(duo.batch)
    ratio = (learner.actor.token_logprobs("reasoner_0", turns).sum(-1) - old).exp()
    data = training_data["actor_0"]
    torch.testing.assert_close(data.factor, ratio, rtol=1e-5, atol=1e-6)
    assert data.advantage.shape == data.old_tokens.shape
    assert metrics["agents"]["actor_0"]["factor_ess"] < 1


def gradient(setup, learner, data, turns):
    """Return the gradient of the second agent's adapter on all of its data, accumulated in passes of so many turns."""
    learner.actor.passes = MicroBatches(PassLimits(turns=turns))
    with setup.policy.use("actor_0"):
        learner.actor._accumulate("actor_0", data, torch.arange(len(data.turns)))
    found = [p.grad.clone() for p in setup.policy.adapter_parameters("actor_0")]
    learner.actor.optimizers["actor_0"].zero_grad(set_to_none=True)
    return torch.cat([x.flatten() for x in found])


@pytest.mark.parametrize("name", ["marft_token", "ippo", "magrpo"])
def test_splitting_a_minibatch_into_passes_changes_no_gradient(duo, training_data, name):
    training_data.train = lambda actor, adapter, data, record: {}
    learner = learner_of(duo, name, entropy_coefficient=0.01, kl_coefficient=0.1)
    learner.update(duo.play_groups(8) if name == "magrpo" else duo.batch)
    for aggregation in ("token_mean", "turn_mean", "agent_balanced"):
        learner.actor.config = replace(learner.config, loss_aggregation=aggregation)
        whole, in_passes = (gradient(duo, learner, training_data["actor_0"], turns) for turns in (128, 5))
        assert whole.norm() > 1e-3
        torch.testing.assert_close(whole, in_passes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["marft", "marft_token"])
def test_the_loss_is_a_mean_and_includes_the_factor(duo, training_data, name):
    """Before the first step every ratio is 1: with advantages of 1 and M = 2 the loss is -2, in passes of any size."""
    training_data.train = lambda actor, adapter, data, record: {}
    learner = learner_of(duo, name, kl_coefficient=0.0, minibatches=2)
    learner.update(duo.batch)
    data = training_data["actor_0"]
    data = replace(data, factor=torch.full((32,), 2.0), advantage=torch.ones_like(data.advantage))
    learner.actor.passes = MicroBatches(PassLimits(turns=5))
    with duo.policy.use("actor_0"):
        stats = learner.actor._accumulate("actor_0", data, torch.arange(3, 20))
    assert stats["policy_loss"] == pytest.approx(-2.0, rel=1e-5) and stats["clip_fraction"] == 0.0


# ---- arms outside the ladder


def test_untrained_changes_no_adapter(duo):
    before = duo.weights()
    assert learner_of(duo, "untrained").update(duo.batch)["agents"] == {}
    assert duo.changed(before) == []


def test_magrpo_learns_from_groups_without_a_critic(duo):
    batch = duo.play_groups(8)
    assert batch.group.tolist() == [i // 8 for i in range(32)]
    learner, before = learner_of(duo, "magrpo"), duo.weights()
    metrics = learner.update(batch)
    assert learner.critic is None and duo.changed(before) == ["reasoner_0", "actor_0"]
    varied = [batch.score[batch.group == g].std() > 0 for g in range(4)]
    assert metrics["groups_kept"] == pytest.approx(sum(varied) / 4) and metrics["groups_kept"] > 0


def test_magrpo_skips_a_batch_without_groups(duo):
    """Every episode is on its own problem: the scores have variance, but no group has."""
    before = duo.weights()
    assert learner_of(duo, "magrpo").update(duo.batch)["skipped"] == "no reward variance"
    assert duo.changed(before) == []


# ---- KL


def test_kl_in_the_reward_penalises_distance_from_the_reference(duo):
    learner = learner_of(duo, "ippo", kl_placement="reward", kl_coefficient=0.5, kl_estimator="k1")
    turns = duo.batch.turns["actor_0"]
    old, reference = learner.actor.token_logprobs("actor_0", turns), learner._read(duo.batch)[1]["actor_0"]
    penalty = learner.actor.kl_penalty("actor_0", old, reference, turns)
    torch.testing.assert_close(penalty.squeeze(-1), 0.5 * (old - reference).sum(-1))
    assert penalty.abs().max() > 0.01
    in_loss = learner_of(duo, "ippo").actor.kl_penalty("actor_0", old, reference, turns)
    assert float(in_loss.abs().max()) == 0.0


def test_beta_in_the_loss_reduces_the_kl_to_the_reference(make_setup):
    """The same batch without and with a large beta: with it, KL to pi_0 falls."""
    kl = {}
    for beta in (0.0, 5.0):
        setup = make_setup(perturb=0.05, episodes=16)
        learner = learner_of(setup, "ippo", kl_coefficient=beta, epochs=4)
        kl[beta] = [learner.update(setup.batch)["agents"]["actor_0"]["kl_reference"] for _ in range(2)]
    assert kl[5.0][0] == kl[0.0][0] and kl[5.0][1] < 0.9 * kl[5.0][0] and kl[5.0][1] < 0.9 * kl[0.0][1]


def test_beta_adapts_to_each_agents_own_kl(duo):
    learner = learner_of(duo, "ippo", kl_target=1e-6, kl_coefficient=0.1)
    learner.update(duo.batch)
    assert list(learner.actor.beta.values()) == pytest.approx([0.11, 0.11])
    assert learner.update(duo.batch)["agents"]["actor_0"]["kl_coefficient"] == pytest.approx(0.11)
    fixed = learner_of(duo, "ippo", kl_coefficient=0.1)
    fixed.update(duo.batch)
    assert fixed.actor.beta["actor_0"] == 0.1


def test_an_early_stop_is_counted_and_ends_the_epochs(duo):
    free = learner_of(duo, "ippo", epochs=3).update(duo.batch)
    assert free["early_stops"] == 0 and free["agents"]["actor_0"]["steps"] == 3
    stopped = learner_of(duo, "ippo", epochs=3, kl_stop=1e-6).update(duo.batch)
    assert stopped["early_stops"] == 2 and stopped["agents"]["actor_0"]["steps"] == 1  # the first step is at KL 0
    assert stopped["optimiser_steps"] == 2


# ---- order, sharing, freezing


def test_round_robin_trains_one_adapter_for_k_batches(make_setup):
    setup = make_setup(episodes=8)
    learner = learner_of(setup, "marft", round_robin=2, epochs=1)
    trained = []
    for _ in range(5):
        before = setup.weights()
        states = {a: repr(o.state_dict()) for a, o in learner.actor.optimizers.items()}
        assert "skipped" not in learner.update(setup.batch)
        (agent,) = setup.changed(before)
        assert [a for a, o in learner.actor.optimizers.items() if repr(o.state_dict()) != states[a]] == [agent]
        trained.append(agent)
    assert trained == ["reasoner_0", "reasoner_0", "actor_0", "actor_0", "reasoner_0"]


def test_an_agent_that_did_not_act_contributes_a_factor_of_one(duo, training_data):
    """The reasoner does not act in the first five episodes: there the actor's M is 1, elsewhere the reasoner's
    ratio."""
    turns, mask = duo.batch.turns["reasoner_0"], duo.batch.mask.clone()
    mask[:5, 0] = False
    acted = {**duo.batch.turns, "reasoner_0": select(turns, turns.episode >= 5)}
    learner_of(duo, "marft", normalization="sum").update(replace(duo.batch, turns=acted, mask=mask))
    factor = training_data["actor_0"].factor
    assert torch.equal(factor[:5], torch.ones(5)) and (factor[5:] != 1).float().mean() > 0.5


def with_policy(setup, **keywords):
    """Return the setup with a new policy for its rollouts, which may share or freeze adapters."""
    setup.policy = SharedBasePolicy(setup.fresh_model().model, setup.policy.agents, LoraSettings(), 0, **keywords)
    return setup


def test_agents_that_share_an_adapter_are_updated_together(duo, training_data):
    setup = with_policy(duo, sharing={"reasoner_0": "both", "actor_0": "both"})
    learner = learner_of(setup, "marft")
    metrics = learner.update(setup.batch)
    assert list(training_data) == ["both"]
    data = training_data["both"]
    assert len(data.turns) == 64 and data.agent.unique().tolist() == [0, 1]
    assert torch.equal(data.factor, torch.ones(64))
    assert list(learner.actor.optimizers) == ["both"] and metrics["optimiser_steps"] == 2
    assert metrics["agents"]["reasoner_0"]["grad_norm"] == metrics["agents"]["actor_0"]["grad_norm"]
    a, b = (setup.policy.adapter_parameters(x) for x in setup.policy.agents)
    assert all(p is q for p, q in zip(a, b, strict=True))


def test_a_frozen_agent_acts_and_is_not_trained(duo):
    setup = with_policy(duo, frozen=["reasoner_0"])
    before = setup.weights()
    learner = learner_of(setup, "marft")
    metrics = learner.update(setup.batch)
    assert setup.changed(before) == ["actor_0"] and list(learner.actor.optimizers) == ["actor_0"]
    assert "kl_reference" in metrics["agents"]["reasoner_0"] and "steps" not in metrics["agents"]["reasoner_0"]
    assert not any(p.requires_grad for p in setup.policy.adapter_parameters("reasoner_0"))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"sharing": {"nobody": "x"}}, "sharing has the unknown agent 'nobody': expected one of reasoner_0, actor_0"),
        ({"frozen": ["nobody"]}, "frozen has the unknown agent 'nobody': expected one of reasoner_0, actor_0"),
        (
            {"sharing": {"reasoner_0": "x", "actor_0": "x"}, "frozen": ["actor_0"]},
            r"frozen=\['actor_0'\]: expected all or none of reasoner_0, actor_0, which share 'x'",
        ),
    ],
)
def test_wrong_sharing_is_reported(make_setup, keywords, message):
    with pytest.raises(ValueError, match=message):
        SharedBasePolicy(make_setup.fresh_model().model, ("reasoner_0", "actor_0"), LoraSettings(), 0, **keywords)


# ---- safeguards


def test_an_update_that_is_not_finite_changes_nothing_and_two_in_a_row_stop_the_run(duo, tmp_path):
    learner = learner_of(duo, "ippo", failures=tmp_path, max_bad_updates=2)
    learner.update(duo.batch)
    before = duo.weights()
    broken = duo.batch.turns["actor_0"].behaviour.clone()
    original = learner.actor.decision_logprobs
    learner.actor.decision_logprobs = lambda tokens, turns: original(tokens, turns) + math.nan
    metrics = learner.update(duo.batch)
    assert metrics["bad_updates"] == 1 and metrics["bad_steps"] == 4 and duo.changed(before) == []
    learner.actor.decision_logprobs = original
    assert learner.update(duo.batch)["bad_updates"] == 1  # a good update in between: not in a row
    learner.actor.decision_logprobs = lambda tokens, turns: original(tokens, turns) + math.nan
    learner.update(duo.batch)
    with pytest.raises(
        NonFiniteLoss, match="2 updates in a row had a loss or a gradient that is not finite; the last batch is in"
    ) as e:
        learner.update(duo.batch)
    saved = torch.load(e.value.path, weights_only=True)
    assert torch.equal(saved["turns"]["actor_0"]["behaviour"], broken) and torch.equal(saved["score"], duo.batch.score)


def test_without_a_folder_the_batch_is_not_saved(duo):
    learner = learner_of(duo, "ippo", max_bad_updates=1)
    learner.actor.decision_logprobs = lambda tokens, turns: tokens[:, :1] + math.inf
    with pytest.raises(NonFiniteLoss, match=r"1 updates in a row .* no folder was given") as e:
        learner.update(duo.batch)
    assert e.value.path is None


# ---- the critic


def test_warm_up_batches_train_the_critic_only(duo):
    learner, before = learner_of(duo, "marft", critic_warmup=2), duo.weights()
    first = learner.update(duo.batch)
    assert first["skipped"] == "critic warm-up" and duo.changed(before) == []
    second = learner.update(duo.batch)
    assert second["value_loss"] < first["value_loss"] and duo.changed(before) == []
    assert "skipped" not in learner.update(duo.batch) and duo.changed(before) == ["reasoner_0", "actor_0"]


@pytest.mark.parametrize("network", ["head", "transformer"])
@pytest.mark.parametrize("name", ["marft", pytest.param("ippo", marks=pytest.mark.slow), "marft_token"])
def test_a_critic_on_the_history_learns(duo, name, network):
    """Four batches train the critic only, then one trains the policies, too."""
    learner = learner_of(duo, name, critic_network=network, critic_warmup=4, critic_warmup_epochs=2)
    metrics = [learner.update(duo.batch) for _ in range(5)]
    assert metrics[-1]["value_loss"] < metrics[0]["value_loss"] and "skipped" not in metrics[-1]


def test_labels_give_the_ceiling_of_explained_variance(duo):
    """The label is whether the first agent was correct. Before its turn nothing is known, so the ceiling is 0."""

    labels = [[0, int(eval_sum(e.steps[0]) == e.steps[0].text)] for e in duo.episodes]
    batch = make_batch(duo.episodes, duo.policy.agents, 0, labels)
    metrics = learner_of(duo, "marft").update(batch)
    ceiling = metrics["explained_variance_ceiling"]
    assert ceiling["1"] == pytest.approx(0.0, abs=1e-6) and 0 < ceiling["2"] <= 1
    share, explained = metrics["explained_variance_of_ceiling"], metrics["explained_variance_by_position"]
    assert share == {"1": None, "2": pytest.approx(explained["2"] / ceiling["2"])}
    with pytest.raises(ValueError, match="labels: 1 for an episode of 2 turns: expected one per turn"):
        make_batch(duo.episodes, duo.policy.agents, 0, [[0]] * 32)


def eval_sum(step):
    """Return the sum that the step's prompt asks for, as a string."""
    text = step.request.observation["messages"][-1]["content"]
    return str(sum(int(x) for x in text.removesuffix("=").split("+")))
