"""Batches of rollouts: removing the padding gives the episodes back, and token ids are never re-encoded from text."""

import numpy as np
import pytest
import torch

from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.ladder import arm
from baselines.ppo.learner import Learner
from baselines.trajectory import make_batch
from marft_envs.batch import Episode
from tests.baselines.engine.generate import generate


def test_removing_the_padding_gives_the_episodes_back(duo):
    batch = duo.batch
    for agent, turns in batch.turns.items():
        for i in range(len(turns)):
            step = duo.episodes[int(turns.episode[i])].steps[int(turns.slot[i])]
            generation = step.data
            assert step.request.agent == agent
            assert turns.tokens[i][turns.token_mask[i]].tolist() == list(generation.prompt_ids + generation.action_ids)
            assert int(turns.prompt_length[i]) == len(generation.prompt_ids)
            assert int(turns.action_mask[i].sum()) == len(generation.action_ids)
            np.testing.assert_allclose(turns.behaviour[i][turns.action_mask[i]], generation.logprobs, rtol=1e-6)
    assert batch.score.tolist() == [e.score for e in duo.episodes]
    assert 0 < float(batch.score.mean()) < 1


def test_a_truncated_prompt_is_the_one_that_is_trained_on(duo):
    """A prompt leaves out its teammate's message. The batch has the sampled ids, and the same log-probabilities."""
    engine = TorchEngine(duo.policy, duo.loaded.tokenizer, Decoding(max_new_tokens=4, max_prompt_tokens=4))
    episodes = duo.runner.play(EngineSampler(engine, duo.loaded, (0, 7)), indices=range(32))
    batch = make_batch(episodes, duo.policy.agents, 0)
    turns = batch.turns["actor_0"]
    whole = EngineSampler(duo.engine, duo.loaded, None)
    for i, episode in enumerate(episodes):
        prompt = turns.tokens[i, : turns.prompt_length[i]].tolist()
        assert prompt == whole.prompt(episode.steps[1].request.observation)[-len(prompt) :]
        assert episode.steps[1].data.dropped_messages == (len(whole.prompt(episode.steps[1].request.observation)) > 4)
    assert {step.data.dropped_messages for e in episodes for step in e.steps} == {0, 1}
    learner = Learner(duo.policy, arm("marft"), temperature=1.0, seed=0)
    torch.testing.assert_close(learner.actor.token_logprobs("actor_0", turns), turns.behaviour, rtol=0, atol=2e-4)


def test_flags_of_a_one_round_duo(duo):
    batch = duo.batch
    assert batch.round_end.tolist() == batch.terminated.tolist() == batch.ended.tolist() == [[False, True]] * 32
    assert batch.position.tolist() == batch.agent_index.tolist() == [[0, 1]] * 32


def test_an_ungraded_episode_is_refused():
    with pytest.raises(ValueError, match="problem 5 was not graded"):
        make_batch([Episode(5, not_graded="the disk")], ["a_0"], 0)
    with pytest.raises(ValueError, match="at least one graded episode"):
        make_batch([], ["a_0"], 0)


def test_an_action_does_not_depend_on_the_other_episodes_of_its_batch(duo):
    """The same problems alone, and among others in another order, give the same actions."""
    sampler = EngineSampler(duo.engine, duo.loaded, (0, 7))
    alone = duo.runner.play(sampler, indices=[9, 3])
    texts = [[s.text for s in e.steps] for e in alone]
    assert texts == [[s.text for s in duo.episodes[i].steps] for i in (9, 3)]


def test_repetitions_of_a_problem_give_different_actions(duo):
    sampler = EngineSampler(duo.engine, duo.loaded, (0, 7))
    group = duo.runner.play(sampler, indices=[4] * 16)
    assert len({e.steps[0].text for e in group}) > 1


def test_an_action_without_a_stop_token_is_marked_truncated(duo):
    engine = TorchEngine(duo.policy, duo.loaded.tokenizer, Decoding(max_new_tokens=1))
    (g,) = generate(engine, "actor_0", [duo.loaded.tokenizer("7+4=", add_special_tokens=False)["input_ids"]], None)
    assert g.finish_reason == "length" and len(g.token_ids) == 1


@pytest.mark.parametrize("name", ["max_new_tokens", "temperature", "rows", "max_prompt_tokens", "prefill_tokens"])
def test_invalid_decoding_limits_are_reported(name):
    with pytest.raises(ValueError, match=f"Decoding {name}=0: expected a positive number"):
        Decoding(**{name: 0})


@pytest.mark.parametrize("greedy", [True, False])
def test_prompts_of_different_lengths_decode_as_each_alone(duo, greedy):
    """Left padding, positions and the removal of finished rows do not change an action."""
    prompts = [
        duo.loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in ("7+4=", "111|7+4=", "3|9+9=", "7+4=", "100|0+0=", "12|3+4+5+6=")
    ]
    uniforms = None if greedy else np.random.default_rng(0).random((len(prompts), 6))
    together = generate(duo.engine, "actor_0", prompts, uniforms)
    assert len({len(g.token_ids) for g in together}) > 1  # rows finish at different steps
    for i, (prompt, g) in enumerate(zip(prompts, together, strict=True)):
        (alone,) = generate(duo.engine, "actor_0", [prompt], None if greedy else uniforms[i : i + 1])
        assert alone.token_ids == g.token_ids
        np.testing.assert_allclose(alone.logprobs, g.logprobs, atol=1e-4)
