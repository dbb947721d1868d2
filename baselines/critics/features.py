"""The critic's inputs, read from the frozen reference model, and log pi_0 of every action token.

Axes: B episodes, K turns of an episode, U decisions of a turn, N turns of one agent, n turns of one forward pass,
L tokens of prompt and action, T tokens of an action, H the reference model's width, F truncated episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from baselines.critics.token_statistics import (
    FIRST_TOKENS,
    MESSAGE_STATISTICS,
    RUNNING_STATISTICS,
    message_statistics,
    running_statistics,
)
from baselines.learner_config import LearnerConfig
from baselines.policies.micro_batches import MicroBatches, in_order
from baselines.policies.policy import Policies, SharedBasePolicy, TokenScores, predicting_positions
from baselines.trajectory import AgentTurns, Batch, own_turns, select, stack_padded

MESSAGE_STATES = 1 + FIRST_TOKENS + 2
"""Hidden states in the encoding of a message: at the end of its prompt, at its first tokens and at its last token, and
the mean over its tokens."""


@dataclass(frozen=True, slots=True)
class TurnFeatures:
    """The critic's inputs for every turn of a batch. They carry no gradient, so they can be stored and replayed.

    The states and statistics are in 16 bits if the base model is, else in fp32. With b = 2 or 4 bytes, a batch has

        B K b ((1 + MESSAGE_STATES) H + MESSAGE_STATISTICS)    bytes at action level, and in addition
        B K T b (H + RUNNING_STATISTICS)                       bytes at token level.

    Attributes:
        prompt: [B, K, H] hidden state at the end of the prompt; with a "head" critic, at the end of history and prompt.
        message: [B, K, MESSAGE_STATES H + MESSAGE_STATISTICS] encoding of the turn's message.
        mask: [B, K] bool.
        agent: [B, K] index of the agent.
        round: [B, K] number of the round, from 0.
        target: [B, K] Monte-Carlo return in [0, 1].
        decisions: [B, K, U] bool, the decisions of each turn. U = 1 if the action is one decision.
        within: [B, K, T, H + RUNNING_STATISTICS] encoding of what comes before each token of the action; None if the
            action is one decision.
        history: [B, K, L] tokens of history, prompt and action, for a "transformer" critic; else None.
        length: [B, K] number of those tokens that come before the action; None like ``history``.
    """

    prompt: Tensor
    message: Tensor
    mask: Tensor
    agent: Tensor
    round: Tensor
    target: Tensor
    decisions: Tensor
    within: Tensor | None = None
    history: Tensor | None = None
    length: Tensor | None = None

    def to(self, device: torch.device) -> TurnFeatures:
        """Return the features on a device."""
        moved: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            moved[f.name] = None if value is None else value.to(device)
        return TurnFeatures(**moved)

    def of_agent(self, index: int) -> tuple[TurnFeatures, tuple[Tensor, Tensor], Tensor]:
        """Return one agent's turns along its own time index.

        Args:
            index: The agent.

        Returns:
            The features [B, T_m] of its turns, their rows and columns in [B, K], and [B, T_m] bool, False at padding.
        """
        rows, columns, keep = own_turns(self.mask & (self.agent == index))
        mine: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        mine = {name: None if x is None else x[rows, columns] for name, x in mine.items()}
        return TurnFeatures(**{**mine, "mask": keep}), (rows, columns), keep

    def followed_by(self, rows: Tensor, view: Mapping[str, Tensor], index: int) -> TurnFeatures:
        """Return some episodes with one more turn, in which an agent reads its final view and has not acted.

        Args:
            rows: [F] the episodes.
            view: Field name -> [F, ...], the fields of the additional turn that are not 0, ``round`` among them.
            index: The agent.
        """
        longer: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None:
                chosen = value[rows]
                longer[f.name] = torch.cat([chosen, torch.zeros_like(chosen[:, :1])], 1)
        for name, found in view.items():
            if found.dim() == 1:
                longer[name][:, -1] = found
            else:
                missing = max(0, found.shape[-1] - longer[name].shape[-1])
                longer[name] = functional.pad(longer[name], (0, missing))
                longer[name][:, -1, : found.shape[-1]] = found
        longer["agent"][:, -1] = index
        longer["mask"][:, -1] = longer["decisions"][:, -1, 0] = True
        return TurnFeatures(**longer)


def turn_features(hidden: Tensor, scores: TokenScores, turns: AgentTurns) -> tuple[Tensor, Tensor, Tensor]:
    """Return the reference model's encoding of n turns of one agent.

    Args:
        hidden: [n, L, H] hidden states of prompt and action under the reference model.
        scores: Its scores of the action's tokens, [n, T].
        turns: The turns.

    Returns:
        ``prompt`` [n, H], ``message`` [n, MESSAGE_STATES H + MESSAGE_STATISTICS], and ``within``
        [n, T, H + RUNNING_STATISTICS], in which the entry of token j depends on the tokens before j only.
    """
    mask, at = turns.action_mask, predicting_positions(turns)
    before = _states_at(hidden, at)  # the state that predicts each token, which is that of the token before it
    own = _states_at(hidden, (at + 1).clamp(max=hidden.shape[1] - 1)) * mask.unsqueeze(-1)
    count = mask.sum(-1)
    last = _states_at(own, (count - 1).clamp(min=0).unsqueeze(-1))
    mean = own.sum(1, keepdim=True, dtype=torch.float32) / count.clamp(min=1).view(-1, 1, 1)
    first = functional.pad(own[:, :FIRST_TOKENS], (0, 0, 0, max(FIRST_TOKENS - own.shape[1], 0)))
    states = torch.cat([before[:, :1], first, last, mean], 1).flatten(1)
    message = torch.cat([states, message_statistics(scores, mask, turns.truncated)], -1)
    return before[:, 0].float(), message, torch.cat([before, running_statistics(scores, mask)], -1)


def _states_at(hidden: Tensor, at: Tensor) -> Tensor:
    """Return the states [n, m, H] at positions ``at`` [n, m] of hidden [n, L, H]."""
    return hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))


def _stored_dtype(policy: Policies) -> torch.dtype:
    """Return the precision in which the features are stored: 16 bits if all base models have that type."""
    of_each = [next(policy.of(agent).head.parameters()).dtype for agent in policy.agents]
    return reduce(torch.promote_types, of_each)


@torch.no_grad()
def read_reference(
    policy: Policies, batch: Batch, config: LearnerConfig, target: Tensor, temperature: float, passes: MicroBatches
) -> tuple[TurnFeatures, dict[str, Tensor]]:
    """Run the frozen reference model over a batch.

    One pass is enough if the critic reads what the agents read. A second pass is needed if it reads the history before
    a turn or prompts without private parts: log pi_0 is always that of the action after the agent's own prompt.

    Args:
        policy: The policies; each turn is read by the base model of its agent. The encoding of a narrower base fills
            the first columns.
        batch: The batch.
        config: The arm's configuration.
        target: [B, K] Monte-Carlo returns.
        temperature: The sampling temperature.
        passes: Divides turns into forward passes.

    Returns:
        The features, and for each agent log pi_0 of its action tokens, [N, T].
    """
    width, shape = max(policy.hidden_sizes), batch.mask.shape
    decisions = decision_mask(batch, config)
    empty = partial(torch.zeros, dtype=_stored_dtype(policy), device=batch.mask.device)
    prompt = empty(*shape, width)
    message = empty(*shape, MESSAGE_STATES * width + MESSAGE_STATISTICS)
    within = empty(*decisions.shape, width + RUNNING_STATISTICS) if config.credit == "token" else None
    inputs, history, length = batch.critic_turns or batch.turns, None, None
    if config.critic_network == "head":
        inputs = _histories(policy, batch, inputs, config)
    elif config.critic_network == "transformer":
        history, length = _tokens(batch, _histories(policy, batch, inputs, config))
    logprobs = {}
    for agent, turns in batch.turns.items():
        own = policy.of(agent)
        rows, parts = [], []
        for chosen, part, hidden, scores in _read(own, inputs[agent], temperature, passes):
            index = part.episode, part.slot
            at_prompt, at_message, inside = turn_features(hidden, scores, part)
            prompt[(*index, slice(at_prompt.shape[-1]))] = at_prompt.to(prompt.dtype)
            message[(*index, slice(at_message.shape[-1]))] = at_message.to(message.dtype)
            if within is not None:
                within[(*index, slice(inside.shape[1]), slice(inside.shape[2]))] = inside.to(within.dtype)
            rows.append(chosen)
            parts.append(scores.logprobs)
        if inputs is not batch.turns:
            found = [(chosen, scores.logprobs) for chosen, _, _, scores in _read(own, turns, temperature, passes)]
            rows, parts = [chosen for chosen, _ in found], [part for _, part in found]
        logprobs[agent] = in_order(rows, parts) if parts else turns.behaviour
    features = TurnFeatures(
        prompt, message, batch.mask, batch.agent_index, batch.round_index, target, decisions, within, history, length
    )
    return features, logprobs


@torch.no_grad()
def read_views(policy: Policies, batch: Batch, config: LearnerConfig, passes: MicroBatches) -> list[dict[str, Tensor]]:
    """Return the critic's inputs for the final views of truncated episodes.

    Views are read exactly as the prompts of the batch are, because a bootstrap value is only comparable to values of
    the same kind of input.

    Args:
        policy: The policies.
        batch: A batch with views.
        config: The arm's configuration.
        passes: Divides turns into forward passes.

    Returns:
        For each agent, the fields of ``TurnFeatures`` of its view, [F, ...] each.
    """
    assert batch.views is not None
    turns = batch.views.turns
    if config.critic_network != "additive":
        turns = _histories(policy, batch, turns, config)
    when = {"round": batch.views.round}
    if config.critic_network == "transformer":
        return [{"history": turns[a].tokens, "length": turns[a].prompt_length} | when for a in batch.agents]
    return [{"prompt": _prompt_ends(policy.of(a), turns[a], passes)} | when for a in batch.agents]


def _histories(
    policy: Policies, batch: Batch, turns: dict[str, AgentTurns], config: LearnerConfig
) -> dict[str, AgentTurns]:
    """Return the turns with the history that the critic reads in front of each prompt."""
    limits = {agent: policy.of(agent).context_length for agent in turns}
    return with_histories(batch, turns, joint=config.critic == "central", limits=limits)


def _tokens(batch: Batch, turns: dict[str, AgentTurns]) -> tuple[Tensor, Tensor]:
    """Return the tokens of all turns [B, K, L], and how many of them come before each action [B, K]."""
    longest = max(part.tokens.shape[1] for part in turns.values())
    history = batch.agent_index.new_zeros(*batch.mask.shape, longest)
    length = torch.zeros_like(batch.agent_index)
    for part in turns.values():
        history[part.episode, part.slot, : part.tokens.shape[1]] = part.tokens
        length[part.episode, part.slot] = part.prompt_length
    return history, length


def _prompt_ends(policy: SharedBasePolicy, turns: AgentTurns, passes: MicroBatches) -> Tensor:
    """Return the reference model's hidden states [N, H] at the ends of the prompts."""
    rows, parts = [], []
    for micro_batch in passes.split(policy, turns):
        part = select(turns, micro_batch.rows)
        with policy.use(None):
            hidden = policy.hidden(part)
        rows.append(micro_batch.rows)
        parts.append(hidden[torch.arange(len(hidden), device=hidden.device), part.prompt_length - 1].float())
    return in_order(rows, parts)


def _read(
    policy: SharedBasePolicy, turns: AgentTurns, temperature: float, passes: MicroBatches
) -> Iterator[tuple[Tensor, AgentTurns, Tensor, TokenScores]]:
    """Yield the rows of each pass, their turns, and the reference model's hidden states and token scores."""
    for micro_batch in passes.split(policy, turns):
        part = select(turns, micro_batch.rows)
        with policy.use(None):
            hidden = policy.hidden(part)
            scores = policy.token_scores(hidden, part, temperature)
        yield micro_batch.rows, part, hidden, scores


def decision_mask(batch: Batch, config: LearnerConfig) -> Tensor:
    """Return [B, K, U] bool: the tokens of every action, or one decision per turn.

    Source: docs/reference/algorithms.md, sections 2 and 3.
    """
    if config.credit == "action":
        return batch.mask.unsqueeze(-1)
    longest = max(turns.action_mask.shape[1] for turns in batch.turns.values())
    mask = batch.mask.new_zeros(*batch.mask.shape, longest)
    for turns in batch.turns.values():
        mask[turns.episode, turns.slot, : turns.action_mask.shape[1]] = turns.action_mask
    return mask


def with_histories(
    batch: Batch, wanted: dict[str, AgentTurns], *, joint: bool, limits: Mapping[str, int | None]
) -> dict[str, AgentTurns]:
    """Return turns with the earlier turns of their episode in front of each prompt.

    Args:
        batch: The batch.
        wanted: The turns of each agent (those of the batch, or its final views).
        joint: Whether the history is made of the prompts and actions of all agents, or of the agent's own only.
        limits: The context length of each agent's base model in tokens; the oldest tokens are dropped beyond it. None
            means no limit.

    Returns:
        The turns of each agent with longer prompts.
    """
    tokens = {}
    for agent, turns in (batch.critic_turns or batch.turns).items():
        for i, (b, k) in enumerate(zip(turns.episode.tolist(), turns.slot.tolist(), strict=True)):
            tokens[b, k] = agent, turns.tokens[i][turns.token_mask[i]]
    return {agent: _with_history(agent, turns, tokens, joint, limits[agent]) for agent, turns in wanted.items()}


def _with_history(
    agent: str, turns: AgentTurns, tokens_of: dict[tuple[int, int], tuple[str, Tensor]], joint: bool, limit: int | None
) -> AgentTurns:
    """Return one agent's turns with histories. tokens_of: (episode, turn) -> its agent and tokens."""
    rows, prompt_length = [], turns.prompt_length.clone()
    for i, (b, k) in enumerate(zip(turns.episode.tolist(), turns.slot.tolist(), strict=True)):
        earlier = [ids for author, ids in (tokens_of[b, j] for j in range(k)) if joint or author == agent]
        own = turns.tokens[i][turns.token_mask[i]]
        history = torch.cat(earlier) if earlier else own[:0]
        room = len(history) if limit is None else max(limit - len(own), 0)
        history = history[max(len(history) - room, 0) :]
        rows.append(torch.cat([history, own]))
        prompt_length[i] += len(history)
    if not rows:
        return turns
    tokens = stack_padded([row.unsqueeze(0) for row in rows])
    lengths = torch.tensor([len(row) for row in rows], device=tokens.device).unsqueeze(-1)
    token_mask = torch.arange(tokens.shape[1], device=tokens.device) < lengths
    changed = {"tokens": tokens, "token_mask": token_mask, "prompt_length": prompt_length}
    # The base reads histories as a whole; they are no prompts that an adapter continues.
    return replace(turns, **changed, base_tokens=torch.zeros_like(turns.base_tokens))
