"""An update with activated adapters: what it computes, and that the base reads every prompt once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

import baselines
from baselines.critics.features import read_reference, with_histories
from baselines.ladder import arm
from baselines.models.out_of_memory import is_out_of_memory
from baselines.policies import policy as policy_module
from baselines.policies.micro_batches import GIB, MicroBatches, PassLimits
from baselines.policies.policy import prompts_kept
from baselines.policies.weights import LoraSettings
from baselines.ppo.credit import monte_carlo_returns
from baselines.ppo.learner import Learner
from baselines.runs.run import Run

LORA = LoraSettings(activated=True, invocation="=")
RELAY = {"dataset": "relay", "style": "symbols"}
SETTINGS = {"epochs": 3, "learning_rate": 3e-3, "normalization": "sum"}


@pytest.fixture
def setup(make_setup):
    return make_setup(lora=LORA, episodes=16)


def learner(setup, name="marft", limits=None, **settings):
    config = arm(name).with_settings({**SETTINGS, **settings})
    return Learner(setup.policy, config, temperature=1.0, seed=0, limits=limits)


class Reads:
    """Counts what the trunk reads: the prompts of the base's own passes, and the tokens of all passes."""

    def __init__(self, policy, monkeypatch):
        self.prompts, self.widths = Counter(), Counter()
        original = policy_module.read_prompts

        def spy(trunk, ids, lengths, *others):
            rows = zip(ids.tolist(), lengths.tolist(), strict=True)
            self.prompts.update(tuple(row[:length]) for row, length in rows)
            before = Counter(self.widths)
            found = original(trunk, ids, lengths, *others)
            self.widths = before
            return found

        monkeypatch.setattr(policy_module, "read_prompts", spy)
        trunk = policy.causal_lm.get_decoder()
        hook = lambda _module, _args, kwargs: self.widths.update([kwargs["input_ids"].shape[1]])  # noqa: E731
        trunk.register_forward_pre_hook(hook, with_kwargs=True)


def prompts_of(batch):
    """Return the tokens of each turn that the base alone reads."""
    return {
        tuple(row[:base])
        for turns in batch.turns.values()
        for row, base in zip(turns.tokens.tolist(), turns.base_tokens.tolist(), strict=True)
    }


def test_every_turn_knows_where_its_adapter_begins(setup):
    (equals,) = setup.policy.invocation_ids
    for turns in setup.batch.turns.values():
        assert torch.equal(turns.base_tokens, turns.prompt_length - 1)  # "=" ends a tiny prompt
        assert set(turns.tokens.gather(1, turns.base_tokens.unsqueeze(-1)).flatten().tolist()) == {equals}


@pytest.mark.parametrize("settings", [{}, {"minibatches": 3}, {"kl_placement": "reward"}, {"critic_network": "head"}])
def test_an_update_reads_every_prompt_once(setup, monkeypatch, settings):
    """Three epochs of both agents, the factor's pass and pi_0 read the same keys and values."""
    reads = Reads(setup.policy, monkeypatch)
    learner(setup, **settings).update(setup.batch)
    assert set(reads.prompts) == prompts_of(setup.batch) and set(reads.prompts.values()) == {1}
    if settings.get("critic_network") != "head":  # a head reads whole histories as well
        longest = max(int((t.token_mask.sum(-1) - t.base_tokens).max()) for t in setup.batch.turns.values())
        assert max(reads.widths) <= longest and sum(reads.widths.values()) >= 2 * (1 + 3)


def test_the_rollout_and_the_training_path_agree(setup):
    """The sampler's log-probabilities are those of the training path, which are not those of an ordinary adapter."""
    own = learner(setup)
    for agent, turns in setup.batch.turns.items():
        found = own.actor.token_logprobs(agent, turns)
        torch.testing.assert_close(found, turns.behaviour, rtol=0, atol=1e-4)
        ordinary = own.actor.token_logprobs(agent, replace(turns, base_tokens=torch.zeros_like(turns.base_tokens)))
        assert not torch.allclose(found, ordinary, atol=1e-3)


def test_an_update_with_the_store_is_that_without_it(setup, make_setup, monkeypatch):
    changed = []
    for stored in (True, False):
        fresh = make_setup(lora=LORA, episodes=16)
        if not stored:
            monkeypatch.setattr("baselines.ppo.learner.STORE_SHARE", 0)
        reads = Reads(fresh.policy, monkeypatch)
        metrics = learner(fresh).update(setup.batch)
        changed.append((fresh.weights(), metrics["agents"]))
        assert (max(reads.prompts.values()) > 1) != stored
    for agent, parameters in changed[0][0].items():
        for a, b in zip(parameters, changed[1][0][agent], strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-4)
        for key, value in changed[0][1][agent].items():
            assert value == pytest.approx(changed[1][1][agent][key], abs=1e-3)


def test_nothing_is_kept_from_one_batch_to_the_next(setup, monkeypatch):
    own = learner(setup)
    own.update(setup.batch)
    assert setup.policy.store.bytes == 0
    reads = Reads(setup.policy, monkeypatch)
    own.update(setup.batch)
    assert set(reads.prompts) == prompts_of(setup.batch) and set(reads.prompts.values()) == {1}
    monkeypatch.setattr(own.actor, "train", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        own.update(setup.batch)
    assert setup.policy.store.bytes == 0


def test_an_update_finds_the_prompts_of_its_rollout(monkeypatch):
    run = Run(baselines.RunConfig(arm="marft", environment_arguments=RELAY, episodes=4, lora=LORA))
    reads = Reads(run.policy.of("actor_0"), monkeypatch)
    row = run.train_once(1)
    assert row["agents"].keys() == {"reasoner_0", "actor_0"}  # both were trained
    assert set(reads.prompts.values()) == {1} and len(reads.prompts) > 4
    assert run.policy.of("actor_0").store.limit == 0


def test_what_only_a_critic_reads_is_read_as_a_whole(setup, monkeypatch):
    """Histories, and turns without private parts, are no prompts that an adapter continues."""
    wanted = with_histories(setup.batch, setup.batch.turns, joint=True, limits=dict.fromkeys(setup.batch.turns))
    assert not any(bool(turns.base_tokens.any()) for turns in wanted.values())
    reads = Reads(setup.policy, monkeypatch)
    own = learner(setup)
    others = {agent: replace(t, base_tokens=torch.zeros_like(t.base_tokens)) for agent, t in setup.batch.turns.items()}
    target = monte_carlo_returns(setup.batch, own.config)
    batch = replace(setup.batch, critic_turns=others)
    with prompts_kept(setup.policy, GIB):
        _, logprobs = read_reference(setup.policy, batch, own.config, target, 1.0, own.passes)
    assert set(reads.prompts) == prompts_of(setup.batch) and set(reads.prompts.values()) == {1}
    _, plain = read_reference(setup.policy, setup.batch, own.config, target, 1.0, own.passes)
    for agent, found in logprobs.items():
        torch.testing.assert_close(found, plain[agent], rtol=0, atol=1e-5)


def test_the_store_is_deleted_after_an_out_of_memory_error(setup, monkeypatch):
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    own, original, failures = learner(setup), setup.policy.scores, []

    def scores(turns, *arguments, **keywords):
        if len(turns) > 8:
            failures.append(setup.policy.store.bytes)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(turns, *arguments, **keywords)

    monkeypatch.setattr(setup.policy, "scores", scores)
    reads = Reads(setup.policy, monkeypatch)
    metrics = own.update(setup.batch)
    assert failures[0] > 0 and not any(failures[1:]) and metrics["out_of_memory"] == len(failures)
    assert max(reads.prompts.values()) > 1


def test_passes_leave_room_for_the_store(setup):
    turns = next(iter(setup.batch.turns.values()))
    passes = MicroBatches(PassLimits(gib=0.004))
    with prompts_kept(setup.policy, GIB):
        few = [len(part.rows) for part in passes.split(setup.policy, turns)]
        setup.policy.store.bytes = int(0.0035 * GIB)
        fewer = [len(part.rows) for part in passes.split(setup.policy, turns)]
    assert sum(few) == sum(fewer) == len(turns) and fewer[0] < few[0]


def test_an_ordinary_batch_has_no_tokens_of_the_base_alone(make_setup, monkeypatch):
    plain = make_setup()
    assert not any(bool(turns.base_tokens.any()) for turns in plain.batch.turns.values())
    reads = Reads(plain.policy, monkeypatch)
    learner(plain).update(plain.batch)
    assert not reads.prompts
