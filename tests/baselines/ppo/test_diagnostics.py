"""Statistics of an update: shares of the gradient, and the variance of the advantages by position."""

import pytest
import torch

from baselines.ladder import arm
from baselines.ppo.diagnostics import gradient_shares, variance_by_position
from baselines.ppo.learner import Learner


def test_agents_that_share_an_adapter_count_once_in_the_sum_of_norms():
    metrics = {"a": {"grad_norm": 3.0}, "b": {"grad_norm": 3.0}, "c": {"grad_norm": 1.0}, "d": {"skipped": 1.0}}
    shares = gradient_shares(metrics, {"a": "ab", "b": "ab", "c": "c", "d": "d"})
    assert shares == {"a": 0.75, "b": 0.75, "c": 0.25, "d": 0.0}  # of 3 + 1
    assert gradient_shares({"a": {"grad_norm": 0.0}}, {"a": "a"}) == {}
    assert gradient_shares({"a": {"skipped": 1.0}}, {"a": "a"}) == {}


def test_the_variance_of_a_position_is_over_the_decisions_that_count():
    # Two episodes of three turns with two decisions each; position 0 acts twice in the second episode.
    advantages = torch.tensor([[[1.0, 3.0], [5.0, 9.0], [2.0, 0.0]], [[7.0, 9.0], [9.0, 9.0], [4.0, 0.0]]])
    decisions = torch.tensor([[[1, 1], [1, 0], [1, 0]], [[1, 0], [1, 0], [1, 0]]]).bool()
    position = torch.tensor([[0, 1, 2], [0, 0, 2]])
    # 1: of 1, 3, 7, 9 with mean 5: (16 + 4 + 4 + 16) / 4; 2: of 5 alone; 3: of 2, 4.
    assert variance_by_position(advantages, decisions, position) == {"1": 10.0, "2": 0.0, "3": 1.0}


def test_an_update_reports_shares_that_sum_to_one_and_the_variance_of_each_position(duo):
    learner = Learner(duo.policy, arm("ippo").with_settings({"learning_rate": 1e-3}), temperature=1.0, seed=3)
    metrics = learner.update(duo.batch)
    agents = metrics["agents"]
    norms = {agent: found["grad_norm"] for agent, found in agents.items()}
    for agent, found in agents.items():
        assert found["grad_share"] == pytest.approx(norms[agent] / sum(norms.values()))
    # In a duo each position is one agent.
    spread = [agents[agent]["advantage_std"] ** 2 for agent in ("reasoner_0", "actor_0")]
    assert list(metrics["advantage_variance_by_position"].values()) == pytest.approx(spread, rel=1e-4)
