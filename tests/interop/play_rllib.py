"""Play an episode through RLlib's PettingZooEnv. Print a report as one line of JSON. Needs a venv with ray[rllib]."""

import json

import ray
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv

import marft_envs

env = PettingZooEnv(marft_envs.math_v0.env(dataset="relay", team="trio", rounds=2))
observations, reset_infos = env.reset(seed=1, options={"index": 7})
gold = env.env.unwrapped.problem.gold
turns, rewards, done = [], {}, False
while not done:
    (agent,) = observations  # RLlib's wrapper returns only the observation of the selected agent
    turns.append(agent)
    assert env.observation_space[agent].contains(observations[agent])
    observations, rewards, terminated, truncated, _ = env.step({agent: gold})
    done = terminated["__all__"] or truncated["__all__"]
print(
    json.dumps(
        {
            "version": ray.__version__,
            "turns": turns,
            "rewards": rewards,
            "terminated": terminated["__all__"],
            "reset_infos": reset_infos,
        }
    )
)
