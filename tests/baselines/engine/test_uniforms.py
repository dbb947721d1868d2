"""The uniform numbers of actions: each request of a batch has its own, whichever requests share its call."""

from __future__ import annotations

import numpy as np

from baselines.engine.protocol import GenerationRequest, Sampling
from baselines.engine.sampler import EngineSampler
from marft_envs import FlexMG, Role, Team
from marft_envs.batch import BatchRunner
from marft_envs.team.tools import CALCULATOR
from tests.marft_envs.batch.sum_task import Sum

CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "1+1"}}</tool_call>'


def played(sampler, policy, **arguments):
    """Return the first uniform number of each request in episodes that ``policy`` plays."""
    found = {}

    def reply(requests):
        for request in requests:
            numbers = GenerationRequest(request.agent, (5,), Sampling(), sampler.seed(request)).uniforms()
            found[request.episode, request.agent, request.turn] = float(numbers[0])
        return [policy(request) for request in requests]

    team = Team({"a_0": Role(tools=(CALCULATOR,)), "b_0": Role(answers=True)})
    BatchRunner(FlexMG(Sum(), team), 4).play(reply, **arguments)
    return found


def test_members_whose_waves_part_do_not_share_uniform_numbers(duo):
    """Member 0 calls a tool. So turn 1 is a_0's second one there and b_0's first one in member 1: two calls."""
    sampler = EngineSampler(duo.engine, duo.loaded, (0, 7))
    found = played(sampler, lambda r: CALL if (r.member, r.turn) == (0, 0) else str(r.index), indices=[5], groups=2)
    assert {(0, "a_0", 1), (1, "b_0", 1)} <= set(found)
    assert len(set(found.values())) == len(found) == 5


def test_two_groups_on_one_problem_do_not_share_uniform_numbers(duo):
    sampler = EngineSampler(duo.engine, duo.loaded, (0, 7))
    found = played(sampler, lambda r: str(r.index), indices=[5, 5], groups=2)
    assert len(set(found.values())) == len(found) == 8


def test_uniform_numbers_are_keyed_by_problem_repetition_and_turn(duo):
    """The key is documented in docs/reference/determinism.md: changing it changes every run."""
    found = played(EngineSampler(duo.engine, duo.loaded, (0, 7)), lambda r: str(r.index), indices=[5, 3], groups=2)
    for (episode, _, turn), number in found.items():
        key = [0, 7, (5, 3)[episode // 2], episode % 2, turn]
        assert number == np.random.default_rng(key).random()
