"""The properties of docs/reference/algorithms.md, section 6, on rollouts of the tiny model."""

from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch

import marft_envs
from baselines.ladder import ARMS, LADDER, arm
from baselines.learner_config import LearnerConfig
from baselines.ppo.credit import without_variance
from baselines.ppo.learner import Learner
from baselines.trajectory import Views, make_batch, select
from marft_envs.batch import BatchRunner

SETTINGS = {"normalization": "sum", "learning_rate": 1e-3}


def learn(setup, config, updates=1):
    learner = Learner(setup.policy, config, temperature=1.0, seed=3)
    metrics = [learner.update(setup.batch) for _ in range(updates)]
    return learner, metrics


def test_neighbouring_arms_differ_in_exactly_one_field():
    ladder = [ARMS[name] for name in LADDER]
    changed = [
        [f.name for f in fields(LearnerConfig) if getattr(a, f.name) != getattr(b, f.name)] for a, b in pairwise(ladder)
    ]
    assert changed == [["critic"], ["bootstrap"], ["update"], ["factor"]]


def test_one_agent_makes_all_arms_equal_bit_for_bit(make_setup):
    results = []
    for name in LADDER:
        setup = make_setup(team="solo")
        learn(setup, ARMS[name].with_settings(SETTINGS), updates=2)
        results.append(setup.weights())
        assert setup.changed(results[0]) == []


def test_two_agents_do_not_make_marft_equal_ippo(make_setup):
    results = []
    for name in ("ippo", "marft"):
        setup = make_setup()
        # no gate: lam_in .5 at once, so that the chained bootstrap differs from R - V
        learn(setup, arm(name).with_settings({**SETTINGS, "ev_gate": -1.0}), updates=2)
        results.append(setup.weights())
    assert "reasoner_0" in setup.changed(results[0])


def test_disjoint_adapters_make_marft_nofactor_identical_to_mappo_chained(make_setup):
    results = []
    for name in ("mappo_chained", "marft_nofactor"):
        setup = make_setup()
        learn(setup, arm(name).with_settings(SETTINGS), updates=2)
        results.append(setup.weights())
    assert setup.changed(results[0]) == []


def test_without_a_step_every_factor_is_one_and_the_factor_changes_no_gradient(make_setup):
    norms = []
    for factor in ("off", "on"):
        setup = make_setup()
        config = replace(arm("marft").with_settings({**SETTINGS, "learning_rate": 0.0}), factor=factor)
        before = setup.weights()
        _, (metrics,) = learn(setup, config)
        norms.append([metrics["agents"][a]["grad_norm"] for a in setup.policy.agents])
        if factor == "on":
            assert metrics["agents"]["reasoner_0"]["factor_ess"] == 1.0
        assert setup.changed(before) == []
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_no_forward_pass_computes_a_factor_that_multiplies_nothing(duo):
    """The first epochs record the old log-probabilities. The last agent's M has no reader: only the first agent's new
    log-probabilities are read."""
    learner = Learner(duo.policy, arm("marft").with_settings(SETTINGS), temperature=1.0, seed=3)
    original, read = learner.actor.token_logprobs, []
    learner.actor.token_logprobs = lambda agent, turns: (read.append(agent), original(agent, turns))[1]
    metrics = learner.update(duo.batch)
    assert read == ["reasoner_0"]
    first, last = (metrics["agents"][agent] for agent in duo.policy.agents)
    assert (first["factor_p05"], first["factor_p95"]) == (1.0, 1.0)  # no agent was updated before it
    assert last["factor_p05"] < 1 < last["factor_p95"]


def test_after_an_update_the_factor_is_the_detached_ratio(duo, training_data):
    """M of the second agent is exp(l_new - l_old) of the first, computed again here after the update."""
    config = arm("marft").with_settings({**SETTINGS, "factor_clamp": (1e-6, 1e6)})
    learner = Learner(duo.policy, config, temperature=1.0, seed=3)
    turns = duo.batch.turns["reasoner_0"]
    logprob = lambda: learner.actor.token_logprobs("reasoner_0", turns).sum(-1)  # noqa: E731 - normalization is "sum"
    old = logprob()
    learner.update(duo.batch)
    ratio = (logprob() - old).exp()
    first = training_data["reasoner_0"].factor
    assert torch.equal(first, torch.ones_like(first))
    assert (ratio - 1).abs().max() > 0.01
    torch.testing.assert_close(training_data["actor_0"].factor, ratio, rtol=1e-5, atol=1e-6)


def test_only_the_active_adapter_and_its_optimiser_move(duo):
    config = arm("marft").with_settings({**SETTINGS, "advantage_floor": 0.0})
    learner = Learner(duo.policy, config, temperature=1.0, seed=3)
    base = {n: p.detach().clone() for n, p in duo.policy.named_parameters() if "lora_" not in n}
    before = duo.weights()
    trained = []
    train = learner.actor.train

    def one_by_one(agent, data, record):
        optimiser = {a: repr(learner.actor.optimizers[a].state_dict()["state"]) for a in duo.policy.agents}
        weights = duo.weights()
        stats = train(agent, data, record)
        assert duo.changed(weights) == [agent]
        for other in duo.policy.agents:
            assert (repr(learner.actor.optimizers[other].state_dict()["state"]) == optimiser[other]) == (other != agent)
        trained.append(agent)
        return stats

    learner.actor.train = one_by_one
    learner.update(duo.batch)
    assert trained == ["reasoner_0", "actor_0"]
    assert before.keys() == duo.weights().keys()
    for name, p in duo.policy.named_parameters():
        if "lora_" not in name:
            assert torch.equal(p, base[name]), name


def test_switching_adapters_leaves_every_adapter_trainable(duo):
    """Also after an error, such as an exhausted memory, which is answered by smaller passes."""
    with duo.policy.use("actor_0"), duo.policy.use(None):
        pass
    assert all(p.requires_grad for a in duo.policy.agents for p in duo.policy.adapter_parameters(a))
    with pytest.raises(MemoryError), duo.policy.use(None):
        raise MemoryError
    assert all(p.requires_grad for a in duo.policy.agents for p in duo.policy.adapter_parameters(a))


def test_a_new_team_equals_the_reference(make_setup):
    setup = make_setup(perturb=0.0)
    turns = setup.batch.turns["actor_0"]
    with torch.no_grad(), setup.policy.use("actor_0"):
        mine = setup.policy.scores(turns, 1.0).logprobs
    with torch.no_grad(), setup.policy.use(None):
        reference = setup.policy.scores(turns, 1.0).logprobs
    assert torch.equal(mine, reference)


def test_training_path_agrees_with_the_sampler(duo):
    """The sampler uses a KV cache and left padding, the training path one pass and right padding."""
    learner = Learner(duo.policy, arm("ippo"), temperature=1.0, seed=3)
    for agent, turns in duo.batch.turns.items():
        assert turns.behaviour[turns.action_mask].min() < -0.05  # otherwise any two paths would agree
        torch.testing.assert_close(learner.actor.token_logprobs(agent, turns), turns.behaviour, rtol=0, atol=2e-4)


@pytest.mark.parametrize("score", [1.0, 0.7, 0.35])
def test_a_batch_without_reward_variance_is_skipped_and_counted(duo, score):
    """Fractional scores, too: the float32 standard deviation of 32 scores of 0.35 is not 0."""
    flat = replace(duo.batch, score=torch.full_like(duo.batch.score, score))
    before = duo.weights()
    _, (metrics,) = learn(replace_batch(duo, flat), arm("marft").with_settings(SETTINGS))
    assert metrics["skipped_batches"] == 1 and duo.changed(before) == []


def replace_batch(setup, batch):
    setup.batch = batch
    return setup


def test_the_environments_reward_setting_cannot_change_what_a_learner_trains_on(make_setup):
    batches = []
    for reward in ("shared", "last", "answerer"):
        setup = make_setup()
        setup.runner = BatchRunner(marft_envs.math_v0.env(dataset="relay", style="symbols", reward=reward), 32)
        episodes = setup.play((0, 7))
        assert sum(e.score for e in episodes) > 0
        batches.append(make_batch(episodes, setup.policy.agents, 0))
    for other in batches[1:]:
        assert torch.equal(batches[0].round_score, other.round_score)


def test_two_turns_of_an_agent_in_a_round_enter_the_factor_together(make_setup, training_data):
    """Two rounds relabelled as one, as if each agent had called a tool first: M = exp of the sum of both log-ratios."""
    setup = make_setup(episodes=16)
    setup.runner = BatchRunner(marft_envs.math_v0.env(dataset="relay", style="symbols", rounds=2), 16)
    played = make_batch(setup.play((0, 7)), setup.policy.agents, 0)
    score = played.score.unsqueeze(-1) * played.mask
    one = replace(played, round_index=0 * played.round_index, round_end=played.ended, round_score=score)
    config = arm("marft").with_settings({**SETTINGS, "factor_clamp": (1e-6, 1e6)})
    learner = Learner(setup.policy, config, temperature=1.0, seed=3)
    turns = one.turns["reasoner_0"]
    logprob = lambda: learner.actor.token_logprobs("reasoner_0", turns).sum(-1)  # noqa: E731 - normalization is "sum"
    old = logprob()
    learner.update(one)
    ratio = torch.zeros(16).index_add(0, turns.episode, logprob() - old).exp()
    assert (ratio - 1).abs().max() > 0.01
    torch.testing.assert_close(
        training_data["actor_0"].factor, ratio[one.turns["actor_0"].episode], rtol=1e-4, atol=1e-5
    )


def test_a_batch_in_which_no_model_acted_trains_no_policy(duo):
    """The scores differ, but only scripted agents acted."""
    silent = {name: select(turns, slice(0, 0)) for name, turns in duo.batch.turns.items()}
    _, (metrics,) = learn(replace_batch(duo, replace(duo.batch, turns=silent)), arm("marft").with_settings(SETTINGS))
    assert metrics["agents"] == {}


def test_a_batch_of_equal_scores_with_a_truncated_episode_is_trained_on(duo):
    """The truncated episode has no score of its own; the critic's value of it can differ from the scores."""
    views = Views(torch.tensor([0]), torch.tensor([0]), torch.tensor([0]), {})
    same = replace(duo.batch, score=torch.zeros_like(duo.batch.score))
    assert without_variance(same, arm("marft"))
    assert not without_variance(replace(same, views=views), arm("marft"))
