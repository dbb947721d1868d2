"""Inputs of a critic: nothing of the token that it predicts, and the correct history with a value head."""

from dataclasses import replace

import torch

from baselines.critics.features import read_reference, with_histories
from baselines.ladder import arm
from baselines.policies.micro_batches import MicroBatches
from baselines.ppo.credit import monte_carlo_returns


def read(setup, batch):
    config = arm("marft_token")
    return read_reference(setup.policy, batch, config, monte_carlo_returns(batch, config), 1.0, MicroBatches())[0]


def test_the_encoding_before_a_token_does_not_depend_on_the_token(duo):
    """Changing the second token of the actor's actions changes the inputs of the third value, not of the first two."""
    turns = duo.batch.turns["actor_0"]
    tokens, rows = turns.tokens.clone(), torch.arange(len(turns))
    at = turns.prompt_length + 1
    tokens[rows, at] = (tokens[rows, at] + 1) % 8
    changed = replace(duo.batch, turns={**duo.batch.turns, "actor_0": replace(turns, tokens=tokens)})
    a, b = read(duo, duo.batch).within[:, 1], read(duo, changed).within[:, 1]
    assert torch.equal(a[:, :2], b[:, :2])
    third = turns.action_mask[:, 2]
    assert third.any() and (a[:, 2] != b[:, 2]).any(-1)[third].all()


def token_lists(turns):
    return [turns.tokens[i][turns.token_mask[i]].tolist() for i in range(len(turns))]


def test_a_history_is_all_earlier_turns_in_front_of_the_prompt(duo):
    first, second = (duo.batch.turns[a] for a in duo.policy.agents)
    joint = with_histories(duo.batch, duo.batch.turns, joint=True, limits=dict.fromkeys(duo.policy.agents))
    assert token_lists(joint["reasoner_0"]) == token_lists(first)
    assert token_lists(joint["actor_0"]) == [
        a + b for a, b in zip(token_lists(first), token_lists(second), strict=True)
    ]
    longer = torch.tensor([len(x) for x in token_lists(first)])
    assert torch.equal(joint["actor_0"].prompt_length, second.prompt_length + longer)
    own = with_histories(duo.batch, duo.batch.turns, joint=False, limits=dict.fromkeys(duo.policy.agents))
    assert token_lists(own["actor_0"]) == token_lists(second)


def test_the_oldest_tokens_are_dropped_beyond_the_limit(duo):
    first, second = (token_lists(duo.batch.turns[a]) for a in duo.policy.agents)
    limit = max(map(len, second)) + 2
    limited = with_histories(duo.batch, duo.batch.turns, joint=True, limits=dict.fromkeys(duo.policy.agents, limit))[
        "actor_0"
    ]
    assert token_lists(limited) == [(a + b)[-limit:] for a, b in zip(first, second, strict=True)]
    assert bool((limited.prompt_length + limited.action_mask.sum(-1) == limited.token_mask.sum(-1)).all())
