"""The learner's settings, on real rollouts of the tiny model: each does what its sentence says."""

import math
from dataclasses import replace

import pytest
import torch

from baselines.ladder import arm
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.ppo.actor import Actor
from baselines.ppo.learner import Learner
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.trajectory import make_batch, select

SETTINGS = {"learning_rate": 1e-3, "advantage_floor": 0.0}


def learner_of(setup, name="marft", failures=None, **settings):
    config = arm(name).with_settings({**SETTINGS, **settings})
    return Learner(setup.policy, config, temperature=1.0, seed=3, failures=failures)


def moved(setup, before):
    """Names of the agents whose adapter is not bit for bit what it was."""
    return [
        a
        for a, old in before.items()
        if not all(torch.equal(x, y) for x, y in zip(old, setup.weights()[a], strict=True))
    ]


# ---- token level


def test_token_level_values_begin_with_the_turns_value_and_move_inside(duo):
    learner = learner_of(duo, "marft_token")
    for _ in range(3):
        learner.update(duo.batch)
    features, _ = learner._read(duo.batch)
    values = learner.critic.values(features)
    assert values.shape == features.decisions.shape and values.shape[-1] > 1
    action = learner_of(duo, "marft")
    action.critic.networks.load_state_dict(learner.critic.networks.state_dict(), strict=False)
    action.critic._started = True
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


def test_at_token_level_the_factor_is_the_action_level_one_for_every_token(duo, monkeypatch):
    seen, train = {}, Actor.train

    def spy(self, adapter, data):
        seen[adapter] = data
        return train(self, adapter, data)

    monkeypatch.setattr(Actor, "train", spy)
    learner = learner_of(duo, "marft_token", factor_normalization="sum", factor_clamp=(1e-6, 1e6))
    turns = duo.batch.turns["reasoner_0"]
    old = learner.actor.token_logprobs("reasoner_0", turns).sum(-1)
    metrics = learner.update(duo.batch)
    ratio = (learner.actor.token_logprobs("reasoner_0", turns).sum(-1) - old).exp()
    torch.testing.assert_close(seen["actor_0"].factor, ratio, rtol=1e-5, atol=1e-6)
    assert seen["actor_0"].advantage.shape == seen["actor_0"].old_tokens.shape
    assert metrics["agents"]["actor_0"]["factor_ess"] < 1


@pytest.mark.parametrize("name", ["marft_token", "ippo", "magrpo"])
@pytest.mark.parametrize("aggregation", ["token_mean", "turn_mean", "agent_balanced"])
def test_splitting_a_minibatch_into_blocks_of_rows_changes_no_gradient(make_setup, name, aggregation):
    results = []
    for rows in (128, 5):
        setup = make_setup()
        settings = {**SETTINGS, "loss_aggregation": aggregation, "entropy_coefficient": 0.01, "kl_coefficient": 0.1}
        config = arm(name).with_settings(settings)
        grouped = setup.play_groups(8) if name == "magrpo" else setup.batch
        learner = Learner(setup.policy, config, temperature=1.0, seed=3, rows=rows)
        results.append(learner.update(grouped)["agents"]["actor_0"]["grad_norm"])
    assert results[0] == pytest.approx(results[1], rel=1e-4)


@pytest.mark.parametrize("name", ["marft", "marft_token"])
def test_the_loss_is_a_mean_and_takes_the_factor(duo, monkeypatch, name):
    """Before the first step every ratio is 1: with advantages of 1 and M = 2 the loss is -2, in blocks of any size."""
    seen = {}
    monkeypatch.setattr(Actor, "train", lambda self, adapter, data: seen.setdefault(adapter, data) and {})
    learner = learner_of(duo, name, kl_coefficient=0.0, minibatches=2)
    learner.update(duo.batch)
    data = replace(seen["actor_0"], factor=torch.full((32,), 2.0), advantage=torch.ones_like(seen["actor_0"].advantage))
    learner.actor.rows = 5
    with duo.policy.use("actor_0"):
        stats = learner.actor._accumulate(data, torch.arange(3, 20))
    assert stats["policy_loss"] == pytest.approx(-2.0, rel=1e-5) and stats["clip_fraction"] == 0.0


# ---- arms beside the ladder


def test_untrained_moves_nothing(duo):
    before = duo.weights()
    assert learner_of(duo, "untrained").update(duo.batch)["agents"] == {}
    assert moved(duo, before) == []


def test_magrpo_learns_from_groups_without_a_critic(duo):
    batch = duo.play_groups(8)
    assert batch.group.tolist() == [i // 8 for i in range(32)]
    learner, before = learner_of(duo, "magrpo"), duo.weights()
    metrics = learner.update(batch)
    assert learner.critic is None and moved(duo, before) == ["reasoner_0", "actor_0"]
    varied = [batch.score[batch.group == g].std() > 0 for g in range(4)]
    assert metrics["groups_kept"] == pytest.approx(sum(varied) / 4) and metrics["groups_kept"] > 0


def test_magrpo_skips_a_batch_of_lonely_episodes(duo):
    """Every episode on its own problem: there is variance, but not inside any group."""
    before = duo.weights()
    assert learner_of(duo, "magrpo").update(duo.batch)["skipped"] == "no reward variance"
    assert moved(duo, before) == []


# ---- KL


def test_kl_in_the_reward_lowers_the_advantage_of_what_left_the_reference(duo):
    learner = learner_of(duo, "ippo", kl_placement="reward", kl_coefficient=0.5, kl_estimator="k1")
    turns = duo.batch.turns["actor_0"]
    old, reference = learner.actor.token_logprobs("actor_0", turns), learner._read(duo.batch)[1]["actor_0"]
    penalty = learner.actor.kl_penalty("actor_0", old, reference, turns)
    torch.testing.assert_close(penalty.squeeze(-1), 0.5 * (old - reference).sum(-1))
    assert penalty.abs().max() > 0.01
    in_loss = learner_of(duo, "ippo").actor.kl_penalty("actor_0", old, reference, turns)
    assert float(in_loss.abs().max()) == 0.0


def test_the_loss_pulls_towards_the_reference_with_beta(make_setup):
    """No reward signal: advantages of zero, a large beta: KL to pi_0 falls."""
    kl = {}
    for beta in (0.0, 5.0):
        setup = make_setup(perturb=0.05)
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
    free = learner_of(duo, "ippo", epochs=6).update(duo.batch)
    assert free["early_stops"] == 0 and free["agents"]["actor_0"]["steps"] == 6
    stopped = learner_of(duo, "ippo", epochs=6, kl_stop=1e-6).update(duo.batch)
    assert stopped["early_stops"] == 2 and stopped["agents"]["actor_0"]["steps"] == 1  # the first step is at KL 0
    assert stopped["optimiser_steps"] == 2


# ---- order, sharing, freezing


def test_round_robin_trains_one_adapter_for_k_batches(duo):
    learner = learner_of(duo, "marft", round_robin=2)
    seen = []
    for _ in range(5):
        before = duo.weights()
        states = {a: repr(o.state_dict()) for a, o in learner.actor.optimizers.items()}
        learner.update(duo.batch)
        (agent,) = moved(duo, before)
        assert [a for a, o in learner.actor.optimizers.items() if repr(o.state_dict()) != states[a]] == [agent]
        seen.append(agent)
    assert seen == ["reasoner_0", "reasoner_0", "actor_0", "actor_0", "reasoner_0"]


def test_an_agent_that_did_not_act_contributes_a_factor_of_one(duo, monkeypatch):
    """The reasoner is silent in the first five episodes: there the actor's M is 1, elsewhere the reasoner's ratio."""
    turns, mask = duo.batch.turns["reasoner_0"], duo.batch.mask.clone()
    mask[:5, 0] = False
    spoke = {**duo.batch.turns, "reasoner_0": select(turns, turns.episode >= 5)}
    seen, train = {}, Actor.train

    def spy(self, adapter, data):
        seen[adapter] = data.factor.clone()
        return train(self, adapter, data)

    monkeypatch.setattr(Actor, "train", spy)
    learner = learner_of(duo, "marft", normalization="sum")
    learner.update(replace(duo.batch, turns=spoke, mask=mask))
    assert torch.equal(seen["actor_0"][:5], torch.ones(5)) and (seen["actor_0"][5:] != 1).float().mean() > 0.5


def shared(setup, **keywords):
    """The same rollouts, trained by a fresh policy with shared or frozen adapters."""
    setup.policy = SharedBasePolicy(load_model("tiny").model, setup.policy.agents, LoraSettings(), 0, **keywords)
    return setup


def test_agents_that_share_an_adapter_are_one_update_block(duo, monkeypatch):
    setup = shared(duo, sharing={"reasoner_0": "both", "actor_0": "both"})
    calls, train = [], Actor.train

    def spy(self, adapter, data):
        calls.append((adapter, len(data.turns), sorted(set(data.agent.tolist())), data.factor.clone()))
        return train(self, adapter, data)

    monkeypatch.setattr(Actor, "train", spy)
    learner = learner_of(setup, "marft")
    metrics = learner.update(setup.batch)
    ((adapter, turns, agents, factor),) = calls
    assert (adapter, turns, agents) == ("both", 64, [0, 1]) and torch.equal(factor, torch.ones(64))
    assert list(learner.actor.optimizers) == ["both"] and metrics["optimiser_steps"] == 2
    assert metrics["agents"]["reasoner_0"]["grad_norm"] == metrics["agents"]["actor_0"]["grad_norm"]
    a, b = (setup.policy.adapter_parameters(x) for x in setup.policy.agents)
    assert all(p is q for p, q in zip(a, b, strict=True))


def test_a_frozen_agent_plays_and_does_not_move(duo):
    setup = shared(duo, frozen=["reasoner_0"])
    before = setup.weights()
    learner = learner_of(setup, "marft")
    metrics = learner.update(setup.batch)
    assert moved(setup, before) == ["actor_0"] and list(learner.actor.optimizers) == ["actor_0"]
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
def test_wrong_sharing_is_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        SharedBasePolicy(load_model("tiny").model, ("reasoner_0", "actor_0"), LoraSettings(), 0, **keywords)


# ---- guards


def test_a_loss_that_is_not_finite_moves_nothing_is_counted_and_stops_the_run(duo, tmp_path):
    learner = learner_of(duo, "ippo", failures=tmp_path, max_bad_updates=2)
    learner.update(duo.batch)
    before = duo.weights()
    broken = duo.batch.turns["actor_0"].behaviour.clone()
    original = learner.actor.token_logprobs
    learner.actor.token_logprobs = lambda agent, turns: original(agent, turns) + math.nan
    metrics = learner.update(duo.batch)
    assert metrics["bad_updates"] == 1 and metrics["bad_steps"] == 4 and moved(duo, before) == []
    learner.actor.token_logprobs = original
    assert learner.update(duo.batch)["bad_updates"] == 1  # a good one in between: not in a row
    learner.actor.token_logprobs = lambda agent, turns: original(agent, turns) + math.nan
    learner.update(duo.batch)
    with pytest.raises(
        NonFiniteLoss, match="2 updates in a row had a loss or a gradient that is not finite; the last batch is in"
    ) as e:
        learner.update(duo.batch)
    saved = torch.load(e.value.path, weights_only=True)
    assert torch.equal(saved["turns"]["actor_0"]["behaviour"], broken) and torch.equal(saved["score"], duo.batch.score)


def test_without_a_folder_the_error_says_so(duo):
    learner = learner_of(duo, "ippo", max_bad_updates=1)
    learner.actor.token_logprobs = lambda agent, turns: turns.behaviour + math.inf
    with pytest.raises(NonFiniteLoss, match=r"1 updates in a row .* no folder was given") as e:
        learner.update(duo.batch)
    assert e.value.path is None


# ---- the critic


def test_warm_up_batches_train_the_critic_only(duo):
    learner, before = learner_of(duo, "marft", critic_warmup=2), duo.weights()
    first = learner.update(duo.batch)
    assert first["skipped"] == "critic warm-up" and moved(duo, before) == []
    second = learner.update(duo.batch)
    assert second["value_loss"] < first["value_loss"] and moved(duo, before) == []
    assert "skipped" not in learner.update(duo.batch) and moved(duo, before) == ["reasoner_0", "actor_0"]


@pytest.mark.parametrize("network", ["head", "transformer"])
@pytest.mark.parametrize("name", ["marft", "ippo", "marft_token"])
def test_a_network_on_the_history_learns(duo, name, network):
    learner = learner_of(duo, name, critic_network=network)
    losses = [learner.update(duo.batch)["value_loss"] for _ in range(6)]
    assert losses[-1] < losses[0]


def test_labels_give_the_ceiling_of_explained_variance(duo):
    """The label says whether the first agent was right: before its turn nothing is known, so the ceiling is 0."""

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
    text = step.request.observation["messages"][-1]["content"]
    return str(sum(int(x) for x in text.removesuffix("=").split("+")))
