"""A central critic with critic_private=False reads no private parts, and nothing else changes."""

from dataclasses import replace

import pytest
import torch

from baselines.critics.features import read_reference
from baselines.ladder import arm
from baselines.policies.micro_batches import MicroBatches
from baselines.policies.weights import LoraSettings
from baselines.ppo.credit import monte_carlo_returns
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig

TASK = {"dataset": "relay", "style": "symbols", "team": "duo", "rounds": 2}


def run_with(setting, *, lora=LoraSettings(), **arguments):  # noqa: B008 - a frozen record
    return Run(
        RunConfig(
            arm="marft",
            environment_arguments={**TASK, **arguments},
            episodes=16,
            updates=1,
            evaluation_items=4,
            settings={"critic_private": setting, "normalization": "sum"},
            lora=lora,
        )
    )


def batch_of(run, change=lambda episode: episode):
    sampler = run.policy.sampler((0, 0))
    episodes = [change(episode) for episode in run.rollout(1, sampler)]
    return run.batch(episodes, sampler), episodes


def read(run, turns):
    tokenizer = run.loaded.tokenizer
    return [tokenizer.decode(turns.tokens[i][: turns.prompt_length[i]]) for i in range(len(turns))]


def with_other_numbers(episode):
    """Return the episode with the same actions after prompts with other private numbers."""
    old, other = episode.problem.private, dict.fromkeys(episode.problem.private, "9+9=")

    def changed(agent, seen):
        messages = [{**m, "content": m["content"].replace(old[agent], other[agent])} for m in seen["messages"]]
        return {**seen, "messages": tuple(messages)}

    steps = [
        replace(s, request=replace(s.request, observation=changed(s.request.agent, s.request.observation)))
        for s in episode.steps
    ]
    return replace(episode, steps=steps, problem=replace(episode.problem, private=other))


def test_its_prompts_contain_the_messages_and_no_private_number():
    run = run_with(False)
    batch, episodes = batch_of(run)
    end = run.loaded.tokenizer.eos_token
    assert (
        read(run, batch.critic_turns["reasoner_0"])[0] == end
    )  # there is no message yet, and everything else is private
    for i, prompt in enumerate(read(run, batch.critic_turns["actor_0"])):
        turns = batch.turns["actor_0"]
        own = episodes[int(turns.episode[i])].problem.private["actor_0"]
        played = read(run, turns)[i]
        assert own in played and prompt == played.replace(own, "")
    for agent, turns in batch.turns.items():
        theirs = batch.critic_turns[agent]
        assert torch.equal(turns.action_mask, theirs.action_mask) and torch.equal(turns.slot, theirs.slot)


def test_the_base_reads_its_prompts_as_a_whole_also_with_activated_adapters():
    """The position in which an adapter begins is that of the agent's own prompt."""
    run = run_with(False, lora=LoraSettings(activated=True, invocation="="))
    batch, _ = batch_of(run)
    for agent, turns in batch.turns.items():
        assert bool((turns.base_tokens > 0).all()) and not bool(batch.critic_turns[agent].base_tokens.any())


@pytest.mark.parametrize("network", ["additive", "head", "transformer"])
def test_other_private_numbers_change_no_value(network):
    for setting, same in ((False, True), (True, False)):
        run = run_with(setting)
        run.learner.critic.config = config = replace(run.learner.config, critic_network=network)
        (one, _), (other, _) = batch_of(run), batch_of(run, with_other_numbers)
        other = replace(other, turns=with_other_digits(run, other))
        a, b = (read_features(run, batch, config) for batch in (one, other))
        assert torch.equal(a, b) is same


def with_other_digits(run, batch):
    """Return the agents' turns after prompts whose first private digit is 9."""
    nine = run.loaded.tokenizer("9", add_special_tokens=False)["input_ids"][0]
    plus = run.loaded.tokenizer("+", add_special_tokens=False)["input_ids"][0]
    turns = {}
    for agent, mine in batch.turns.items():
        tokens = mine.tokens.clone()
        for i in range(len(mine)):
            at = (tokens[i, : mine.prompt_length[i]] == plus).nonzero()
            tokens[i, at - 1] = nine
        turns[agent] = replace(mine, tokens=tokens)
    return turns


def read_features(run, batch, config):
    found = read_reference(run.policy, batch, config, monte_carlo_returns(batch, config), 1.0, MicroBatches())[0]
    return found.history if config.critic_network == "transformer" else torch.cat([found.prompt, found.message], -1)


def test_the_policy_is_scored_on_its_own_prompts():
    scores = []
    for setting in (True, False):
        run = run_with(setting)
        batch, _ = batch_of(run)
        scores.append(run.learner._read(batch)[1])
    for agent in scores[0]:
        assert torch.equal(scores[0][agent], scores[1][agent])


def test_a_truncated_episode_bootstraps_from_views_without_private_parts():
    run = run_with(False, max_turns=3)
    batch, episodes = batch_of(run)
    assert batch.views is not None and episodes[0].final_state is not None
    private = {number for e in episodes for number in e.problem.private.values()}
    for agent in run.policy.agents:
        assert not any(number in prompt for prompt in read(run, batch.views.turns[agent]) for number in private)
    row = run.train_once(1)
    assert "skipped" not in row


def test_an_own_critic_always_reads_its_private_part():
    with pytest.raises(ValueError, match="critic_private=False: expected true unless critic='central'"):
        arm("ippo").with_settings({"critic_private": False})
