"""Credit assignment: the placement of scores and the bootstraps of the arms, against advantages computed by hand."""

from dataclasses import replace

import pytest
import torch

from baselines.ladder import arm
from baselines.ppo.credit import group_credit, monte_carlo_returns, team_advantages
from baselines.trajectory import Batch


def batch_of(mask, agent, rounds, score, group=None):
    """Return a batch from rows of turns. A round ends where the next turn belongs to another round."""
    mask, agent, rounds = torch.tensor(mask, dtype=torch.bool), torch.tensor(agent), torch.tensor(rounds)
    following = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
    last = mask & ~following
    round_end = last | (mask & torch.cat([rounds[:, 1:] != rounds[:, :-1], last[:, -1:]], 1))
    score = torch.tensor(score)
    final = (rounds * mask).max(-1, keepdim=True).values
    return Batch(
        agents=("a_0", "b_0"), turns={}, mask=mask, agent_index=agent, round_index=rounds * mask,
        position=torch.zeros_like(agent), round_end=round_end, terminated=last, ended=last,
        round_score=score.unsqueeze(-1) * (rounds == final) * mask, score=score,
        group=torch.zeros(len(mask), dtype=torch.long) if group is None else torch.tensor(group),
    )  # fmt: skip


def credit(name, batch, values, lam_in=1.0, penalty=None, final=None, **settings):
    decisions = batch.mask.unsqueeze(-1)
    values = torch.tensor(values).unsqueeze(-1)
    penalty = torch.zeros_like(values) if penalty is None else torch.tensor(penalty).unsqueeze(-1)
    final = torch.zeros_like(batch.round_score) if final is None else torch.tensor(final)
    config = arm(name).with_settings(settings)
    a, g = team_advantages(batch, decisions, values, penalty, config, lam_in, final)
    return a.squeeze(-1), g.squeeze(-1)


DUO = batch_of([[1, 1]], [[0, 1]], [[0, 0]], [1.0])
TWO_ROUNDS = batch_of([[1, 1, 1, 1]], [[0, 1, 0, 1]], [[0, 0, 1, 1]], [1.0])


@pytest.mark.parametrize("name", ["ippo", "mappo", "mappo_chained", "marft"])
def test_the_score_is_placed_once_for_a_chain_and_on_every_own_turn(name):
    """With V = .25 everywhere, lam = gamma = 1 and one round, every advantage is R - .25 for every arm."""
    advantages, returns = credit(name, DUO, [[0.25, 0.25]], lam=1.0)
    assert advantages.tolist() == [[0.75, 0.75]] and returns.tolist() == [[1.0, 1.0]]


def test_with_lam_in_zero_the_advantage_is_the_difference_to_the_successors_value():
    advantages, _ = credit("marft", DUO, [[0.25, 0.75]], lam_in=0.0)
    assert advantages.tolist() == [[0.5, 0.25]]


def test_own_bootstraps_ignore_the_successor():
    """gamma .5, lam 0. The first turn of a is followed by its second: .5 * .4 - .2 = 0; b: .5 * .8 - .6 = -.2."""
    advantages, _ = credit("ippo", TWO_ROUNDS, [[0.2, 0.6, 0.4, 0.8]], gamma=0.5, lam=0.0)
    torch.testing.assert_close(advantages, torch.tensor([[0.0, -0.2, 0.6, 0.2]]))


def test_an_agent_that_does_not_act_in_the_last_round_is_rewarded_on_its_last_turn():
    """a acts in round 0 only, and the score 1 comes a round later: .5 - .2 at gamma .5."""
    batch = batch_of([[1, 1, 1]], [[0, 1, 1]], [[0, 0, 1]], [1.0])
    advantages, _ = credit("ippo", batch, [[0.2, 0.0, 0.0]], gamma=0.5, lam=1.0)
    torch.testing.assert_close(advantages, torch.tensor([[0.3, 0.5, 1.0]]))


def test_a_truncated_episode_bootstraps_with_its_own_final_value():
    """Without a score, the value .9 of the next agent's final view follows: .9 - .3 on the last turn, gamma = 1."""
    batch = replace(batch_of([[1, 1]], [[0, 1]], [[0, 0]], [0.0]), terminated=torch.zeros(1, 2, dtype=torch.bool))
    advantages, _ = credit("marft", batch, [[0.1, 0.3]], lam_in=0.0, final=[[0.0, 0.9]])
    torch.testing.assert_close(advantages, torch.tensor([[0.2, 0.6]]))
    own, _ = credit("ippo", batch, [[0.1, 0.3]], lam=1.0, final=[[0.8, 0.9]])
    torch.testing.assert_close(own, torch.tensor([[0.7, 0.6]]))


def test_a_kl_penalty_is_subtracted_from_the_reward_of_its_own_turn():
    penalty = [[0.1, 0.2]]
    own, _ = credit("ippo", DUO, [[0.0, 0.0]], lam=1.0, penalty=penalty)
    torch.testing.assert_close(own, torch.tensor([[0.9, 0.8]]))
    chained, _ = credit(
        "marft", DUO, [[0.0, 0.0]], lam=1.0, penalty=penalty
    )  # the chain includes the successor's penalty
    torch.testing.assert_close(chained, torch.tensor([[0.7, 0.8]]))


def test_groups_without_variance_are_dropped():
    """Group 0: scores 0, 1: mean .5, std .5: A = -1, 1 (eps 1e-4). Group 1: all the same."""
    mask = [[1, 1]] * 4
    batch = batch_of(mask, [[0, 1]] * 4, [[0, 0]] * 4, [0.0, 1.0, 1.0, 1.0], group=[0, 0, 1, 1])
    decisions = batch.mask.unsqueeze(-1)
    advantages, keep = group_credit(batch, decisions, torch.zeros(4, 2, 1))
    assert keep.tolist() == [True, True, False, False]
    torch.testing.assert_close(advantages[:, 0, 0], torch.tensor([-0.9998, 0.9998, 0.0, 0.0]), atol=1e-6, rtol=0)
    assert torch.equal(advantages[:, 0], advantages[:, 1])


def test_a_group_whose_members_differ_in_the_penalty_alone_is_dropped():
    batch = batch_of([[1, 1]] * 2, [[0, 1]] * 2, [[0, 0]] * 2, [1.0, 1.0], group=[0, 0])
    penalty = torch.tensor([[0.0, 0.0], [0.0, 0.5]]).unsqueeze(-1)
    _, keep = group_credit(batch, batch.mask.unsqueeze(-1), penalty)
    assert keep.tolist() == [False, False], "a group without a difference in score is kept because of its KL"


def test_the_end_of_a_truncated_episode_is_discounted_to_each_turn():
    """The value .8 follows two rounds at gamma .5: .8 * .5 after the last turn, .8 * .25 a round earlier."""
    batch = replace(batch_of([[1, 1]], [[0, 0]], [[0, 1]], [0.0]), terminated=torch.zeros(1, 2, dtype=torch.bool))
    returns = monte_carlo_returns(batch, arm("ippo").with_settings({"gamma": 0.5}), torch.full((1, 2), 0.8))
    torch.testing.assert_close(
        returns, torch.tensor([[0.2, 0.4]]), msg=lambda text: f"the final value is not discounted\n{text}"
    )


def test_token_decisions_of_a_turn_form_a_chain():
    """Two turns of 2 and 1 tokens, lam = gamma = 1: every token has R - V, and the padded token 0."""
    decisions = torch.tensor([[[True, True], [True, False]]])
    values = torch.tensor([[[0.1, 0.2], [0.3, 9.0]]])
    config = arm("marft_token").with_settings({"lam": 1.0})
    zeros = torch.zeros(1, 2)
    a, _ = team_advantages(DUO, decisions, values, torch.zeros_like(values), config, 1.0, zeros)
    torch.testing.assert_close(a, torch.tensor([[[0.9, 0.8], [0.7, 0.0]]]))
    own, _ = team_advantages(
        DUO, decisions, values, torch.zeros_like(values), arm("ippo").with_settings({"credit": "token"}), 1.0, zeros
    )
    torch.testing.assert_close(own, torch.tensor([[[0.9, 0.8], [0.7, 0.0]]]))


def test_monte_carlo_returns_discount_between_rounds_only():
    # two rounds of two turns, score 1 in the last round: gamma .5 reaches the first round once
    returns = monte_carlo_returns(TWO_ROUNDS, arm("marft").with_settings({"gamma": 0.5}))
    assert returns.tolist() == [[0.5, 0.5, 1.0, 1.0]]


def test_an_agent_that_acts_twice_in_a_round_is_rewarded_once():
    """a calls a tool and replies, then b replies: with score 1 every turn has return 1, for every arm."""
    batch = batch_of([[1, 1, 1]], [[0, 0, 1]], [[0, 0, 0]], [1.0])
    for name in ("ippo", "mappo", "marft"):
        _, returns = credit(name, batch, [[0.0, 0.0, 0.0]])
        assert returns.tolist() == [[1.0, 1.0, 1.0]], name


def test_two_turns_in_a_round_are_one_time_step_of_an_agent():
    """gamma between rounds and gamma_in from the call to the reply: .8 * .5 * 1, .5 * 1, 1 at lam = 1."""
    batch = batch_of([[1, 1, 1, 1]], [[0, 0, 0, 1]], [[0, 0, 1, 1]], [1.0])
    _, returns = credit("ippo", batch, [[0.0, 0.0, 0.0, 0.0]], gamma=0.5, gamma_in=0.8, lam=1.0)
    torch.testing.assert_close(returns, torch.tensor([[0.4, 0.5, 1.0, 1.0]]))
