"""Trajectories: the records that a rollout passes to the learner, and the axis letters that all of baselines uses.

Axes: B episodes of a batch. K turns of an episode, flat over rounds, in execution order. N turns of one agent in a
batch. L tokens of prompt and action. T tokens of an action. F truncated episodes. Masks are bool; True means "counts".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from marft_envs.batch import Episode


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled action. Token ids are never re-encoded from text.

    Attributes:
        prompt_ids: Token ids of the prompt.
        action_ids: Token ids of the action, including the stop token.
        logprobs: Log-probability of each action token at the sampling temperature, from the sampler.
        text: The text of the action's tokens, thinking included. The environment receives the reply's text, see
            ``EngineSampler``.
        truncated: Whether the length limit ended the action.
        dropped_messages: Number of messages of the observation that the prompt left out, to fit the prompt limit.
        adapter_version: Number of optimiser steps that the agent's weights had been trained for.
        base_tokens: Number of first tokens of the prompt that the base alone read, see ``LoraSettings.activated``.
    """

    prompt_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    truncated: bool
    dropped_messages: int = 0
    adapter_version: int = 0
    base_tokens: int = 0


@dataclass(frozen=True, slots=True)
class AgentTurns:
    """All turns of one agent in a batch, padded on the right.

    Attributes:
        episode: [N] row b of the batch.
        slot: [N] index k of the turn in its episode.
        tokens: [N, L] token ids of prompt and action.
        token_mask: [N, L] bool.
        prompt_length: [N] tokens of the prompt.
        action_mask: [N, T] bool.
        behaviour: [N, T] log-probabilities from the sampler.
        words: [N] whitespace-separated words of the action, thinking included, at least 1.
        truncated: [N] bool, whether the length limit ended the action.
        base_tokens: [N] first tokens of the prompt that the base alone reads, also under an adapter.
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
    base_tokens: Tensor

    def __len__(self) -> int:
        return len(self.episode)

    def to(self, device: torch.device) -> AgentTurns:
        """Return the turns on a device."""
        return _moved(self, device)


@dataclass(frozen=True, slots=True)
class Views:
    """The agents' final observations in the F truncated episodes of a batch, from which their values are bootstrapped.

    Attributes:
        episode: [F] row b of the batch.
        next_agent: [F] index of the agent that would have acted next.
        round: [F] the round in which it would have acted.
        turns: Agent -> its F prompts, as turns without an action; ``slot`` is the number of turns of the episode.
    """

    episode: Tensor
    next_agent: Tensor
    round: Tensor
    turns: dict[str, AgentTurns]

    def to(self, device: torch.device) -> Views:
        """Return the views on a device."""
        return _moved(self, device)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of B whole episodes.

    Attributes:
        agents: Names of the agents; their order defines agent indices.
        turns: Agent -> its turns.
        mask: [B, K] bool.
        agent_index: [B, K] index of the agent that acted.
        round_index: [B, K] number of the round, from 0.
        position: [B, K] position in the round, from 0.
        round_end: [B, K] bool, see ``advantages.chained_gae``.
        terminated: [B, K] bool, see ``advantages.chained_gae``.
        ended: [B, K] bool, see ``advantages.chained_gae``.
        round_score: [B, K] the team's score of the turn's round, on every turn of the round.
        score: [B] the team's score; 0 if the episode was truncated.
        group: [B] equal for episodes on the same problem.
        label: [B, K] integers, what is known of the episode before a turn (``Task.progress``); None without labels.
        views: The final views of the truncated episodes; None if no episode was truncated.
        reply_score: [B, K] score of each turn's own reply; None if replies were not scored.
        critic_turns: Agent -> its turns as the critic reads them, in the order of ``turns``; None if it reads those.
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
        """[B] bool, True for episodes that terminated and were graded."""
        return self.terminated.any(-1)

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device, which must be that of the policies that learn from it."""
        return _moved(self, device)


Record = TypeVar("Record", AgentTurns, Views, Batch)


def _moved(record: Record, device: torch.device) -> Record:
    """Return a record with all of its tensors on a device."""

    def move(value: Any) -> Any:
        if isinstance(value, Tensor | AgentTurns | Views):
            return value.to(device)
        return {k: move(v) for k, v in value.items()} if isinstance(value, dict) else value

    return type(record)(**{name: move(getattr(record, name)) for name in record.__slots__})


Prompts = Callable[[str, Mapping[str, Any]], Sequence[int]]
"""(agent, observation) -> token ids of the prompt."""


def make_batch(
    episodes: Sequence[Episode],
    agents: Sequence[str],
    pad_id: int,
    labels: Sequence[Sequence[int]] | None = None,
    prompt: Prompts | None = None,
    reply_scores: Sequence[Sequence[float]] | None = None,
) -> Batch:
    """Pad episodes into the tensors of a batch, on the CPU. Removing the padding gives the episodes back.

    ``Batch.to`` moves a batch to the policies' device.

    Args:
        episodes: Episodes whose steps have a ``Generation`` in ``data``.
        agents: Names of the agents; their order defines agent indices.
        pad_id: Token id for padding.
        labels: For each episode, what is known of it before each of its turns (``Task.progress``). Used for the ceiling
            of explained variance only, never for training.
        prompt: (agent, observation) -> the token ids that its policy would read. Needed for truncated episodes, whose
            final views replace the score.
        reply_scores: For each episode, the score of each turn's own reply (``reply_scores.reply_scores``).

    Raises:
        ValueError: If there is no episode, or one was not graded and cannot be bootstrapped. Drop and count such
            episodes before.
    """
    _check_graded(episodes, bootstrapped=prompt is not None)
    columns = _columns(episodes, agents)
    turns_of: dict[str, list[tuple[int, int]]] = {agent: [] for agent in agents}
    for b, episode in enumerate(episodes):
        for k, step in enumerate(episode.steps):
            turns_of[step.request.agent].append((b, k))
    label = reply_score = None
    if labels is not None:
        label = _per_turn("labels", episodes, labels, torch.zeros_like(columns["agent_index"]))
    if reply_scores is not None:
        reply_score = _per_turn("reply_scores", episodes, reply_scores, torch.zeros_like(columns["round_score"]))
    return Batch(
        **columns,
        agents=tuple(agents),
        turns={agent: _agent_turns(episodes, where, pad_id) for agent, where in turns_of.items()},
        score=torch.tensor([e.score for e in episodes]),
        group=torch.tensor([e.group for e in episodes]),
        label=label,
        views=None if prompt is None else _views(episodes, agents, pad_id, prompt),
        reply_score=reply_score,
    )


def _check_graded(episodes: Sequence[Episode], *, bootstrapped: bool) -> None:
    """Raise ValueError as ``make_batch`` does. bootstrapped: Whether truncated episodes can be bootstrapped."""
    if not episodes:
        raise ValueError("episodes=[]: expected at least one graded episode")
    for episode in episodes:
        if episode.not_graded and (episode.final_state is None or not bootstrapped or not episode.steps):
            raise ValueError(
                f"the episode of problem {episode.index} was not graded ({episode.not_graded}): expected graded or "
                "truncated episodes; drop it before make_batch"
            )


def _columns(episodes: Sequence[Episode], agents: Sequence[str]) -> dict[str, Any]:
    """Return the fields of ``Batch`` that have an entry for every turn, [B, K] each."""
    shape = (len(episodes), max(len(e.steps) for e in episodes))
    indices = {name: torch.zeros(shape, dtype=torch.long) for name in ("agent_index", "round_index", "position")}
    flags = {name: torch.zeros(shape, dtype=torch.bool) for name in ("mask", "round_end", "terminated", "ended")}
    round_score = torch.zeros(shape)
    for b, episode in enumerate(episodes):
        rounds = [step.request.round for step in episode.steps]
        last = len(rounds) - 1
        for k, step in enumerate(episode.steps):
            indices["agent_index"][b, k] = agents.index(step.request.agent)
            indices["round_index"][b, k] = rounds[k]
            indices["position"][b, k] = k - rounds.index(rounds[k])
            flags["mask"][b, k] = True
            # A truncated episode would have continued in the round of its final state, which may be the present one.
            following = rounds[k + 1] if k < last else episode.final_state.round if episode.final_state else None
            flags["round_end"][b, k] = following != rounds[k]
            # The score belongs to the last round only; every turn of that round carries it.
            if rounds[k] == rounds[last]:
                round_score[b, k] = episode.score
        flags["terminated"][b, last] = episode.terminated
        flags["ended"][b, last] = True
    return {**indices, **flags, "round_score": round_score}


def _views(episodes: Sequence[Episode], agents: Sequence[str], pad_id: int, prompt: Prompts) -> Views | None:
    """Return the final views of the truncated episodes, None if there is no truncated episode."""
    truncated = [(b, episode, episode.final_state) for b, episode in enumerate(episodes) if episode.final_state]
    if not truncated:
        return None
    where = [(b, len(episode.steps)) for b, episode, _ in truncated]
    turns = {}
    for agent in agents:
        prompts = [tuple(prompt(agent, final.observations[agent])) for _, _, final in truncated]
        turns[agent] = padded_turns([Generation(ids, (), (), "", False) for ids in prompts], where, pad_id)
    next_agent = torch.tensor([agents.index(final.agent) for _, _, final in truncated])
    rounds = torch.tensor([final.round for _, _, final in truncated])
    return Views(torch.tensor([b for b, _ in where]), next_agent, rounds, turns)


def _per_turn(name: str, episodes: Sequence[Episode], rows: Sequence[Sequence[float]], result: Tensor) -> Tensor:
    """Return ``result`` [B, K] filled with the number of each turn. name: of the argument, for the error."""
    for b, (episode, found) in enumerate(zip(episodes, rows, strict=True)):
        if len(found) != len(episode.steps):
            raise ValueError(
                f"{name}: {len(found)} for an episode of {len(episode.steps)} turns: expected one per turn"
            )
        result[b, : len(found)] = torch.tensor(found)
    return result


def _agent_turns(episodes: Sequence[Episode], where: list[tuple[int, int]], pad_id: int) -> AgentTurns:
    """Return the turns ``where`` [(b, k), ...] of one agent."""
    return padded_turns([episodes[b].steps[k].data for b, k in where], where, pad_id)


def padded_turns(generations: Sequence[Generation], where: list[tuple[int, int]], pad_id: int) -> AgentTurns:
    """Return the turns of one agent from its generations, as padded tensors. where: row b and turn k of each."""
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
    indices = torch.tensor(where, dtype=torch.long).reshape(n, 2)  # reshape: an agent may have no turn
    return AgentTurns(
        episode=indices[:, 0],
        slot=indices[:, 1],
        tokens=tokens,
        token_mask=token_mask,
        prompt_length=torch.tensor([len(g.prompt_ids) for g in generations], dtype=torch.long),
        action_mask=action_mask,
        behaviour=behaviour,
        words=torch.tensor([max(1, len(g.text.split())) for g in generations], dtype=torch.long),
        truncated=torch.tensor([g.truncated for g in generations], dtype=torch.bool),
        base_tokens=torch.tensor([g.base_tokens for g in generations], dtype=torch.long),
    )


def select(turns: AgentTurns, chosen: Tensor | slice) -> AgentTurns:
    """Return some of an agent's turns.

    Args:
        turns: N turns.
        chosen: [n] row numbers, [N] bool, or a slice.
    """
    return AgentTurns(**{name: getattr(turns, name)[chosen] for name in AgentTurns.__slots__})


def concatenate(parts: Sequence[AgentTurns]) -> AgentTurns:
    """Return the turns of several agents as one record, padded to the longest."""
    columns = {name: [getattr(part, name) for part in parts] for name in AgentTurns.__slots__}
    return AgentTurns(**{name: stack_padded(values) for name, values in columns.items()})


def stack_padded(parts: Sequence[Tensor]) -> Tensor:
    """Return [N_1 + N_2 + ..., ...] from tensors [N_i] or [N_i, T_i]; short rows are padded with zeros on the right."""
    if parts[0].dim() == 1:
        return torch.cat(list(parts))
    longest = max(part.shape[1] for part in parts)
    return torch.cat([functional.pad(part, (0, longest - part.shape[1])) for part in parts])


def own_turns(mine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the indices that move an agent's turns to the front of each row, which is its own time index.

    Args:
        mine: [B, K] bool, the agent's turns.

    Returns:
        Rows b, columns k and a mask, [B, T_m] each, where T_m is the largest number of turns of the agent in a row.
    """
    count = max(int(mine.sum(-1).max()), 1)
    # A stable sort puts the agent's turns first without changing their order.
    columns = torch.argsort(~mine, dim=-1, stable=True).to(torch.long)[:, :count]
    rows = torch.arange(mine.shape[0], device=mine.device).unsqueeze(-1).expand_as(columns)
    return rows, columns, mine.gather(1, columns)
