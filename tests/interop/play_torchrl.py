"""Play an episode of one agent through TorchRL's GymWrapper. Print a report as one line of JSON.

Needs a virtual environment with torchrl.
"""

import json
from importlib.metadata import version

import gymnasium
from torchrl.envs import GymWrapper, PettingZooWrapper

import marft_envs

single = gymnasium.make("marft/math-v0", observation="text", dataset="word_problems")
env = GymWrapper(single)
state = env.reset(seed=1)
state["action"] = single.unwrapped.env.unwrapped.problem.gold
after = env.step(state)["next"]


def refusal(make):
    """Return the name of the error that making and resetting an environment raises; "" for none."""
    try:
        make().reset()
    except Exception as error:
        return type(error).__name__
    return ""


print(
    json.dumps(
        {
            "version": version("torchrl"),
            "observation": type(state["observation"]).__name__,
            "reward": float(after["reward"]),
            "done": bool(after["done"]),
            "messages": refusal(lambda: GymWrapper(gymnasium.make("marft/math-v0"))),
            "pettingzoo": refusal(lambda: PettingZooWrapper(marft_envs.math_v0.env())),
        }
    )
)
