"""What a critic reads: nothing of the token it is asked about, and with a value head the right history."""

from dataclasses import replace

import torch

from baselines.critics.features import read_reference, with_histories
from baselines.ladder import arm
from baselines.ppo.credit import monte_carlo_returns


def read(setup, batch):
    config = arm("marft_token")
    return read_reference(setup.policy, batch, config, monte_carlo_returns(batch, config), 1.0, 128)[0]


def test_what_stands_before_a_token_tells_nothing_of_it(duo):
    """Change the second token of the actor's actions: its first two values read the same, the third another thing."""
    turns = duo.batch.turns["actor_0"]
    tokens, rows = turns.tokens.clone(), torch.arange(len(turns))
    at = turns.prompt_length + 1
    tokens[rows, at] = (tokens[rows, at] + 1) % 8
    changed = replace(duo.batch, turns={**duo.batch.turns, "actor_0": replace(turns, tokens=tokens)})
    a, b = read(duo, duo.batch).within[:, 1], read(duo, changed).within[:, 1]
    assert torch.equal(a[:, :2], b[:, :2])
    third = turns.action_mask[:, 2]
    assert third.any() and (a[:, 2] != b[:, 2]).any(-1)[third].all()


def texts(turns):
    return [turns.tokens[i][turns.token_mask[i]].tolist() for i in range(len(turns))]


def test_a_history_is_all_that_was_said_before_in_front_of_the_prompt(duo):
    first, second = (duo.batch.turns[a] for a in duo.policy.agents)
    joint = with_histories(duo.batch, duo.batch.turns, joint=True, limits=dict.fromkeys(duo.policy.agents))
    assert texts(joint["reasoner_0"]) == texts(first)
    assert texts(joint["actor_0"]) == [a + b for a, b in zip(texts(first), texts(second), strict=True)]
    longer = torch.tensor([len(x) for x in texts(first)])
    assert torch.equal(joint["actor_0"].prompt_length, second.prompt_length + longer)
    own = with_histories(duo.batch, duo.batch.turns, joint=False, limits=dict.fromkeys(duo.policy.agents))
    assert texts(own["actor_0"]) == texts(second)


def test_the_oldest_text_is_left_out_beyond_the_limit(duo):
    first, second = (texts(duo.batch.turns[a]) for a in duo.policy.agents)
    limit = max(map(len, second)) + 2
    cut = with_histories(duo.batch, duo.batch.turns, joint=True, limits=dict.fromkeys(duo.policy.agents, limit))[
        "actor_0"
    ]
    assert texts(cut) == [(a + b)[-limit:] for a, b in zip(first, second, strict=True)]
    assert bool((cut.prompt_length + cut.action_mask.sum(-1) == cut.token_mask.sum(-1)).all())
