"""One wave of a batch: collect the requests of all episodes, call each policy once, apply the replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from marft_envs.arguments import check_integer
from marft_envs.batch.episode import Counts, Episode, Policy, PolicyFault, Reply, Request, Step
from marft_envs.batch.grader import Grader, PendingVerdicts
from marft_envs.game.flex_mg import FlexMG


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """The settings of an episode that has not begun.

    Attributes:
        number: The number of the episode in its call of ``play`` or ``stream``.
        index: The problem; None if the environment draws it.
        seed: The seed of ``reset``, or None.
        group: As in ``Request``.
        member: As in ``Request``.
    """

    number: int
    index: int | None
    seed: int | None
    group: int
    member: int


class TurnBudget:
    """The number of turns that may still be played.

    Args:
        turns: The total; None for no limit.
    """

    def __init__(self, turns: int | None) -> None:
        self.turns = self.left = turns if turns is None else check_integer("turns", turns, 1)

    @property
    def spent(self) -> bool:
        """Whether no turn is left."""
        return self.left == 0

    def take(self) -> bool:
        """Take one turn. Return False if none is left."""
        if self.left is None:
            return True
        if not self.left:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request to which the policy has no reply.

    Attributes:
        request: The request.
        reason: Why, as a sentence that names the agent.
    """

    request: Request
    reason: str


@dataclass(slots=True)
class LiveEpisode:
    """An episode in progress.

    Attributes:
        env: The environment that plays it.
        episode: The record that is returned at the end.
        repetition: As in ``Request``.
        pending: Replies that wait for their agent's turn, by agent, and requests that have none.
        requested: How many actions were requested so far.
        verdicts: The verdicts or their futures, after grading has started.
    """

    env: FlexMG
    episode: Episode
    repetition: int
    pending: dict[str, Step | Unanswered] = field(default_factory=dict)
    requested: int = 0
    verdicts: PendingVerdicts | None = None

    @classmethod
    def begin(cls, env: FlexMG, start: EpisodeStart, begun: Counter[int]) -> LiveEpisode:
        """Reset ``env`` and begin an episode.

        Args:
            env: The environment that plays it.
            start: The settings of the episode.
            begun: The number of episodes of the call so far, by the index of their problem. Updated in place.
        """
        env.reset(seed=start.seed, options=None if start.index is None else {"index": start.index})
        episode = Episode(
            env.problem.index,
            number=start.number,
            group=start.group,
            member=start.member,
            seed=start.seed,
            problem=env.problem,
            transcript=env.transcript,
        )
        repetition = begun[episode.index]
        begun[episode.index] += 1
        return cls(env, episode, repetition)

    def request(self, agent: str) -> Request:
        """Return the request for an action of ``agent``, which may act now."""
        env, episode, turn = self.env, self.episode, self.requested
        self.requested += 1
        return Request(
            episode.number, episode.index, agent, env.round, turn, env.observe(agent), episode.group, episode.member,
            self.repetition,
        )  # fmt: skip

    def add_reply(self, request: Request, reply: str | Reply | PolicyFault) -> None:
        """Store a reply, or the fault in its place, until it is its agent's turn."""
        if isinstance(reply, PolicyFault):
            self.pending[request.agent] = Unanswered(request, f"policy of {request.agent}: {reply}".rstrip(": "))
            return
        text, data = (reply.text, reply.data) if isinstance(reply, Reply) else (reply, None)
        self.pending[request.agent] = Step(request, text, data)

    def play_pending(self) -> int:
        """Play the pending replies in turn order, as far as they reach. A request without a reply ends the episode.

        Returns:
            The number of replies that were discarded, because their round or the episode is over.
        """
        env, pending = self.env, self.pending
        while pending and not env.over:
            step = pending.get(env.agent_selection)
            if step is None or step.request.round != env.round:
                break
            del pending[step.request.agent]
            if isinstance(step, Unanswered):
                env.truncate(step.reason, fault=True)
                break
            env.step(step.text)
            self.episode.steps.append(step)
        # An action can end the round or the episode while other replies of the same wave are still pending.
        stale = [agent for agent, step in pending.items() if env.over or step.request.round != env.round]
        return sum(isinstance(pending.pop(agent), Step) for agent in stale)

    def start_grading(self, grader: Grader) -> None:
        """Start to grade a game that is over. A truncated game is not graded."""
        truncated = any(self.env.truncations.values())
        self.verdicts = {} if truncated else grader.submit(self.env)

    def finish(self, grader: Grader, counts: Counts) -> Episode:
        """Wait for the verdicts, settle the game, and return the finished episode."""
        if self.verdicts is None:
            self.start_grading(grader)
        self.env.settle(grader.collect(self.verdicts or {}))
        self.episode.record_result(self.env)
        counts.add(self.episode)
        return self.episode


def play_wave(
    policy_of: Callable[[str], Policy], games: Sequence[LiveEpisode], budget: TurnBudget, counts: Counts
) -> None:
    """Request all actions that can be requested now, with one call of each policy, and play them.

    If this spends the budget, the unfinished games are truncated.

    Args:
        policy_of: Returns the policy of an agent.
        games: The episodes in progress.
        budget: The turns left for the whole call.
        counts: Updated in place.
    """
    by_agent: dict[str, list[tuple[LiveEpisode, Request]]] = {}
    for game in games:
        for agent in game.env.generation:
            if agent not in game.pending and budget.take():
                by_agent.setdefault(agent, []).append((game, game.request(agent)))
    by_policy: dict[int, list[str]] = {}
    for agent in by_agent:
        by_policy.setdefault(id(policy_of(agent)), []).append(agent)
    for agents in by_policy.values():
        group = [waiting for agent in agents for waiting in by_agent[agent]]
        replies = _replies(policy_of(agents[0]), agents, [request for _, request in group])
        unanswered = sum(isinstance(reply, PolicyFault) for reply in replies)
        counts.unanswered += unanswered
        counts.turns += len(group) - unanswered
        for (game, request), reply in zip(group, replies, strict=True):
            game.add_reply(request, reply)
    # Only now: no agent of this wave may see an action of another agent of the same wave.
    for game in games:
        counts.discarded += game.play_pending()
        if budget.spent and not game.env.over:
            counts.discarded += sum(isinstance(step, Step) for step in game.pending.values())
            game.env.truncate(f"the budget of {budget.turns} turns is spent")


def _replies(policy: Policy, agents: Sequence[str], requests: list[Request]) -> Sequence[str | Reply | PolicyFault]:
    """Call the policy of some agents and validate the number of its replies.

    A fault that it raises belongs to every request.
    """
    try:
        replies, names = policy(requests), ", ".join(agents)
    except PolicyFault as fault:
        return [fault] * len(requests)
    if isinstance(replies, (str, bytes, dict)) or not isinstance(replies, Sequence):
        raise TypeError(
            f"policy returned {type(replies).__name__} for {names}: expected a list with a str or Reply for each "
            f"of its {len(requests)} requests"
        )
    if len(replies) != len(requests):
        raise ValueError(f"policy returned {len(replies)} replies for {names}: expected {len(requests)}")
    return replies
