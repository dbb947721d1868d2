"""What a rollout hands to the learner, and the axis letters of this package.

B: episodes of a batch. K: turns of an episode, flat over rounds, in execution order. N: the turns of one agent in the
batch. L: tokens of prompt + action. T: tokens of an action. Masks are bool; True = counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from marft_envs.batch.runner import Episode


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled action as the sampler saw it. Ids are never made again from text.

    prompt_ids, action_ids: tokens, the action's with its stop token. logprobs: behaviour log-probability of each action
    token at the sampling temperature. text: what the environment gets. truncated: stopped by the length limit.
    """

    prompt_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class AgentTurns:
    """All turns of one agent in a batch, padded on the right.

    episode, slot: [N] which row b and which flat turn k. tokens, token_mask: [N, L]. prompt_length: [N].
    action_mask: [N, T]. behaviour: [N, T] the sampler's log-probs. words: [N]. truncated: [N] bool.
    """

    episode: Tensor
    slot: Tensor
    tokens: Tensor
    token_mask: Tensor
    prompt_length: Tensor
    action_mask: Tensor
    behaviour: Tensor
    words: Tensor
    truncated: Tensor

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, slots=True)
class Views:
    """What would have come next in F truncated episodes. episode: [F] their rows b. next_agent: [F] index of who would
    have acted, round: [F] in which round. turns: per agent its F prompts there, as turns without an action in slot k =
    number of turns played."""

    episode: Tensor
    next_agent: Tensor
    round: Tensor
    turns: dict[str, AgentTurns]


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole episodes. agents: the learners' order. turns: per agent. mask, agent_index, round_index, position: [B, K]
    (position = place in the round). round_end, terminated, ended: [B, K], see ``advantages.chained_gae``.
    round_score: [B, K] the team's score of that turn's round, written on every turn of it. score: [B]; 0 where the
    episode was truncated. group: [B], equal for episodes on one problem. label: [B, K] whole numbers, what is known of
    an episode before a turn; None if nobody labelled it. views: of the truncated episodes, None if there are none.
    reply_score: [B, K] what the task says of each turn's own reply; None if it was not asked. critic_turns: the same
    turns as the critic is to read them, with the views; None if that is what the agents read.
    """

    agents: tuple[str, ...]
    turns: dict[str, AgentTurns]
    mask: Tensor
    agent_index: Tensor
    round_index: Tensor
    position: Tensor
    round_end: Tensor
    terminated: Tensor
    ended: Tensor
    round_score: Tensor
    score: Tensor
    group: Tensor
    label: Tensor | None = None
    views: Views | None = None
    reply_score: Tensor | None = None
    critic_turns: dict[str, AgentTurns] | None = None

    @property
    def scored(self) -> Tensor:
        """[B] bool: the episodes that came to their end and were graded."""
        return self.terminated.any(-1)


Prompts = Callable[[str, Mapping[str, Any]], Sequence[int]]


def make_batch(
    episodes: Sequence[Episode],
    agents: Sequence[str],
    pad_id: int,
    labels: Sequence[Sequence[int]] | None = None,
    prompt: Prompts | None = None,
    reply_scores: Sequence[Sequence[float]] | None = None,
) -> Batch:
    """Pad episodes, whose steps kept a ``Generation``, into tensors. Un-padding gives the episodes back.

    labels: what is known of each episode before each of its turns (``Task.progress``); for the ceiling of the critic's
    explained variance, which nothing is trained on. prompt: (agent, observation) -> the ids that its policy would read;
    needed where an outside limit has cut an episode, whose final views stand in for its score. reply_scores: of each
    turn's own reply (``replies.reply_scores``). Raises ValueError for no
    episodes, and for one that was neither graded nor cut, or cannot be bootstrapped: drop and count those before.
    """
    if not episodes:
        raise ValueError("episodes=[]: expected at least one graded episode")
    for episode in episodes:
        if episode.not_graded and (episode.final_state is None or prompt is None or not episode.steps):
            raise ValueError(f"episode of problem {episode.index} was not graded ({episode.not_graded}): drop it first")
    shape = (len(episodes), max(len(e.steps) for e in episodes))
    tables = {name: torch.zeros(shape, dtype=torch.long) for name in ("agent", "round", "position")}
    flags = {name: torch.zeros(shape, dtype=torch.bool) for name in ("mask", "round_end", "terminated", "ended")}
    round_score = torch.zeros(shape)
    places: dict[str, list[tuple[int, int]]] = {agent: [] for agent in agents}
    for b, episode in enumerate(episodes):
        rounds = [step.request.round for step in episode.steps]
        last = len(rounds) - 1
        for k, step in enumerate(episode.steps):
            places[step.request.agent].append((b, k))
            tables["agent"][b, k] = agents.index(step.request.agent)
            tables["round"][b, k] = rounds[k]
            tables["position"][b, k] = k - rounds.index(rounds[k])
            flags["mask"][b, k] = True
            following = rounds[k + 1] if k < last else episode.final_state.round if episode.final_state else None
            flags["round_end"][b, k] = following != rounds[k]
            if rounds[k] == rounds[last]:
                round_score[b, k] = episode.score
        flags["terminated"][b, last] = episode.terminated
        flags["ended"][b, last] = True
    return Batch(
        agents=tuple(agents),
        turns={agent: _agent_turns(episodes, where, pad_id) for agent, where in places.items()},
        mask=flags["mask"],
        agent_index=tables["agent"],
        round_index=tables["round"],
        position=tables["position"],
        round_end=flags["round_end"],
        terminated=flags["terminated"],
        ended=flags["ended"],
        round_score=round_score,
        score=torch.tensor([e.score for e in episodes]),
        group=torch.tensor([e.group for e in episodes]),
        label=None if labels is None else _table("labels", episodes, labels, torch.zeros(shape, dtype=torch.long)),
        views=None if prompt is None else _views(episodes, agents, pad_id, prompt),
        reply_score=None
        if reply_scores is None
        else _table("reply_scores", episodes, reply_scores, torch.zeros(shape)),
    )


def _views(episodes: Sequence[Episode], agents: Sequence[str], pad_id: int, prompt: Prompts) -> Views | None:
    cut = [(b, episode, episode.final_state) for b, episode in enumerate(episodes) if episode.final_state]
    if not cut:
        return None
    where = [(b, len(episode.steps)) for b, episode, _ in cut]
    turns = {}
    for agent in agents:
        prompts = [tuple(prompt(agent, final.observations[agent])) for _, _, final in cut]
        turns[agent] = _padded([Generation(ids, (), (), "", False) for ids in prompts], where, pad_id)
    next_agent = torch.tensor([agents.index(final.agent) for _, _, final in cut])
    rounds = torch.tensor([final.round for _, _, final in cut])
    return Views(torch.tensor([b for b, _ in where]), next_agent, rounds, turns)


def _table(name: str, episodes: Sequence[Episode], rows: Sequence[Sequence[float]], table: Tensor) -> Tensor:
    """``table`` [B, K] with a number for each turn."""
    for b, (episode, found) in enumerate(zip(episodes, rows, strict=True)):
        if len(found) != len(episode.steps):
            raise ValueError(f"{name}: {len(found)} for an episode of {len(episode.steps)} turns: expected one each")
        table[b, : len(found)] = torch.tensor(found)
    return table


def _agent_turns(episodes: Sequence[Episode], where: list[tuple[int, int]], pad_id: int) -> AgentTurns:
    return _padded([episodes[b].steps[k].data for b, k in where], where, pad_id)


def _padded(generations: Sequence[Generation], where: list[tuple[int, int]], pad_id: int) -> AgentTurns:
    n = len(generations)
    longest = max((len(g.prompt_ids) + len(g.action_ids) for g in generations), default=0)
    longest_action = max((len(g.action_ids) for g in generations), default=0)
    tokens = torch.full((n, longest), pad_id, dtype=torch.long)
    token_mask = torch.zeros((n, longest), dtype=torch.bool)
    action_mask = torch.zeros((n, longest_action), dtype=torch.bool)
    behaviour = torch.zeros((n, longest_action))
    for i, g in enumerate(generations):
        ids = torch.tensor(g.prompt_ids + g.action_ids)
        tokens[i, : len(ids)] = ids
        token_mask[i, : len(ids)] = True
        action_mask[i, : len(g.action_ids)] = True
        behaviour[i, : len(g.action_ids)] = torch.tensor(g.logprobs)
    place = torch.tensor(where, dtype=torch.long).reshape(n, 2)
    return AgentTurns(
        episode=place[:, 0],
        slot=place[:, 1],
        tokens=tokens,
        token_mask=token_mask,
        prompt_length=torch.tensor([len(g.prompt_ids) for g in generations], dtype=torch.long),
        action_mask=action_mask,
        behaviour=behaviour,
        words=torch.tensor([max(1, len(g.text.split())) for g in generations], dtype=torch.long),
        truncated=torch.tensor([g.truncated for g in generations], dtype=torch.bool),
    )


def select(turns: AgentTurns, chosen: Tensor | slice) -> AgentTurns:
    """The chosen rows of an agent's turns. chosen: [n] row numbers, [N] bool, or consecutive rows."""
    return AgentTurns(**{name: getattr(turns, name)[chosen] for name in AgentTurns.__slots__})


def concatenate(parts: Sequence[AgentTurns]) -> AgentTurns:
    """The turns of several agents as one, padded to the longest."""
    columns = {name: [getattr(part, name) for part in parts] for name in AgentTurns.__slots__}
    return AgentTurns(**{name: stack_padded(values) for name, values in columns.items()})


def stack_padded(parts: Sequence[Tensor]) -> Tensor:
    """[N_1 + N_2 + ..., ...] from [N_i] or [N_i, T_i] tensors; short rows are filled with zeros on the right."""
    if parts[0].dim() == 1:
        return torch.cat(list(parts))
    longest = max(part.shape[1] for part in parts)
    return torch.cat([functional.pad(part, (0, longest - part.shape[1])) for part in parts])


def own_turns(mine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """An agent's turns as rows of its own time index. mine: [B, K] bool -> row b, column k, keep: [B, T_m] each."""
    count = max(int(mine.sum(-1).max()), 1)
    columns = torch.argsort(~mine, dim=-1, stable=True).to(torch.long)[:, :count]
    rows = torch.arange(mine.shape[0]).unsqueeze(-1).expand_as(columns)
    return rows, columns, mine.gather(1, columns)
