"""Play episodes through SuperSuit's wrappers of functions. Print a report as one line of JSON.

Needs a virtual environment with supersuit.
"""

import json
from importlib.metadata import version

import supersuit

import marft_envs


def play(env, action=None):
    """Play an episode with the gold or another action. Return the last rewards, and the game's first message."""
    env.reset(seed=1, options={"index": 7})
    game, rewards = env.unwrapped, {}
    first = game.transcript
    for agent in env.agent_iter():
        _, rewards[agent], terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else action or game.problem.gold)
    return rewards, first[0].text


def make():
    return marft_envs.math_v0.env(dataset="relay")


def refusal(wrap):
    """Return the name of the error that a wrapper raises; "" for none."""
    try:
        wrap().reset()
    except Exception as error:
        return type(error).__name__
    return ""


print(
    json.dumps(
        {
            "version": version("supersuit"),
            "clip_reward": play(supersuit.clip_reward_v0(make(), 0.0, 0.5))[0],
            "reward_lambda": play(supersuit.reward_lambda_v0(make(), lambda reward: 3 * reward))[0],
            "action_lambda": play(
                supersuit.action_lambda_v1(make(), lambda action, space: action.upper(), lambda space: space), "abc"
            )[1],
            "observation_lambda": play(
                supersuit.observation_lambda_v0(make(), lambda seen, space: seen, lambda space: space)
            )[0],
            "arrays": [
                refusal(lambda: supersuit.pad_observations_v0(make())),
                refusal(lambda: supersuit.frame_stack_v1(make(), 2)),
                refusal(lambda: supersuit.agent_indicator_v0(make())),
            ],
        }
    )
)
