"""What the agents of a team say to each other, in numbers: comparison.md section 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marft_envs.batch.runner import Episode, Policy, Reply, Request

_SHUFFLE = 4  # names the random stream


def message_statistics(episodes: Sequence[Episode], agents: Sequence[str]) -> dict[str, dict[str, float]]:
    """For each agent that spoke: ``replies`` and generated ``tokens`` in all, and shares of its replies.

    empty: only white space. repeated: the same text as an earlier reply of the same episode, by whomever (an agent that
    copies its predecessor, or says the same in each round). distinct: different texts per reply over the batch (near 0:
    the agent says one thing whatever it reads).
    """
    texts: dict[str, list[str]] = {agent: [] for agent in agents}
    repeated = dict.fromkeys(agents, 0)
    tokens = dict.fromkeys(agents, 0)
    for episode in episodes:
        earlier: set[str] = set()
        for step in episode.steps:
            agent, text = step.request.agent, step.text.strip()
            texts[agent].append(text)
            repeated[agent] += bool(text) and text in earlier
            tokens[agent] += len(getattr(step.data, "action_ids", ()))
            earlier.add(text)
    return {
        agent: {
            "replies": len(said),
            "tokens": tokens[agent],
            "empty": said.count("") / len(said),
            "repeated": repeated[agent] / len(said),
            "distinct": len(set(said)) / len(said),
        }
        for agent, said in texts.items()
        if said
    }


def speakers(episodes: Sequence[Episode]) -> list[str]:
    """The agents whose texts another agent has read, in the order in which they first were."""
    heard = {
        m["name"]: None
        for episode in episodes
        for step in episode.steps
        for m in step.request.observation["messages"]
        if m["role"] == "user" and m["name"] not in ("task", "tool", step.request.agent)
    }
    return list(heard)


class Shuffled:
    """A policy that reads ``speaker``'s messages as another episode has them; everything else is its own.

    policy: who acts. speaker: whose messages change places, between the episodes in which the same agent reads equally
    many of them at the same time. Each takes those of the next in an order that is a function of the episodes' numbers
    and ``seed``. kept: messages that stayed where they were, for want of another episode.
    """

    def __init__(self, policy: Policy, speaker: str, seed: int) -> None:
        self.policy, self.speaker, self.seed = policy, speaker, seed
        self.moved = self.kept = 0

    def __call__(self, requests: list[Request]) -> Sequence[str | Reply]:
        """The replies to the shuffled requests."""
        groups: dict[int, list[int]] = {}
        for i, request in enumerate(requests):
            groups.setdefault(len(self._places(request)), []).append(i)
        shuffled = list(requests)
        for count, members in groups.items():
            order = sorted(members, key=lambda i: self._rank(requests[i]))
            donors = order[1:] + order[:1]
            for i, donor in zip(order, donors, strict=True):
                shuffled[i] = self._with_messages_of(requests[i], requests[donor])
            moved = count * len(members) if len(members) > 1 else 0
            self.moved, self.kept = self.moved + moved, self.kept + count * len(members) - moved
        return self.policy(shuffled)

    def _rank(self, request: Request) -> float:
        return float(np.random.default_rng([self.seed, _SHUFFLE, request.episode]).random())

    def _places(self, request: Request) -> list[int]:
        messages = request.observation["messages"]
        return [k for k, m in enumerate(messages) if m["role"] == "user" and m["name"] == self.speaker]

    def _with_messages_of(self, request: Request, donor: Request) -> Request:
        messages = list(request.observation["messages"])
        theirs = donor.observation["messages"]
        for mine, other in zip(self._places(request), self._places(donor), strict=True):
            messages[mine] = {**messages[mine], "content": theirs[other]["content"]}
        return replace(request, observation={**request.observation, "messages": tuple(messages)})
