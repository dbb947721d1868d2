"""Many episodes in lockstep, grouped by agent: one call of the policy for all that wait for the same role.

    runner = BatchRunner(marft_envs.math_v0.env(), size=64)
    episodes = runner.play(policy, indices=range(64))

A policy is ``policy(requests) -> list of str | Reply``, one for each request; a ``Reply`` carries, beside the text,
whatever the policy wants kept (token ids, log-probs). Grading is settled apart from stepping: with an executor it runs
beside the generation of the episodes that still play. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from marft_envs.flex_mg import FlexMG, grade_one
from marft_envs.reward import TeamOutcome
from marft_envs.task import Task
from marft_envs.team import Team
from marft_envs.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Request:
    """One agent of one episode waits for its action.

    episode: the position in the batch. index: the problem's. turn: how many texts the episode has already.
    """

    episode: int
    index: int
    agent: str
    round: int
    turn: int
    observation: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An action's text, and whatever the policy wants to find again beside it in ``Step.kept``."""

    text: str
    kept: Any = None


Policy = Callable[[list[Request]], Sequence["str | Reply"]]


@dataclass(frozen=True, slots=True)
class Step:
    """One turn as it was played."""

    request: Request
    text: str
    kept: Any


@dataclass(slots=True)
class Episode:
    """One finished episode. outcome.score is the team's score; not_graded is the fault's reason, "" without one (such
    an episode must be kept out of training and of means, and counted); rewards are the environment's, by agent."""

    index: int
    steps: list[Step] = field(default_factory=list)
    outcome: TeamOutcome | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    terminated: bool = False
    not_graded: str = ""

    @property
    def score(self) -> float:
        """The team's score in [0, 1]; 0 for an episode that was not graded, so look at ``not_graded`` first."""
        return self.outcome.score if self.outcome else 0.0


class BatchRunner:
    """``size`` environments like ``env`` (same task, team and settings), played together as often as you like.

    executor: where grading runs, beside the play; None grades in the calling thread when all have finished.
    """

    def __init__(self, env: Any, size: int, *, executor: Executor | None = None) -> None:
        if size < 1:
            raise ValueError(f"size={size!r}: expected at least 1 environment")
        self.envs: list[FlexMG] = [env.unwrapped.sibling(defer_grading=True) for _ in range(size)]
        self.executor = executor

    @property
    def task(self) -> Task:
        """The task that all of them play."""
        return self.envs[0].task

    @property
    def team(self) -> Team:
        """The team that plays."""
        return self.envs[0].team

    def play(
        self,
        policy: Policy,
        *,
        indices: Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[Episode]:
        """One episode for each index (at most ``size``; all environments, with drawn problems, where it is None).

        indices: the problems, repeated for groups on one problem. seeds: one a episode, for what the environment itself
        draws. Returns episodes in the order of ``indices``. Raises ValueError if the policy returns the wrong number.
        """
        count = len(self.envs) if indices is None else len(indices)
        if count > len(self.envs):
            raise ValueError(f"indices has {count} entries: expected at most size={len(self.envs)}")
        envs = self.envs[:count]
        for i, env in enumerate(envs):
            options = None if indices is None else {"index": int(indices[i])}
            env.reset(seed=None if seeds is None else int(seeds[i]), options=options)
        episodes = [Episode(env.problem.index) for env in envs]
        grading: dict[int, dict[str, Future[Verdict]]] = {}
        live = list(range(count))
        while live:
            for agent, waiting in self._by_agent(envs, live).items():
                self._turn(policy, agent, waiting, envs, episodes)
            for i in live:
                if envs[i].over and self.executor is not None:
                    grading[i] = self._submit(envs[i])
            live = [i for i in live if not envs[i].over]
        for i, env in enumerate(envs):
            verdicts = {a: f.result() for a, f in grading[i].items()} if i in grading else env.grade()
            self._settle(env, verdicts, episodes[i])
        return episodes

    @staticmethod
    def _by_agent(envs: list[FlexMG], live: list[int]) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for i in live:
            groups.setdefault(envs[i].agent_selection, []).append(i)
        return groups

    @staticmethod
    def _turn(policy: Policy, agent: str, waiting: list[int], envs: list[FlexMG], episodes: list[Episode]) -> None:
        requests = [
            Request(i, envs[i].problem.index, agent, envs[i].round, len(envs[i].transcript), envs[i].observe(agent))
            for i in waiting
        ]
        replies = policy(requests)
        if len(replies) != len(requests):
            raise ValueError(f"policy returned {len(replies)} replies for {agent}: expected {len(requests)}")
        for request, reply in zip(requests, replies, strict=True):
            text, kept = (reply.text, reply.kept) if isinstance(reply, Reply) else (reply, None)
            envs[request.episode].step(text)
            episodes[request.episode].steps.append(Step(request, text, kept))

    def _submit(self, env: FlexMG) -> dict[str, Future[Verdict]]:
        assert self.executor is not None
        return {agent: self.executor.submit(grade_one, env.task, *answer) for agent, answer in env.answers().items()}

    @staticmethod
    def _settle(env: FlexMG, verdicts: dict[str, Verdict], episode: Episode) -> None:
        env.settle(verdicts)
        episode.outcome = env.outcome
        episode.rewards = dict(env.rewards)
        episode.terminated = all(env.terminations.values())
        episode.not_graded = next((info["not_graded"] for info in env.infos.values() if "not_graded" in info), "")
