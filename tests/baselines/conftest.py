"""Real rollouts of the tiny model, shared by the learner's tests."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

import marft_envs
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import make_batch
from marft_envs.batch.runner import BatchRunner

torch.set_num_threads(1)


class Setup:
    """A fresh team on the relay with one batch of its own rollouts. perturb: adapters away from zero, so that the
    policies are not the reference."""

    def __init__(self, team="duo", episodes=32, seed=0, perturb=0.02):
        self.loaded = load_model("tiny")
        self.env = marft_envs.math_v0.env(dataset="relay", style="symbols", team=team)
        self.policy = SharedBasePolicy(self.loaded.model, self.env.possible_agents, LoraSettings(), seed)
        generator = torch.Generator().manual_seed(seed)
        for agent in self.policy.agents:
            for p in self.policy.adapter_parameters(agent):
                p.data += perturb * torch.randn(p.shape, generator=generator)
        self.engine = TorchEngine(self.policy, self.loaded.tokenizer, Decoding(max_new_tokens=6))
        self.runner = BatchRunner(self.env, episodes)
        self.episodes = self.play((seed, 7))
        self.batch = make_batch(self.episodes, self.policy.agents, self.loaded.tokenizer.pad_token_id)

    def play(self, stream):
        sampler = EngineSampler(self.engine, self.loaded, stream)
        return self.runner.play(sampler, indices=range(len(self.runner.envs)))

    def play_groups(self, size):
        """A batch of as many episodes, ``size`` on each problem."""
        sampler = EngineSampler(self.engine, self.loaded, (0, 8))
        problems = range(len(self.runner.envs) // size)
        episodes = self.runner.play(sampler, indices=problems, groups=size)
        return make_batch(episodes, self.policy.agents, self.loaded.tokenizer.pad_token_id)

    def weights(self):
        """Every adapter's parameters, copied."""
        return {a: [p.detach().clone() for p in self.policy.adapter_parameters(a)] for a in self.policy.agents}


@pytest.fixture
def duo():
    return Setup()


@pytest.fixture
def solo():
    return Setup(team="solo")


@pytest.fixture
def make_setup():
    return Setup
