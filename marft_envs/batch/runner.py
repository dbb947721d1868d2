"""Many episodes in lockstep, grouped by agent: one call of the policy for all that wait for the same role.

    runner = BatchRunner(marft_envs.math_v0.env(), size=64)
    episodes = runner.play(policy, indices=range(64))                    # one batch
    for episode in runner.stream(policy, episodes=10_000, seed=0): ...   # a stream: freed environments start the next

A policy is ``policy(requests) -> list of str | Reply``, one for each request, or a mapping from agent to such a policy;
a ``Reply`` carries, beside the text, whatever the policy wants kept (token ids, log-probs).

One *wave*: every live episode asks for all agents that may act now (``env.unwrapped.generation``), the requests are
grouped by agent, the policy is called once for each group, and only then the actions are applied, each at its turn. So
agents of one generation are asked side by side, and none sees another's action. A reply that its episode has ended
without is dropped and counted (``counts.unused``).

Grading is settled apart from stepping: with an executor it runs beside the generation of the episodes that still play
(see ``grading.py``). Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import numpy as np

from marft_envs.arguments import check_callable, check_integer
from marft_envs.batch.episode import Counts, Episode, Policies, Policy, Reply, Request, Step
from marft_envs.batch.grader import ExecutorSource, Grader
from marft_envs.batch.waves import EpisodeStart, LiveEpisode, TurnBudget, wave
from marft_envs.game.flex_mg import FlexMG
from marft_envs.task import UNLIMITED, Task
from marft_envs.team.team import Team

_PROBLEMS, _SEEDS = 0, 1  # names of the random streams under a seed


class BatchRunner:
    """``size`` environments like ``env`` (same task, team and settings), played together as often as you like.

    executor: where grading runs, beside the play: an Executor, or a function that makes one, which the runner then
    replaces when a killed worker breaks it (``close`` shuts it down); None grades in the calling thread.

    If the policy raises, the error passes through; episodes that had finished, and that the call had not handed out
    yet, are graded and lie in ``finished``. The runner can be used again. ``counts`` adds up over all calls.
    """

    def __init__(self, env: Any, size: int, *, executor: ExecutorSource = None) -> None:
        game = getattr(env, "unwrapped", None)
        if not isinstance(game, FlexMG):
            raise TypeError(f"env={env!r:.80}: expected an environment, as from marft_envs.make")
        size = check_integer("size", size, 1)
        self.envs: list[FlexMG] = [game.sibling(defer_grading=True) for _ in range(size)]
        self.counts = Counts()
        self.finished: list[Episode] = []
        self._grader = Grader(executor)

    @property
    def task(self) -> Task:
        """The task that all of them play."""
        return self.envs[0].task

    @property
    def team(self) -> Team:
        """The team that plays."""
        return self.envs[0].team

    def close(self) -> None:
        """Shut down the executor, if the runner has made it; also at the end of a ``with`` block."""
        self._grader.close()

    def __enter__(self) -> BatchRunner:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def play(
        self,
        policy: Policies,
        *,
        indices: Iterable[int] | None = None,
        groups: int | None = None,
        seeds: Iterable[int] | None = None,
        turns: int | None = None,
    ) -> list[Episode]:
        """One episode for each index; all environments, with drawn problems, where it is None.

        indices: the problems; a repeated one makes a group. groups: play each index so many times, one after the other,
        every entry of ``indices`` a group of its own. seeds: one an episode, for what the environment itself draws.
        turns: a budget for the whole call; what is unfinished when it is spent ends truncated. At most ``size``
        episodes, returned in the order of ``indices``. Raises ValueError if the policy returns the wrong number.
        """
        ask, budget = self._policy(policy), TurnBudget(turns)
        starts = self._starts(indices, groups, seeds)
        live = games = [LiveEpisode.begin(env, start) for env, start in zip(self.envs, starts, strict=False)]
        self.finished = []
        try:
            while live:
                wave(ask, live, budget, self.counts)
                for game in live:
                    if game.env.over:
                        game.submit(self._grader)
                live = [game for game in live if not game.env.over]
        except Exception:
            self.finished = [game.book(self._grader, self.counts) for game in games if game.env.over]
            raise
        return [game.book(self._grader, self.counts) for game in games]

    def stream(
        self,
        policy: Policies,
        *,
        episodes: int | None = None,
        turns: int | None = None,
        indices: Iterable[int] | None = None,
        groups: int | None = None,
        seed: int = 0,
    ) -> Iterator[Episode]:
        """Finished episodes, in the order in which they were begun; an environment that is free begins the next one.

        It ends after ``episodes``, when ``turns`` (a budget for all of them together) is spent, or when ``indices`` are
        played; without any of these it does not end. Episode k plays the next of ``indices``, or a problem drawn from
        (seed, k); with ``groups``, so many episodes in a row play one problem, drawn from (seed, group). What the
        environment draws comes from (seed, k), too. Nothing of this depends on which episode finishes first.

        With an executor a verdict is waited for when the *next* episode in the same place ends, so what is handed out
        between two calls of the policy does not depend on how long grading takes.
        """
        ask, budget, seed = self._policy(policy), TurnBudget(turns), check_integer("seed", seed, 0)
        times = 1 if groups is None else check_integer("groups", groups, 1)
        starts = self._endless(None if indices is None else _iterable("indices", indices), times, seed)
        if episodes is not None:
            starts = islice(starts, check_integer("episodes", episodes, 1))
        return self._stream(ask, budget, starts)

    def _stream(
        self, ask: Callable[[str], Policy], budget: TurnBudget, starts: Iterator[EpisodeStart]
    ) -> Iterator[Episode]:
        places = [_Slot(env) for env in self.envs]
        ready: dict[int, Episode] = {}
        next_number = 0
        self.finished = []
        try:
            while playing := _fill(places, starts, budget):
                wave(ask, [game for _, game in playing], budget, self.counts)
                for place, game in playing:
                    if game.env.over:
                        game.submit(self._grader)
                        self._receive(place.end(game, wait=self._grader.beside), ready)
                while next_number in ready:
                    yield ready.pop(next_number)
                    next_number += 1
        except Exception:
            for place in places:
                if place.game is not None and place.game.env.over:
                    self._receive(place.game, ready)
            self._receive_all(places, ready)
            self.finished = [ready[number] for number in sorted(ready)]
            raise
        self._receive_all(places, ready)
        for number in sorted(ready):
            yield ready[number]

    def _receive(self, game: LiveEpisode | None, ready: dict[int, Episode]) -> None:
        if game is not None:
            ready[game.episode.number] = game.book(self._grader, self.counts)

    def _receive_all(self, places: list[_Slot], ready: dict[int, Episode]) -> None:
        for place in places:
            self._receive(place.graded, ready)

    def _policy(self, policy: Policies) -> Callable[[str], Policy]:
        if not isinstance(policy, Mapping):
            check_callable("policy", policy, ("requests",), classes=True)
            return lambda agent: policy
        if set(policy) != set(self.team.agents):
            raise ValueError(f"policy has agents {sorted(policy)}: expected one for each of {list(self.team.agents)}")
        for agent in policy:
            check_callable(f"policy of {agent}", policy[agent], ("requests",), classes=True)
        return policy.__getitem__

    def _starts(
        self, indices: Iterable[int] | None, groups: int | None, seeds: Iterable[int] | None
    ) -> list[EpisodeStart]:
        """The episodes of ``play``, checked against the size."""
        problems: list[int | None] = [None] * len(self.envs)
        if indices is not None:
            times = 1 if groups is None else check_integer("groups", groups, 1)
            chosen = _several("indices", indices)
            problems = [index for index in chosen for _ in range(times)]
            if len(problems) > len(self.envs):
                grouped = "" if groups is None else f" in groups of {groups}"
                raise ValueError(f"indices has {len(chosen)} entries{grouped}: expected at most size={len(self.envs)}")
        elif groups is not None:
            raise ValueError(f"groups={groups!r} without indices: expected the problems to repeat")
        given = None if seeds is None else _several("seeds", seeds)
        if given is not None and len(given) != len(problems):
            raise ValueError(f"seeds has {len(given)} entries: expected {len(problems)}, one for each episode")
        starts = []
        number_of: dict[Hashable, int] = {}
        members: dict[int, int] = {}
        for i, index in enumerate(problems):
            group = number_of.setdefault(_group_key(i, index, groups), len(number_of))
            members[group] = members.get(group, -1) + 1
            seed = None if given is None else check_integer("seeds", given[i], 0)
            starts.append(EpisodeStart(i, index, seed, group, members[group]))
        return starts

    def _endless(self, indices: Iterable[int] | None, groups: int, seed: int) -> Iterator[EpisodeStart]:
        """The episodes of ``stream``: a function of the arguments alone."""
        size = UNLIMITED if self.task.size is None else self.task.size
        drawn = (int(np.random.default_rng([seed, _PROBLEMS, group]).integers(size)) for group in count())
        for group, index in enumerate(drawn if indices is None else indices):
            for member in range(groups):
                number = group * groups + member
                env_seed = int(np.random.default_rng([seed, _SEEDS, number]).integers(2**31))
                yield EpisodeStart(number, index, env_seed, group, member)


class _Slot:
    """A place of a stream: the game that plays and, while its verdict is awaited, the one before it. Each has an
    environment of its own, so that one can be settled after the other has begun."""

    def __init__(self, env: FlexMG) -> None:
        self._envs = [env]
        self.game: LiveEpisode | None = None
        self.graded: LiveEpisode | None = None

    def begin(self, start: EpisodeStart) -> None:
        """Begin a game in an environment that does not wait for a verdict."""
        busy = self.graded.env if self.graded else None
        if self._envs == [busy]:
            self._envs.append(self._envs[0].sibling(defer_grading=True))
        self.game = LiveEpisode.begin(next(env for env in self._envs if env is not busy), start)

    def end(self, game: LiveEpisode, *, wait: bool) -> LiveEpisode | None:
        """The game whose verdict is due: with ``wait`` the one before ``game``, if any, else ``game`` itself."""
        self.game = None
        if not wait:
            return game
        due, self.graded = self.graded, game
        return due


def _fill(places: list[_Slot], starts: Iterator[EpisodeStart], budget: TurnBudget) -> list[tuple[_Slot, LiveEpisode]]:
    """Begin the next episodes in the free places, no more of them than turns are left; then all that play."""
    playing = sum(place.game is not None for place in places)
    for place in places:
        if place.game is None and (budget.left is None or playing < budget.left):
            start = next(starts, None)
            if start is None:
                break
            place.begin(start)
            playing += 1
    return [(place, place.game) for place in places if place.game is not None]


def _group_key(place: int, index: int | None, groups: int | None) -> Hashable:
    """What the episodes of a group share: their block of ``groups``, else the pinned problem; a drawn one is alone."""
    if groups is not None:
        return "block", place // groups
    return ("drawn", place) if index is None else ("problem", index)


def _iterable(name: str, values: Any) -> Iterable[Any]:
    """``values``, or TypeError naming the argument."""
    if not isinstance(values, Iterable) or isinstance(values, (str, Mapping)):
        raise TypeError(f"{name}={values!r:.80}: got {type(values).__name__}, expected several, as in range(8)")
    return values


def _several(name: str, values: Any) -> list[Any]:
    """All of them."""
    return list(_iterable(name, values))


__all__ = ["BatchRunner", "Counts", "Episode", "Policies", "Policy", "Reply", "Request", "Step"]
