"""The same again: after the same seed, in another process, and from a copy."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from marft_envs.testing.case import Case, EnvFn
from marft_envs.testing.checking import expect, fail
from marft_envs.testing.playing import Frame, difference, frame, frames_differ, is_dead, marker, plain, play, play_on
from marft_envs.testing.processes import in_fresh_process

_RESETS = 6


def same_seed_same_episode(case: Case) -> None:
    """Two resets with one seed give one episode: on one instance, and on a new one."""
    env, _ = case.env(ansi=True)
    first, second = play(env, seed=case.seed), play(env, seed=case.seed)
    found = frames_differ(first, second)
    expect(not found, f"two episodes after reset(seed={case.seed}) differ at {found}; expected the same")
    found = frames_differ(first, play(case.env(ansi=True)[0], seed=case.seed))
    expect(not found, f"episodes of two instances after reset(seed={case.seed}) differ at {found}; expected the same")


def no_seed_continues(case: Case) -> None:
    """reset() without a seed continues the stream that the last seed began: new problems, the same ones each time."""
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
        f"{_RESETS} resets, the first with a seed, all drew problem {first[0]}; expected a stream",
    )


def pinned_problem(case: Case) -> None:
    """options={"index": i} pins the problem whatever the seed, item i is the same twice, other keys are tolerated."""
    env, game = case.env()
    for index in case.indices:
        seen = []
        for seed in (case.seed, case.seed + 1, None):
            env.reset(seed=seed, options={"index": index, "a key nobody knows": 1})
            got = game.problem.index
            expect(got == index, f'reset(seed={seed}, options={{"index": {index}}}) gave problem {got}')
            seen.append(plain([game.problem.prompt, game.problem.private, game.problem.gold]))
        found = next((f for other in seen[1:] if (f := difference(seen[0], other))), None)
        expect(not found, f"problem {index} differs from reset to reset at {found}; expected the same item each time")
    for index in (-1, *([] if game.task.size is None else [game.task.size])):
        try:
            env.reset(seed=case.seed, options={"index": index})
        except IndexError:
            continue
        fail(f'reset(options={{"index": {index}}}) begins an episode; expected an IndexError')


def other_process(case: Case) -> None:
    """A whole episode is the same in another process with another PYTHONHASHSEED."""
    found = frames_differ(episode(case.make, case.seed), in_fresh_process(episode, case.make, case.seed))
    expect(not found, f"the episode of seed {case.seed} differs in another process at {found}; expected the same")


def episode(env_fn: EnvFn, seed: int) -> list[Frame]:
    """The frames of the episode in which everybody says a marker. Plain values, so that they can be compared."""
    env = env_fn()
    env.unwrapped.render_mode = "ansi"
    return play(env, seed=seed)


def fork(case: Case) -> None:
    """deepcopy and pickle in mid-episode: the copy goes on alike, on its own, and its next episode is the same."""
    copies: dict[str, Callable[[Any], Any]] = {
        "copy.deepcopy": copy.deepcopy,
        "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    }
    for way, copied in copies.items():
        env, game = case.reset()
        for turn in range(max(1, game.rounds * len(env.possible_agents) // 2)):
            if not is_dead(env, env.agent_selection):
                env.step(marker(turn))
        before, turn = frame(env), len(game.transcript)
        twin = copied(env)
        found = difference(before, frame(twin))
        expect(not found, f"{way} after {turn} turns changes the episode at {found}; expected an equal copy")
        ahead = play_on(twin, turn=turn)
        found = difference(before, frame(env))
        expect(not found, f"playing on a copy made by {way} changed the original at {found}; expected it untouched")
        found = frames_differ(ahead, play_on(env, turn=turn))
        expect(not found, f"the original and its copy by {way} went on differently at {found}; expected the same")
        env.reset()
        twin.reset()
        ours, theirs = game.problem.index, twin.unwrapped.problem.index
        expect(ours == theirs, f"after {way} reset() draws problem {theirs}, the original {ours}; expected the same")
