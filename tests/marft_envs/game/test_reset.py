"""Reset: seeds, indices, copies in the middle of an episode, and the same episode in every process."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import marft_envs
from marft_envs import FlexMG
from tests.marft_envs.game.echo import ABC, WORDS, Echo, play, team


def test_seed_none_continues_the_stream_and_an_index_selects_the_problem():
    env = marft_envs.math_v0.env()

    def index(**reset):
        env.reset(**reset)
        return env.unwrapped.problem.index

    first = [index(seed=4), index(), index()]
    assert first == [index(seed=4), index(), index()]
    assert len(set(first)) == 3
    assert index(seed=9, options={"index": 7, "unknown": 1}) == 7
    prompt = env.unwrapped.problem.prompt
    assert index(seed=10, options={"index": 7}) == 7
    assert env.unwrapped.problem.prompt == prompt


def test_a_seed_and_its_index_give_the_same_episode_as_the_seed():
    """Replay of a trace relies on this; with order="random" the order is drawn after the problem."""

    def order_of(**reset):
        env = FlexMG(Echo(), team("none"), order="random", rounds=4)
        play(env, dict.fromkeys(ABC, "x"), **reset)
        return env.problem.index, [turn.agent for turn in env.transcript]

    for seed in range(5):
        index, order = order_of(seed=seed)
        assert order_of(seed=seed, options={"index": index}) == (index, order)


def test_the_random_order_is_a_linear_extension_and_seeded():
    def orders(seed):
        env = FlexMG(Echo(), team([("c_0", "a_0")]), rounds=8, order="random")
        agents = [a for a, _ in play(env, WORDS, seed=seed)]
        return [tuple(agents[i : i + 3]) for i in range(0, 24, 3)]

    assert orders(1) == orders(1)
    assert len(set(orders(1))) > 1
    assert all(order.index("c_0") < order.index("a_0") for order in orders(1) + orders(2))


def test_the_reversed_order_reverses_each_generation_and_keeps_the_edges():
    env = FlexMG(Echo(), team([("c_0", "a_0")]), rounds=2, order="reversed")
    assert env.team.dependency.generations == (("b_0", "c_0"), ("a_0",))
    assert [agent for agent, _ in play(env, WORDS)] == ["c_0", "b_0", "a_0"] * 2
    env = FlexMG(Echo(), team([("a_0", "c_0"), ("b_0", "c_0")]), order="reversed")
    assert [agent for agent, _ in play(env, WORDS)] == ["b_0", "a_0", "c_0"]
    assert env.unwrapped.sibling(defer_grading=False).order == "reversed"


def test_an_episode_is_the_same_in_every_process():
    program = (
        "import marft_envs; env = marft_envs.math_v0.env(order='random', team='octet', render_mode='ansi');"
        "env.reset(seed=11); [env.step(f'text {i}') for i in range(8)]; print(env.render(), env.state())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1 and "text 7" in outputs.pop()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_an_episode_can_be_copied_in_the_middle(duplicate):
    env = marft_envs.math_v0.env(team="trio")
    env.reset(seed=5)
    env.step("a plan")
    twin = duplicate(env)
    for e, words in ((env, "left"), (twin, "right")):
        e.step(words)
    assert [t.text for t in env.unwrapped.transcript] == ["a plan", "left"]
    assert [t.text for t in twin.unwrapped.transcript] == ["a plan", "right"]
    env.reset()
    twin.reset()
    assert env.unwrapped.problem == twin.unwrapped.problem  # the state of the generator is copied too


@pytest.mark.parametrize(
    ("reset", "error", "message"),
    [
        ({"seed": "one"}, TypeError, "seed='one': got str, expected int"),
        ({"seed": 1.5}, TypeError, r"seed=1\.5: got float, expected int"),
        ({"seed": True}, TypeError, "seed=True: got bool, expected int"),
        ({"seed": -1}, ValueError, "seed=-1: expected at least 0"),
        ({"options": 7}, TypeError, r"options=7: got int, expected \{'index': 3\} or None"),
        ({"options": [("index", 7)]}, TypeError, "options=.*: got list, expected"),
        ({"options": {"index": "7"}}, TypeError, "index='7' of echo: got str, expected int"),
        ({"options": {"index": True}}, TypeError, "index=True of echo: got bool, expected int"),
        ({"options": {"index": 3}}, IndexError, "index=3 of echo: expected 0 to 2"),
    ],
)
def test_invalid_arguments_of_reset_are_errors_and_change_nothing(reset, error, message):
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    env.step("fine")
    with pytest.raises(error, match=message):
        env.reset(**reset)
    assert env.agent_selection == "b_0" and len(env.transcript) == 1


def test_numpy_integers_are_accepted():
    env = FlexMG(Echo(), team())
    env.reset(seed=np.int64(3), options={"index": np.int32(2)})
    assert env.problem.index == 2
