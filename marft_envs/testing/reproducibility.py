"""Checks that an episode can be reproduced: with the same seed, in another process, and from a copy."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from marft_envs.testing.checking import expect, fail
from marft_envs.testing.env_case import EnvCase, EnvFn
from marft_envs.testing.episodes import (
    Frame,
    first_difference,
    first_frame_difference,
    frame,
    is_dead,
    marker,
    play,
    play_on,
    to_plain,
)
from marft_envs.testing.processes import in_fresh_process

_RESETS = 6


def same_seed_same_episode(case: EnvCase) -> None:
    """Two resets with the same seed give the same episode, on one environment and on a new one."""
    env, _ = case.env(ansi=True)
    first, second = play(env, seed=case.seed), play(env, seed=case.seed)
    found = first_frame_difference(first, second)
    expect(not found, f"two episodes after reset(seed={case.seed}) differ at {found}; expected the same")
    found = first_frame_difference(first, play(case.env(ansi=True)[0], seed=case.seed))
    expect(
        not found, f"episodes of two environments after reset(seed={case.seed}) differ at {found}; expected the same"
    )


def no_seed_continues(case: EnvCase) -> None:
    """reset() without a seed continues the random stream of the last seed: new problems, reproducibly."""
    env, game = case.env()

    def problems() -> list[int]:
        drawn = []
        for seed in (case.seed, *[None] * (_RESETS - 1)):
            env.reset(seed=seed)
            drawn.append(game.problem.index)
        return drawn

    first, second = problems(), problems()
    expect(
        first == second,
        f"after reset(seed={case.seed}) reset() drew the problems {first[1:]}, the second time {second[1:]}; "
        "expected the same, continued from the seed",
    )
    stuck = len(set(first)) == 1 and (game.task.size is None or game.task.size >= _RESETS)
    expect(
        not stuck,
        f"{_RESETS} resets, the first with a seed, all drew problem {first[0]}; expected a random stream of problems",
    )


def pinned_problem(case: EnvCase) -> None:
    """options={"index": i} gives problem i with any seed, always the same item; unknown options are ignored."""
    env, game = case.env()
    for index in case.indices:
        items = []
        for seed in (case.seed, case.seed + 1, None):
            env.reset(seed=seed, options={"index": index, "a key nobody knows": 1})
            actual = game.problem.index
            expect(actual == index, f'reset(seed={seed}, options={{"index": {index}}}) gave problem {actual}')
            items.append(to_plain([game.problem.prompt, game.problem.private, game.problem.gold]))
        found = next((f for other in items[1:] if (f := first_difference(items[0], other))), None)
        expect(not found, f"problem {index} differs from reset to reset at {found}; expected the same item each time")
    for index in (-1, *([] if game.task.size is None else [game.task.size])):
        try:
            env.reset(seed=case.seed, options={"index": index})
        except IndexError:
            continue
        fail(f'reset(options={{"index": {index}}}) begins an episode; expected an IndexError')


def other_process(case: EnvCase) -> None:
    """A whole episode is the same in another process with another PYTHONHASHSEED."""
    here, there = (
        marker_episode(case.make, case.seed),
        in_fresh_process(marker_episode, case.make, case.seed),
    )
    found = first_frame_difference(here, there)
    expect(not found, f"the episode of seed {case.seed} differs in another process at {found}; expected the same")


def marker_episode(env_fn: EnvFn, seed: int) -> list[Frame]:
    """Return the frames of the episode in which every agent replies with a marker."""
    env = env_fn()
    env.unwrapped.render_mode = "ansi"
    return play(env, seed=seed)


def fork(case: EnvCase) -> None:
    """deepcopy and pickle copy an episode in progress: equal, independent, and with the same next problem."""
    methods: dict[str, Callable[[Any], Any]] = {
        "copy.deepcopy": copy.deepcopy,
        "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    }
    for method, make_copy in methods.items():
        env, game = case.reset()
        for turn in range(max(1, game.rounds * len(env.possible_agents) // 2)):
            if not is_dead(env, env.agent_selection):
                env.step(marker(turn))
        before, turn = frame(env), len(game.transcript)
        twin = make_copy(env)
        found = first_difference(before, frame(twin))
        expect(not found, f"{method} after {turn} turns changes the episode at {found}; expected an equal copy")
        rest_of_copy = play_on(twin, turn=turn)
        found = first_difference(before, frame(env))
        expect(not found, f"playing a copy made by {method} changed the original at {found}; expected no change")
        found = first_frame_difference(rest_of_copy, play_on(env, turn=turn))
        expect(not found, f"the original and its copy by {method} continue differently at {found}; expected the same")
        env.reset()
        twin.reset()
        original, copied = game.problem.index, twin.unwrapped.problem.index
        expect(
            original == copied,
            f"after {method} reset() draws problem {copied}, in the original {original}; expected the same",
        )
