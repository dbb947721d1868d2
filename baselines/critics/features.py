"""What the frozen reference says of a batch: the critic's inputs, and log pi_0 of every action token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from baselines.learner_config import LearnerConfig
from baselines.policies.policy import Policies, SharedBasePolicy, TokenScores, predicting_positions, row_blocks
from baselines.trajectory import AgentTurns, Batch, own_turns, stack_padded

ACTION_STATES = 3
SCALARS = 3


@dataclass(frozen=True, slots=True)
class TurnFeatures:
    """What the frozen reference says of every turn of a batch; no gradient, so it can be kept and replayed.

    prompt: [B, K, H] hidden state at the prompt's end (with a "head" critic: of the whole history's). message: [B, K,
    (1 + ACTION_STATES) H + SCALARS]. mask: [B, K]. agent: [B, K] index. round: [B, K]. target: [B, K] Monte-Carlo
    return in [0, 1].
    decisions: [B, K, U] bool, the tokens of each action (U = 1: the action is one decision). within: [B, K, T, H +
    SCALARS] what stands before each token of the action, None where the action is one decision. history, length: for a
    "transformer" critic, [B, K, L] tokens of the history, the prompt and the action, and [B, K] how many stand before
    the action; else None.
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

    def of_agent(self, index: int) -> tuple[TurnFeatures, tuple[Tensor, Tensor], Tensor]:
        """One agent's turns as rows of its own time index, where they stand in [B, K], and which of them count."""
        rows, columns, keep = own_turns(self.mask & (self.agent == index))
        mine: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        mine = {name: None if x is None else x[rows, columns] for name, x in mine.items()}
        return TurnFeatures(**{**mine, "mask": keep}), (rows, columns), keep

    def followed_by(self, rows: Tensor, view: Mapping[str, Tensor], index: int) -> TurnFeatures:
        """The episodes ``rows`` [F] with one more turn: agent ``index`` reads ``view`` and has not acted. view: the
        fields that are not 0 there, [F, ...] each, the round among them."""
        longer: dict[str, Any] = {}
        for f in fields(self):
            table = getattr(self, f.name)
            if table is not None:
                chosen = table[rows]
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


def turn_features(hidden: Tensor, scores: TokenScores, turns: AgentTurns, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
    """The reference's reading of some turns of one agent: prompt [n, H], message [n, (1 + ACTION_STATES) H + 3], and
    within [n, T, H + 3], which for token j tells of the tokens before it only.

    hidden: [n, L, H] of prompt + action under the reference. scores: its token scores, [n, T].
    """
    mask = turns.action_mask[rows]
    at = predicting_positions(turns, rows)
    states = hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).float()
    prompt = states[:, 0]
    # Position prompt_length + j holds action token j, and that is where token j + 1 is predicted.
    following = states[:, 1 : 1 + ACTION_STATES] * mask[:, 1 : 1 + ACTION_STATES].unsqueeze(-1)
    missing = ACTION_STATES - following.shape[1]
    following = functional.pad(following, (0, 0, 0, missing))
    whole = _scalars(scores.logprobs.sum(-1), scores.gap.sum(-1))
    # Shifted, not "sum minus own": rounding would let the token itself through.
    before = _scalars(*(functional.pad(x.cumsum(-1)[:, :-1], (1, 0)) for x in (scores.logprobs, scores.gap)))
    return prompt, torch.cat([prompt, following.flatten(1), whole], -1), torch.cat([states, before], -1)


def _scalars(logprob: Tensor, gap: Tensor) -> Tensor:
    """[..., 3]: log-probability, distance from the mode, whether it is the mode; scaled."""
    return torch.stack([logprob.clamp(min=-20) / 5, gap.clamp(max=20) / 5, (gap < 1e-6).float()], -1)


@torch.no_grad()
def read_reference(
    policy: Policies, batch: Batch, config: LearnerConfig, target: Tensor, temperature: float, rows: int
) -> tuple[TurnFeatures, dict[str, Tensor]]:
    """One pass of the frozen reference over the batch (a second one where the critic reads something else than the
    agents do: the history before a turn, or prompts without private parts).

    Every turn is read by the base of its own agent; what a smaller base says fills the first columns. target: [B, K].
    rows: turns per forward pass. -> features, {agent: log pi_0 [N, T]}
    """
    width, shape = max(policy.hidden_sizes), batch.mask.shape
    decisions = decision_mask(batch, config)
    prompt = torch.zeros(*shape, width)
    message = torch.zeros(*shape, (1 + ACTION_STATES) * width + SCALARS)
    within = torch.zeros(*decisions.shape, width + SCALARS) if config.credit == "token" else None
    inputs, history, length = batch.critic_turns or batch.turns, None, None
    if config.critic_network == "head":
        inputs = _histories(policy, batch, inputs, config)
    elif config.critic_network == "transformer":
        history, length = _tokens(batch, _histories(policy, batch, inputs, config))
    logprobs = {}
    for agent, turns in batch.turns.items():
        parts: list[Tensor] = []
        own = policy.of(agent)
        for block, hidden, scores in _passes(own, inputs[agent], temperature, rows):
            place = turns.episode[block], turns.slot[block]
            at_prompt, at_message, inside = turn_features(hidden, scores, inputs[agent], block)
            prompt[(*place, slice(at_prompt.shape[-1]))] = at_prompt
            message[(*place, slice(at_message.shape[-1]))] = at_message
            if within is not None:
                within[(*place, slice(inside.shape[1]), slice(inside.shape[2]))] = inside
            parts.append(scores.logprobs)
        if inputs is not batch.turns:
            parts = [scores.logprobs for _, _, scores in _passes(own, turns, temperature, rows)]
        logprobs[agent] = torch.cat(parts) if parts else turns.behaviour
    features = TurnFeatures(
        prompt, message, batch.mask, batch.agent_index, batch.round_index, target, decisions, within, history, length
    )
    return features, logprobs


@torch.no_grad()
def read_views(policy: Policies, batch: Batch, config: LearnerConfig, rows: int) -> list[dict[str, Tensor]]:
    """The final views of the truncated episodes, read as the prompts that are trained on are: for each agent, the
    fields of ``TurnFeatures`` that its view has, [F, ...]."""
    assert batch.views is not None
    turns = batch.views.turns
    if config.critic_network != "additive":
        turns = _histories(policy, batch, turns, config)
    when = {"round": batch.views.round}
    if config.critic_network == "transformer":
        return [{"history": turns[a].tokens, "length": turns[a].prompt_length} | when for a in batch.agents]
    return [{"prompt": torch.cat(list(_prompt_ends(policy.of(a), turns[a], rows)))} | when for a in batch.agents]


def _histories(
    policy: Policies, batch: Batch, turns: dict[str, AgentTurns], config: LearnerConfig
) -> dict[str, AgentTurns]:
    """The turns behind the history that the critic is to read."""
    limits = {agent: policy.of(agent).context_length for agent in turns}
    return with_histories(batch, turns, joint=config.critic == "central", limits=limits)


def _tokens(batch: Batch, turns: dict[str, AgentTurns]) -> tuple[Tensor, Tensor]:
    """All turns' tokens [B, K, L] and how many stand before each action [B, K]."""
    longest = max(part.tokens.shape[1] for part in turns.values())
    history = torch.zeros(*batch.mask.shape, longest, dtype=torch.long)
    length = torch.zeros(batch.mask.shape, dtype=torch.long)
    for part in turns.values():
        history[part.episode, part.slot, : part.tokens.shape[1]] = part.tokens
        length[part.episode, part.slot] = part.prompt_length
    return history, length


def _prompt_ends(policy: SharedBasePolicy, turns: AgentTurns, rows: int) -> Iterator[Tensor]:
    """The reference's hidden states [n, H] at the prompts' ends, block by block."""
    for block in row_blocks(len(turns), rows):
        with policy.use(None):
            hidden = policy.hidden(turns, block)
        yield hidden[torch.arange(len(hidden)), turns.prompt_length[block] - 1].float()


def _passes(
    policy: SharedBasePolicy, turns: AgentTurns, temperature: float, rows: int
) -> Iterator[tuple[slice, Tensor, TokenScores]]:
    """The reference over blocks of rows: the block, its hidden states and its token scores."""
    for block in row_blocks(len(turns), rows):
        with policy.use(None):
            hidden = policy.hidden(turns, block)
            scores = policy.token_scores(hidden, turns, block, temperature)
        yield block, hidden, scores


def decision_mask(batch: Batch, config: LearnerConfig) -> Tensor:
    """[B, K, U] bool: the tokens of every action, or one decision a turn (algorithms.md 2 and 3)."""
    if config.credit == "action":
        return batch.mask.unsqueeze(-1)
    longest = max(turns.action_mask.shape[1] for turns in batch.turns.values())
    mask = torch.zeros(*batch.mask.shape, longest, dtype=torch.bool)
    for turns in batch.turns.values():
        mask[turns.episode, turns.slot, : turns.action_mask.shape[1]] = turns.action_mask
    return mask


def with_histories(
    batch: Batch, wanted: dict[str, AgentTurns], *, joint: bool, limits: Mapping[str, int | None]
) -> dict[str, AgentTurns]:
    """The wanted turns with what was said before in front of each prompt: the prompts and actions of all earlier turns
    of the episode (joint), or of the agent's own. limits: by agent, tokens in all; the oldest are left out."""
    text = {}
    for agent, turns in (batch.critic_turns or batch.turns).items():
        for i, (b, k) in enumerate(zip(turns.episode.tolist(), turns.slot.tolist(), strict=True)):
            text[b, k] = agent, turns.tokens[i][turns.token_mask[i]]
    return {agent: _behind_history(agent, turns, text, joint, limits[agent]) for agent, turns in wanted.items()}


def _behind_history(
    agent: str, turns: AgentTurns, text: dict[tuple[int, int], tuple[str, Tensor]], joint: bool, limit: int | None
) -> AgentTurns:
    rows, prompt_length = [], turns.prompt_length.clone()
    for i, (b, k) in enumerate(zip(turns.episode.tolist(), turns.slot.tolist(), strict=True)):
        earlier = [ids for author, ids in (text[b, j] for j in range(k)) if joint or author == agent]
        own = turns.tokens[i][turns.token_mask[i]]
        history = torch.cat(earlier) if earlier else own[:0]
        room = len(history) if limit is None else max(limit - len(own), 0)
        history = history[max(len(history) - room, 0) :]
        rows.append(torch.cat([history, own]))
        prompt_length[i] += len(history)
    if not rows:
        return turns
    tokens = stack_padded([row.unsqueeze(0) for row in rows])
    lengths = torch.tensor([len(row) for row in rows]).unsqueeze(-1)
    token_mask = torch.arange(tokens.shape[1]) < lengths
    return replace(turns, tokens=tokens, token_mask=token_mask, prompt_length=prompt_length)
