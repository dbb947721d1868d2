"""One wave of a batch: gather the requests of all games, ask once for each agent, apply the replies at their turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from marft_envs.arguments import check_integer
from marft_envs.batch.episode import Counts, Episode, Policy, Reply, Request, Step
from marft_envs.batch.grader import Grader, Pending
from marft_envs.game.flex_mg import FlexMG


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """How an episode begins. number: its own in the call. index None: the environment draws it."""

    number: int
    index: int | None
    seed: int | None
    group: int
    member: int


class TurnBudget:
    """How many turns may still be played. turns None: as many as it takes."""

    def __init__(self, turns: int | None) -> None:
        self.turns = self.left = turns if turns is None else check_integer("turns", turns, 1)

    @property
    def spent(self) -> bool:
        return self.left == 0

    def take(self) -> bool:
        """Take one turn; False when none is left."""
        if self.left is None:
            return True
        if not self.left:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class LiveEpisode:
    """An environment in the middle of an episode. held: replies that wait for their agent's turn. asked: how many
    actions were asked for. grading: verdicts, or the promise of them, once it is over."""

    env: FlexMG
    episode: Episode
    held: dict[str, Step] = field(default_factory=dict)
    asked: int = 0
    grading: Pending | None = None

    @classmethod
    def begin(cls, env: FlexMG, start: EpisodeStart) -> LiveEpisode:
        """Reset ``env`` to the beginning of an episode."""
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
        return cls(env, episode)

    def request(self, agent: str) -> Request:
        """Ask for an action of ``agent``, which may act now."""
        env, episode, turn = self.env, self.episode, self.asked
        self.asked += 1
        return Request(
            episode.number, episode.index, agent, env.round, turn, env.observe(agent), episode.group, episode.member
        )

    def hold(self, request: Request, reply: str | Reply) -> None:
        """Keep a reply until it is its agent's turn."""
        text, kept = (reply.text, reply.kept) if isinstance(reply, Reply) else (reply, None)
        self.held[request.agent] = Step(request, text, kept)

    def apply(self) -> int:
        """Play the held replies while it is their agents' turn. Returns how many cannot be used: the episode, or the
        round that they were given in, is over."""
        env, held = self.env, self.held
        while held and not env.over:
            step = held.get(env.agent_selection)
            if step is None or step.request.round != env.round:
                break
            del held[step.request.agent]
            env.step(step.text)
            self.episode.steps.append(step)
        stale = [agent for agent, step in held.items() if env.over or step.request.round != env.round]
        for agent in stale:
            del held[agent]
        return len(stale)

    def submit(self, grader: Grader) -> None:
        """Begin to grade a game that is over; one that was cut is not graded."""
        cut = any(self.env.truncations.values())
        self.grading = {} if cut else grader.submit(self.env)

    def book(self, grader: Grader, counts: Counts) -> Episode:
        """The finished episode; waits for its verdicts."""
        if self.grading is None:
            self.submit(grader)
        self.env.settle(grader.collect(self.grading or {}))
        self.episode.close(self.env)
        counts.add(self.episode)
        return self.episode


def wave(ask: Callable[[str], Policy], games: Sequence[LiveEpisode], budget: TurnBudget, counts: Counts) -> None:
    """Ask for everything that can be asked for, one call an agent; then apply what is due.

    When the budget is spent in it, the games that are still unfinished end truncated.
    """
    waiting: dict[str, list[tuple[LiveEpisode, Request]]] = {}
    for game in games:
        for agent in game.env.generation:
            if agent not in game.held and budget.take():
                waiting.setdefault(agent, []).append((game, game.request(agent)))
    for agent, group in waiting.items():
        requests = [request for _, request in group]
        replies = ask(agent)(requests)
        if isinstance(replies, (str, bytes, dict)) or not isinstance(replies, Sequence):
            raise TypeError(
                f"policy returned {type(replies).__name__} for {agent}: expected a list with a str or Reply for each "
                f"of its {len(requests)} requests"
            )
        if len(replies) != len(requests):
            raise ValueError(f"policy returned {len(replies)} replies for {agent}: expected {len(requests)}")
        counts.turns += len(requests)
        for (game, request), reply in zip(group, replies, strict=True):
            game.hold(request, reply)
    for game in games:
        counts.unused += game.apply()
        if budget.spent and not game.env.over:
            counts.unused += len(game.held)
            game.env.truncate(f"the budget of {budget.turns} turns is spent")
