"""Play an episode through tianshou's PettingZooEnv. Print a report as one line of JSON. Needs a venv with tianshou."""

import json
from importlib.metadata import version

from tianshou.env import DummyVectorEnv
from tianshou.env.pettingzoo_env import PettingZooEnv

import marft_envs


def make():
    return PettingZooEnv(marft_envs.math_v0.env(dataset="relay", team="trio", rounds=2))


env = make()
observation, _ = env.reset(seed=1, options={"index": 7})
gold = env.env.unwrapped.problem.gold
turns, rewards, done = [], [], False
while not done:
    turns.append(observation["agent_id"])
    assert env.observation_space.contains(observation["obs"])
    observation, rewards, terminated, truncated, info = env.step(gold)
    done = terminated or truncated

vector = DummyVectorEnv([make, make])
first, _ = vector.reset()
print(
    json.dumps(
        {
            "version": version("tianshou"),
            "turns": turns,
            "rewards": dict(zip(env.agents, rewards, strict=True)),
            "terminated": bool(terminated),
            "vector": [o["agent_id"] for o in first],
        }
    )
)
