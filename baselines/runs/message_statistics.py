"""Statistics of the messages between agents, and the shuffled-message test of cooperation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from marft_envs.batch import Episode, Policy, PolicyFault, Reply, Request

_SHUFFLE = 4  # key of the random stream under a seed


def message_statistics(episodes: Sequence[Episode], agents: Sequence[str]) -> dict[str, dict[str, float]]:
    """Describe the replies of each agent in a batch of episodes.

    Args:
        episodes: Finished episodes.
        agents: The agents of the team.

    Returns:
        For each agent that replied at all, a mapping of

        * ``replies``: number of replies,
        * ``tokens``: number of generated tokens,
        * ``empty``: share of replies that are only white space,
        * ``repeated``: share of replies that equal an earlier reply of the same episode, by any agent (the agent copies
          its predecessor, or repeats itself in each round),
        * ``distinct``: number of different replies divided by the number of replies (near 0: the agent replies the same
          whatever it reads),
        * ``dropped``: number of messages that its prompts left out, because they were too long; only if it is not 0.
    """
    texts: dict[str, list[str]] = {agent: [] for agent in agents}
    repeated = dict.fromkeys(agents, 0)
    tokens = dict.fromkeys(agents, 0)
    dropped = dict.fromkeys(agents, 0)
    for episode in episodes:
        earlier: set[str] = set()
        for step in episode.steps:
            agent, text = step.request.agent, step.text.strip()
            texts[agent].append(text)
            repeated[agent] += bool(text) and text in earlier
            tokens[agent] += len(getattr(step.data, "action_ids", ()))
            dropped[agent] += getattr(step.data, "dropped_messages", 0)
            earlier.add(text)
    return {
        agent: {
            "replies": len(replies),
            "tokens": tokens[agent],
            "empty": replies.count("") / len(replies),
            "repeated": repeated[agent] / len(replies),
            "distinct": len(set(replies)) / len(replies),
            **({"dropped": dropped[agent]} if dropped[agent] else {}),
        }
        for agent, replies in texts.items()
        if replies
    }


def speakers(episodes: Sequence[Episode]) -> list[str]:
    """Return the agents whose messages another agent has read, in the order of their first message."""
    names = {
        m["name"]: None
        for episode in episodes
        for step in episode.steps
        for m in step.request.observation["messages"]
        if m["role"] == "user" and m["name"] not in ("task", "tool", step.request.agent)
    }
    return list(names)


def ignored(played: Sequence[Episode], shuffled: Sequence[Episode], changed: Collection[int]) -> float | None:
    """Return how often nobody reacted to another text in place of a speaker's message.

    Both evaluations sample with the same uniform numbers, so the first reply that differs is an effect of the message.

    Args:
        played: Episodes without shuffling.
        shuffled: Episodes on the same problems with the speaker's messages exchanged.
        changed: Indices of the problems in which a reader got another text.

    Returns:
        The share of these episodes in which every reply stayed the same; None without such an episode.
    """
    pairs = [(one, other) for one, other in zip(played, shuffled, strict=True) if one.index in changed]
    same = sum([step.text for step in one.steps] == [step.text for step in other.steps] for one, other in pairs)
    return same / len(pairs) if pairs else None


class Shuffled:
    """A policy that reads one speaker's messages from other episodes.

    Messages are exchanged between the requests of an agent in one call that contain equally many messages of the
    speaker. Each request gets those of the next one, in an order that depends on the seed and the episodes' numbers
    alone. Everything else in the observations stays.

    Args:
        policy: The policy that acts.
        speaker: The agent whose messages are exchanged.
        seed: Seed of the order.

    Attributes:
        moved: Number of messages that came from another episode.
        unmoved: Number of messages that stayed, because no other request had equally many.
        changed: Indices of the problems in which a reader got another text than the speaker's own.
    """

    def __init__(self, policy: Policy, speaker: str, seed: int) -> None:
        self.policy, self.speaker, self.seed = policy, speaker, seed
        self.moved = self.unmoved = 0
        self.changed: set[int] = set()

    def __call__(self, requests: list[Request]) -> Sequence[str | Reply | PolicyFault]:
        """Return the policy's replies to the shuffled requests."""
        groups: dict[tuple[str, int], list[int]] = {}
        for i, request in enumerate(requests):
            groups.setdefault((request.agent, len(self._positions(request))), []).append(i)
        shuffled = list(requests)
        for (_, count), members in groups.items():
            order = sorted(members, key=lambda i: self._rank(requests[i]))
            donors = order[1:] + order[:1]  # a rotation: no request gets its own messages, unless it is alone
            for i, donor in zip(order, donors, strict=True):
                shuffled[i] = self._with_messages_of(requests[i], requests[donor])
                if shuffled[i].observation["messages"] != requests[i].observation["messages"]:
                    self.changed.add(requests[i].index)
            moved = count * len(members) if len(members) > 1 else 0
            self.moved, self.unmoved = self.moved + moved, self.unmoved + count * len(members) - moved
        return self.policy(shuffled)

    def _rank(self, request: Request) -> float:
        return float(np.random.default_rng([self.seed, _SHUFFLE, request.episode]).random())

    def _positions(self, request: Request) -> list[int]:
        messages = request.observation["messages"]
        return [k for k, m in enumerate(messages) if m["role"] == "user" and m["name"] == self.speaker]

    def _with_messages_of(self, request: Request, donor: Request) -> Request:
        messages = list(request.observation["messages"])
        donated = donor.observation["messages"]
        for mine, other in zip(self._positions(request), self._positions(donor), strict=True):
            messages[mine] = {**messages[mine], "content": donated[other]["content"]}
        return replace(request, observation={**request.observation, "messages": tuple(messages)})
