"""Rollouts of the tiny model, shared by the tests of the learner."""

import copy
import os
from dataclasses import replace
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

import marft_envs
from baselines.engine.chat_template import ChatSettings
from baselines.engine.invocation import invocation_ids
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.ppo.actor import Actor
from baselines.trajectory import make_batch
from marft_envs.batch import BatchRunner

torch.set_num_threads(1)

_ROLLOUTS = {}  # (team, episodes, seed, perturb) -> episodes and batch, which no test changes


@cache
def _tiny():
    return load_model("tiny")


class Setup:
    """A new team on the relay task with a batch of its rollouts.

    perturb: standard deviation of the noise on the adapters, without which the policies equal the reference.
    lora: the adapters. Activated ones begin at the "=" that ends a prompt.
    """

    @staticmethod
    def fresh_model():
        """Return the tiny model with weights of its own: peft modifies a model in place."""
        loaded = _tiny()
        return replace(loaded, model=copy.deepcopy(loaded.model))

    def __init__(self, team="duo", episodes=32, seed=0, perturb=0.02, lora=LoraSettings()):  # noqa: B008 - frozen
        self.loaded = self.fresh_model()
        self.env = marft_envs.math_v0.env(dataset="relay", style="symbols", team=team)
        ids = invocation_ids(self.loaded, lora.invocation, ChatSettings()) if lora.activated else ()
        agents = self.env.possible_agents
        self.policy = SharedBasePolicy(self.loaded.model, agents, lora, seed, invocation_ids=ids)
        generator = torch.Generator().manual_seed(seed)
        for agent in self.policy.agents:
            for p in self.policy.adapter_parameters(agent):
                p.data += perturb * torch.randn(p.shape, generator=generator)
        self.engine = TorchEngine(self.policy, self.loaded.tokenizer, Decoding(max_new_tokens=6))
        self.runner = BatchRunner(self.env, episodes)
        key = (team, episodes, seed, perturb, lora)
        if key not in _ROLLOUTS:
            played = self.play((seed, 7))
            _ROLLOUTS[key] = played, make_batch(played, self.policy.agents, self.loaded.tokenizer.pad_token_id)
        self.episodes, self.batch = _ROLLOUTS[key]

    def play(self, stream):
        sampler = EngineSampler(self.engine, self.loaded, stream)
        return self.runner.play(sampler, indices=range(len(self.runner.envs)))

    def play_groups(self, size):
        """Return a batch of as many episodes, ``size`` on each problem."""
        sampler = EngineSampler(self.engine, self.loaded, (0, 8))
        problems = range(len(self.runner.envs) // size)
        episodes = self.runner.play(sampler, indices=problems, groups=size)
        return make_batch(episodes, self.policy.agents, self.loaded.tokenizer.pad_token_id)

    def weights(self):
        """Return copies of the parameters of every adapter."""
        return {a: [p.detach().clone() for p in self.policy.adapter_parameters(a)] for a in self.policy.agents}

    def changed(self, before):
        """Return the agents whose adapter differs in any bit from ``before``, which is what ``weights`` returned."""
        now = self.weights()
        return [a for a in before if not all(torch.equal(x, y) for x, y in zip(before[a], now[a], strict=True))]


@pytest.fixture
def duo():
    return Setup()


@pytest.fixture(scope="session")
def make_setup():
    return Setup


@pytest.fixture
def training_data(monkeypatch):
    """Adapter -> the data that it was last trained on. ``training_data.train`` replaces the training if it is set."""

    class Recorded(dict):
        train = staticmethod(Actor.train)

    recorded = Recorded()

    def spy(self, adapter, data, record=None):
        stats = recorded.train(self, adapter, data, record)
        if record is not None:
            if recorded.train is not Actor.train:  # no epoch recorded them
                record = self.token_logprobs(self.policy.blocks[adapter][0], data.turns)
            data = data.with_old(record, self.decision_logprobs(record, data.turns))
        recorded[adapter] = data
        return stats

    monkeypatch.setattr(Actor, "train", spy)
    return recorded
