"""The way from env.step() to the reward is short and goes one way."""

import sys

import marft_envs


def test_from_step_to_the_rewards_are_five_calls():
    path = []

    def reward(outcome):
        frame = sys._getframe(1)
        while frame.f_code.co_name != "test_from_step_to_the_rewards_are_five_calls":
            path.append(f"{frame.f_globals['__name__'].rpartition('.')[2]}.{frame.f_code.co_name}")
            frame = frame.f_back
        return dict.fromkeys(outcome.agents, outcome.score)

    env = marft_envs.math_v0.env(reward=reward, rounds=2)
    env.reset(seed=0)
    while not env.unwrapped.over:
        env.step("7")
    assert path[::-1] == [
        "order_enforcing.step",  # env.step
        "flex_mg.step",
        "flex_mg._end_of_order",
        "flex_mg._finish",
        "flex_mg.settle",
        "scoring.agent_rewards",
    ]
