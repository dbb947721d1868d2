"""Play many episodes together, with one call of the policy for all agents that may act at the same time.

    runner = BatchRunner(marft_envs.math_v0.env(), size=64)
    episodes = runner.play(policy, indices=range(64))                    # one batch
    for episode in runner.stream(policy, episodes=10_000, seed=0): ...   # an environment that is free begins the next

A policy is ``policy(requests) -> list of str | Reply``, with one entry for each request, or a mapping from agent to
such a policy. A ``Reply`` can carry data next to the text, such as token ids and log-probabilities. A ``PolicyFault``
in place of a reply, for example for an endpoint's 429, ends that episode without a score; the others are played on.

The runner plays in waves. In a *wave*, it requests an action from all agents that may act now
(``env.unwrapped.generation``) in all episodes, and calls each policy once, with the requests of all agents that it acts
for; those of an agent follow one another. One policy without a mapping acts for all agents. In a mapping, agents with
the same object share a call. Only then does the runner play the actions, each at its agent's turn. So agents of the
same generation never see each other's actions. If an action ends the episode, the remaining actions of the wave are
discarded (``counts.discarded``).

With an executor, finished episodes are graded while the others are played (see ``grader.py``). This package does not
import torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import numpy as np

from marft_envs.arguments import check_callable, check_integer
from marft_envs.batch.episode import Counts, Episode, Policies, Policy, Reply, Request, Step
from marft_envs.batch.grader import ExecutorSource, Grader
from marft_envs.batch.waves import EpisodeStart, LiveEpisode, TurnBudget, play_wave
from marft_envs.game.flex_mg import FlexMG
from marft_envs.task import UNLIMITED, Task
from marft_envs.team.team import Team

_PROBLEMS, _SEEDS = 0, 1
"""Keys of the two random streams under a seed: indices of problems, and seeds of environments."""


class BatchRunner:
    """Copies of an environment that play episodes together.

    If the policy raises another exception than ``PolicyFault``, it propagates. The episodes that had finished by then,
    and that the call had not returned yet, are graded and stored in ``finished``. The runner can be used again.

    Args:
        env: The environment; all copies have its task, team and settings.
        size: The number of copies.
        executor: Where grading runs: an Executor, or a function that makes one (the runner replaces it after a killed
            worker broke it, and ``close`` shuts it down), or None to grade in the calling thread.

    Attributes:
        counts: Totals over all calls.
        finished: The finished episodes of a call that raised.

    Raises:
        TypeError: ``env`` is not an environment of this package, or ``size`` or ``executor`` has the wrong type.
        ValueError: ``size`` is less than 1.
    """

    def __init__(self, env: Any, size: int, *, executor: ExecutorSource = None) -> None:
        game = getattr(env, "unwrapped", None)
        if not isinstance(game, FlexMG):
            raise TypeError(f"env={env!r:.80}: expected an environment, for example from marft_envs.make")
        size = check_integer("size", size, 1)
        self.envs: list[FlexMG] = [game.sibling(defer_grading=True) for _ in range(size)]
        self.counts = Counts()
        self.finished: list[Episode] = []
        self._grader = Grader(executor)

    @property
    def task(self) -> Task:
        """The task of all environments."""
        return self.envs[0].task

    @property
    def team(self) -> Team:
        """The team of all environments."""
        return self.envs[0].team

    def close(self) -> None:
        """Shut down the executor if the runner made it. A ``with`` block calls this at its end."""
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
        """Play one batch of at most ``size`` episodes.

        Args:
            policy: One policy for all agents, or a mapping from agent to policy.
            indices: The problems, one per episode; episodes with the same index form a group. None plays ``size``
                episodes on problems that the environments draw.
            groups: Play each entry of ``indices`` this many times in a row; each entry is a group.
            seeds: One seed per episode, for what the environment draws.
            turns: The budget of turns for the whole call. Episodes that are unfinished when it is spent are truncated.

        Returns:
            The episodes in the order of ``indices``.

        Raises:
            ValueError: There are more episodes than ``size``, or the policy returned the wrong number of replies.
        """
        policy_of, budget = self._policy_lookup(policy), TurnBudget(turns)
        starts, begun = self._batch_starts(indices, groups, seeds), Counter[int]()
        live = games = [LiveEpisode.begin(env, start, begun) for env, start in zip(self.envs, starts, strict=False)]
        self.finished = []
        try:
            while live:
                play_wave(policy_of, live, budget, self.counts)
                for game in live:
                    if game.env.over:
                        game.start_grading(self._grader)
                live = [game for game in live if not game.env.over]
        except Exception:
            self.finished = [game.finish(self._grader, self.counts) for game in games if game.env.over]
            raise
        return [game.finish(self._grader, self.counts) for game in games]

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
        """Yield finished episodes in the order in which they began; a free environment begins the next episode.

        The stream ends after ``episodes``, when ``turns`` are spent, or after the last of ``indices``. Without any of
        these it never ends. Episode k plays the k-th of ``indices``, or a problem drawn from (seed, k); what the
        environment draws also comes from (seed, k). So the result does not depend on which episode finishes first.

        With an executor, the stream waits for the verdict of an episode when the *next* episode in the same
        environment ends. So the episodes that it yields between two calls of the policy do not depend on how long
        grading takes.

        Args:
            policy: One policy for all agents, or a mapping from agent to policy.
            episodes: The number of episodes.
            turns: The budget of turns for all episodes together. Unfinished episodes are truncated when it is spent.
            indices: The problems in order.
            groups: Play each problem this many times in a row, as one group. Problems without ``indices`` are then
                drawn from (seed, group).
            seed: The seed of the stream.
        """
        policy_of, budget = self._policy_lookup(policy), TurnBudget(turns)
        seed = check_integer("seed", seed, 0)
        times = 1 if groups is None else check_integer("groups", groups, 1)
        starts = self._stream_starts(None if indices is None else _iterable("indices", indices), times, seed)
        if episodes is not None:
            starts = islice(starts, check_integer("episodes", episodes, 1))
        return self._stream(policy_of, budget, starts)

    def _stream(
        self, policy_of: Callable[[str], Policy], budget: TurnBudget, starts: Iterator[EpisodeStart]
    ) -> Iterator[Episode]:
        slots, begun = [_Slot(env) for env in self.envs], Counter[int]()
        ready: dict[int, Episode] = {}  # finished episodes that wait for an earlier one, by number
        next_number = 0
        self.finished = []
        try:
            while playing := _begin_episodes(slots, starts, budget, begun):
                play_wave(policy_of, [game for _, game in playing], budget, self.counts)
                for slot, game in playing:
                    if game.env.over:
                        game.start_grading(self._grader)
                        self._finish(slot.end(game, wait=self._grader.concurrent), ready)
                while next_number in ready:
                    yield ready.pop(next_number)
                    next_number += 1
        except Exception:  # of the policy: keep what is finished, also out of order
            for slot in slots:
                if slot.playing is not None and slot.playing.env.over:
                    self._finish(slot.playing, ready)
            self._finish_all(slots, ready)
            self.finished = [ready[number] for number in sorted(ready)]
            raise
        self._finish_all(slots, ready)
        for number in sorted(ready):
            yield ready[number]

    def _finish(self, game: LiveEpisode | None, ready: dict[int, Episode]) -> None:
        if game is not None:
            ready[game.episode.number] = game.finish(self._grader, self.counts)

    def _finish_all(self, slots: list[_Slot], ready: dict[int, Episode]) -> None:
        for slot in slots:
            self._finish(slot.grading, ready)

    def _policy_lookup(self, policy: Policies) -> Callable[[str], Policy]:
        """Validate the policy, or one policy per agent. Return a function from agent to policy."""
        if not isinstance(policy, Mapping):
            check_callable("policy", policy, ("requests",), classes=True)
            return lambda agent: policy
        if set(policy) != set(self.team.agents):
            raise ValueError(f"policy has agents {sorted(policy)}: expected one for each of {list(self.team.agents)}")
        for agent in policy:
            check_callable(f"policy of {agent}", policy[agent], ("requests",), classes=True)
        return policy.__getitem__

    def _batch_starts(
        self, indices: Iterable[int] | None, groups: int | None, seeds: Iterable[int] | None
    ) -> list[EpisodeStart]:
        """Validate the arguments of ``play``. Return the episodes to begin, at most ``size``."""
        problems: list[int | None] = [None] * len(self.envs)
        if indices is not None:
            times = 1 if groups is None else check_integer("groups", groups, 1)
            chosen = list(_iterable("indices", indices))
            problems = [index for index in chosen for _ in range(times)]
            if len(problems) > len(self.envs):
                in_groups = "" if groups is None else f" in groups of {groups}"
                raise ValueError(
                    f"indices has {len(chosen)} entries{in_groups}: expected at most size={len(self.envs)}; use "
                    "stream(policy, indices=...) to play more episodes than size"
                )
        elif groups is not None:
            raise ValueError(f"groups={groups!r} without indices: expected indices=, the problems to repeat")
        env_seeds = None if seeds is None else list(_iterable("seeds", seeds))
        if env_seeds is not None and len(env_seeds) != len(problems):
            raise ValueError(f"seeds has {len(env_seeds)} entries: expected {len(problems)}, one for each episode")
        starts = []
        group_numbers: dict[Hashable, int] = {}
        members: dict[int, int] = {}
        for i, index in enumerate(problems):
            group = group_numbers.setdefault(_group_key(i, index, groups), len(group_numbers))
            members[group] = members.get(group, -1) + 1
            seed = None if env_seeds is None else check_integer("seeds", env_seeds[i], 0)
            starts.append(EpisodeStart(i, index, seed, group, members[group]))
        return starts

    def _stream_starts(self, indices: Iterable[int] | None, groups: int, seed: int) -> Iterator[EpisodeStart]:
        """Yield the episodes of ``stream``, which are a function of the arguments alone."""
        size = UNLIMITED if self.task.size is None else self.task.size
        drawn = (int(np.random.default_rng([seed, _PROBLEMS, group]).integers(size)) for group in count())
        for group, index in enumerate(drawn if indices is None else indices):
            for member in range(groups):
                number = group * groups + member
                env_seed = int(np.random.default_rng([seed, _SEEDS, number]).integers(2**31))
                yield EpisodeStart(number, index, env_seed, group, member)


class _Slot:
    """One of the ``size`` positions of a stream: the episode in play, and the previous one while it is graded.

    Both need an environment of their own, so that the previous episode can be settled after the next one has begun.
    """

    def __init__(self, env: FlexMG) -> None:
        self._envs = [env]
        self.playing: LiveEpisode | None = None
        self.grading: LiveEpisode | None = None

    def begin(self, start: EpisodeStart, begun: Counter[int]) -> None:
        """Begin an episode in an environment whose last episode is not being graded."""
        busy = self.grading.env if self.grading else None
        if self._envs == [busy]:
            self._envs.append(self._envs[0].sibling(defer_grading=True))
        self.playing = LiveEpisode.begin(next(env for env in self._envs if env is not busy), start, begun)

    def end(self, game: LiveEpisode, *, wait: bool) -> LiveEpisode | None:
        """Return the episode to finish now: ``game`` itself, or with ``wait`` the one before it, if any."""
        self.playing = None
        if not wait:
            return game
        due, self.grading = self.grading, game
        return due


def _begin_episodes(
    slots: list[_Slot], starts: Iterator[EpisodeStart], budget: TurnBudget, begun: Counter[int]
) -> list[tuple[_Slot, LiveEpisode]]:
    """Begin episodes in the free slots, but no more than there are turns left. Return all episodes in play."""
    playing = sum(slot.playing is not None for slot in slots)
    for slot in slots:
        if slot.playing is None and (budget.left is None or playing < budget.left):
            start = next(starts, None)
            if start is None:
                break
            slot.begin(start, begun)
            playing += 1
    return [(slot, slot.playing) for slot in slots if slot.playing is not None]


def _group_key(number: int, index: int | None, groups: int | None) -> Hashable:
    """Return what the episodes of a group share: the same block of ``groups``, or else the same pinned problem.

    An episode on a drawn problem is a group of its own.
    """
    if groups is not None:
        return "block", number // groups
    return ("drawn", number) if index is None else ("problem", index)


def _iterable(name: str, values: Any) -> Iterable[Any]:
    """Return ``values``, or raise TypeError unless they can be iterated over."""
    if not isinstance(values, Iterable) or isinstance(values, (str, Mapping)):
        raise TypeError(
            f"{name}={values!r:.80}: got {type(values).__name__}, expected an iterable of integers, such as range(8)"
        )
    return values


__all__ = ["BatchRunner", "Counts", "Episode", "Policies", "Policy", "Reply", "Request", "Step"]
