"""The yardstick: generation and a PPO update as reference implementations of multi-agent LLM training write them.

It is written for this benchmark, with the usual parts: peft, ``transformers.generate``, and an update in plain torch.
It does the same work as the engine and the learner of this project, in the direct way:

* prompts are padded on the left, replies on the right, both to fixed lengths;
* the logits of the whole vocabulary are computed at all positions;
* the reference model, the old log-probabilities and the value model have forward passes of their own; the value model
  is a head on the frozen base, and each of its epochs reads the prompts again;
* the loss is that of the arms ``ippo`` and ``marft``: the clipped surrogate of length-normalised action ratios and the
  k3 estimate of KL(pi_theta || pi_0).

Axes: n turns of a pass, P prompt tokens and T reply tokens after padding, L = P + T, H the width of the hidden states.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationConfig

from baselines.engine.running_batch import left_pad
from baselines.models.load import LoadedModel
from baselines.policies.policy import SharedBasePolicy
from baselines.ppo.diagnostics import Timer
from baselines.trajectory import AgentTurns

CLIP, KL_COEFFICIENT, LEARNING_RATE, VALUE_LEARNING_RATE, MAX_GRAD_NORM, EPOCHS = 0.2, 0.02, 1e-4, 1e-3, 1.0, 2


class PaddedTurns(NamedTuple):
    """N turns of one agent, padded to fixed lengths.

    Attributes:
        ids: [N, P + T] token ids.
        mask: [N, P + T] 1 for a token, 0 for padding.
        replies: [N, T] bool.
    """

    ids: Tensor
    mask: Tensor
    replies: Tensor

    def rows(self, chosen: slice) -> PaddedTurns:
        """Return some of the turns."""
        return PaddedTurns(*(column[chosen] for column in self))


def pad_turns(turns: AgentTurns, prompt_length: int, reply_length: int, pad_id: int) -> PaddedTurns:
    """Return turns with the prompt padded on the left and the reply padded on the right.

    Args:
        turns: N turns of one agent.
        prompt_length: P, at least the tokens of the longest prompt.
        reply_length: T, at least the tokens of the longest reply.
        pad_id: Token id for padding.
    """
    ids = turns.tokens.new_full((len(turns), prompt_length + reply_length), pad_id)
    mask = torch.zeros_like(ids)
    lengths = turns.token_mask.sum(-1).tolist()
    for row, (prompt, length) in enumerate(zip(turns.prompt_length.tolist(), lengths, strict=True)):
        place = slice(prompt_length - prompt, prompt_length - prompt + length)
        ids[row, place], mask[row, place] = turns.tokens[row, :length], 1
    return PaddedTurns(ids, mask, mask[:, prompt_length:].bool())


class ReferenceStyle:
    """A team of LoRA adapters on one base model, in the direct way.

    Args:
        loaded: A base model of its own, which gets the adapters.
        policy: The policies whose adapter weights are copied.
    """

    def __init__(self, loaded: LoadedModel, policy: SharedBasePolicy) -> None:
        self.device, self.pad_id = loaded.device, loaded.tokenizer.pad_token_id
        loaded.model.generation_config = GenerationConfig(pad_token_id=self.pad_id)  # without an end token
        self.model: Any = None
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # raised inside peft 0.21
            for adapter in policy.agents:
                Path(folder, adapter).mkdir()
                for name, data in policy.weights.files(adapter, loaded.name).items():
                    Path(folder, adapter, name).write_bytes(data)
                options = {"adapter_name": adapter, "is_trainable": True}
                if self.model is None:
                    self.model = PeftModel.from_pretrained(loaded.model, Path(folder, adapter), **options)
                else:
                    self.model.load_adapter(Path(folder, adapter), **options)
        self.model.eval()
        width = loaded.model.config.get_text_config().hidden_size
        self.value_head = nn.Linear(width, 1, device=self.device)
        self.value_optimizer = torch.optim.AdamW(self.value_head.parameters(), lr=VALUE_LEARNING_RATE)
        self.optimizers = {agent: self._optimizer(agent) for agent in policy.agents}

    def _optimizer(self, agent: str) -> torch.optim.Optimizer:
        parameters = [p for name, p in self.model.named_parameters() if f".{agent}." in name]
        return torch.optim.Adam(parameters, lr=LEARNING_RATE)

    @torch.no_grad()
    def generate(self, agent: str, prompts: Sequence[Sequence[int]], new_tokens: int) -> Tensor:
        """Return sampled replies of an agent, [n, new_tokens] token ids."""
        self.model.set_adapter(agent)
        ids, gaps = left_pad(prompts, self.pad_id)
        mask = (torch.arange(ids.shape[1], device="cpu") >= gaps.unsqueeze(-1)).long()
        settings = GenerationConfig(
            max_new_tokens=new_tokens, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, pad_token_id=self.pad_id
        )
        ids, mask = ids.to(self.device), mask.to(self.device)
        out = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        return out[:, ids.shape[1] :]

    def token_logprobs(self, turns: PaddedTurns) -> Tensor:
        """Return the log-probabilities [n, T] of reply tokens under the active adapter, from all logits [n, L, V]."""
        position = (turns.mask.cumsum(-1) - 1).clamp(min=0)
        out = self.model(input_ids=turns.ids, attention_mask=turns.mask, position_ids=position, use_cache=False)
        logprobs = out.logits[:, :-1].float().log_softmax(-1)
        chosen = logprobs.gather(-1, turns.ids[:, 1:, None]).squeeze(-1)
        return chosen[:, -turns.replies.shape[1] :] * turns.replies

    def loss(
        self, turns: PaddedTurns, old: Tensor, reference: Tensor, advantage: Tensor, totals: tuple[int, int]
    ) -> Tensor:
        """Return the loss of some turns of an agent whose adapter is active.

        Args:
            turns: n turns.
            old: [n, T] log-probabilities of the tokens before the update.
            reference: [n, T] log-probabilities under the base model.
            advantage: [n] advantages, whitened.
            totals: Turns and reply tokens of the whole batch, which the loss is a mean over.
        """
        new, lengths = self.token_logprobs(turns), turns.replies.sum(-1)
        ratio = ((new - old).sum(-1) / lengths).exp()
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
        log_ratio = (reference - new) * turns.replies
        kl = (log_ratio.exp() - 1 - log_ratio) * turns.replies
        return -surrogate.sum() / totals[0] + KL_COEFFICIENT * kl.sum() / totals[1]

    def update(
        self, turns: Mapping[str, PaddedTurns], scores: Mapping[str, Tensor], rows: int, prompt_length: int
    ) -> dict[str, float]:
        """Make one PPO update of all agents and return the seconds of its parts.

        Args:
            turns: Agent -> its N turns.
            scores: Agent -> [N] the team's score of each turn's episode.
            rows: Turns of a forward pass.
            prompt_length: P of the turns.
        """
        timer = Timer()
        for agent, of_agent in turns.items():
            passes = [slice(start, start + rows) for start in range(0, len(of_agent.ids), rows)]
            self.model.set_adapter(agent)
            with torch.no_grad():
                with timer.measure("reference"), self.model.disable_adapter():
                    reference = torch.cat([self.token_logprobs(of_agent.rows(p)) for p in passes])
                with timer.measure("old_logprobs"):
                    old = torch.cat([self.token_logprobs(of_agent.rows(p)) for p in passes])
                with timer.measure("values"):
                    states = torch.cat([self._states(of_agent.rows(p), prompt_length) for p in passes])
                    raw = scores[agent] - self.value_head(states).squeeze(-1).sigmoid()
            advantage = (raw - raw.mean()) / (raw.std(correction=0) + 1e-8)
            with timer.measure("actor"):
                self._train(agent, of_agent, old, reference, advantage, passes)
            with timer.measure("critic"):
                self._train_values(of_agent, scores[agent], passes, prompt_length)
        return timer.seconds

    @torch.no_grad()
    def _states(self, turns: PaddedTurns, prompt_length: int) -> Tensor:
        """Return the last hidden states [n, H] of the prompts under the base model."""
        ids, mask = turns.ids[:, :prompt_length], turns.mask[:, :prompt_length]
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        with self.model.disable_adapter():
            trunk = self.model.get_base_model().get_decoder()
            out = trunk(input_ids=ids, attention_mask=mask, position_ids=position, use_cache=False)
        return out.last_hidden_state[:, -1].float()

    def _train(
        self,
        agent: str,
        turns: PaddedTurns,
        old: Tensor,
        reference: Tensor,
        advantage: Tensor,
        passes: Sequence[slice],
    ) -> None:
        optimizer, totals = self.optimizers[agent], (len(turns.ids), int(turns.replies.sum()))
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            for p in passes:
                self.loss(turns.rows(p), old[p], reference[p], advantage[p], totals).backward()
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            nn.utils.clip_grad_norm_(parameters, MAX_GRAD_NORM)
            optimizer.step()
        optimizer.zero_grad()

    def _train_values(self, turns: PaddedTurns, score: Tensor, passes: Sequence[slice], prompt_length: int) -> None:
        for _ in range(EPOCHS):
            self.value_optimizer.zero_grad()
            for p in passes:
                logit = self.value_head(self._states(turns.rows(p), prompt_length)).squeeze(-1)
                loss = functional.binary_cross_entropy_with_logits(logit, score[p], reduction="sum") / len(turns.ids)
                loss.backward()
            self.value_optimizer.step()
