"""Activated adapters: they act from the invocation tokens on, after keys and values of the base alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import AutoPeftModelForCausalLM, PeftModel
from torch import Tensor
from transformers import DynamicCache

from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies import policy as policy_module
from baselines.policies import prompt_states
from baselines.policies.checkpointing import checkpointed
from baselines.policies.policy import LoraSettings, SharedBasePolicy, prompts_kept
from baselines.policies.prompt_store import PromptStore
from baselines.trajectory import AgentTurns, select
from tests.baselines.engine.generate import activated_generate
from tests.baselines.models.architectures import EOS, PAD, make_model
from tests.baselines.policies.activated import (
    AGENTS,
    INVOCATION,
    activated_policy,
    continued_logprobs,
    perturb,
    prompts,
    some_turns,
    tokens,
    turns_of,
)

TEMPERATURE = 0.7
STEPS = 6
NAMES = ("llama", "qwen3", "gemma3_text")  # gemma3_text has sliding windows of 6 tokens


def export(policy: SharedBasePolicy, folder: Path) -> None:
    for agent in policy.agents:
        (folder / agent).mkdir()
        for name, data in policy.weights.files(agent, "base").items():
            (folder / agent / name).write_bytes(data)


def peft_model(name: str, folder: Path) -> PeftModel:
    return PeftModel.from_pretrained(make_model(name), folder)


def own_scores(model: object, turns: AgentTurns) -> list[Tensor]:
    """Return the log-probabilities of the actions by a plain model of transformers or peft, each turn alone."""
    found = []
    for i in range(len(turns)):
        ids = turns.tokens[i][turns.token_mask[i]]
        with torch.no_grad():
            logits = model(input_ids=ids.unsqueeze(0)).logits[0]
        chosen = (logits / TEMPERATURE).log_softmax(-1)[:-1].gather(-1, ids[1:].unsqueeze(-1)).squeeze(-1)
        found.append(chosen[int(turns.prompt_length[i]) - 1 :])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_is_that_of_peft_which_loads_the_export(name: str, tmp_path: Path) -> None:
    policy, turns = activated_policy(name), some_turns()
    export(policy, tmp_path)
    for agent in AGENTS:
        with torch.no_grad(), policy.use(agent):
            scores = policy.scores(turns, TEMPERATURE).logprobs
        for row, own in zip(scores, own_scores(peft_model(name, tmp_path / agent), turns), strict=True):
            torch.testing.assert_close(row[: len(own)], own, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("merge", [True, False])
def test_greedy_replies_are_those_of_peft(name: str, merge: bool, tmp_path: Path) -> None:
    policy = activated_policy(name)
    export(policy, tmp_path)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=STEPS, rows=3), merge)
    replies = [c.token_ids for c in activated_generate(engine, "x_0", prompts())]
    plain = peft_model(name, tmp_path / "x_0")
    for prompt, reply in zip(prompts(), replies, strict=True):
        ids = torch.tensor([prompt])
        settings = {"do_sample": False, "max_new_tokens": STEPS, "pad_token_id": PAD, "eos_token_id": EOS}
        found = plain.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **settings)
        assert reply == tuple(found[0, len(prompt) :].tolist())


def test_peft_finds_the_base_of_an_export(tmp_path: Path) -> None:
    policy, turns = activated_policy("llama"), some_turns()
    make_model("llama").save_pretrained(tmp_path / "base")
    (tmp_path / "x_0").mkdir()
    for file, data in policy.weights.files("x_0", str(tmp_path / "base")).items():
        (tmp_path / "x_0" / file).write_bytes(data)
    plain = AutoPeftModelForCausalLM.from_pretrained(tmp_path / "x_0")
    with torch.no_grad(), policy.use("x_0"):
        scores = policy.scores(turns, TEMPERATURE).logprobs
    for row, own in zip(scores, own_scores(plain, turns), strict=True):
        torch.testing.assert_close(row[: len(own)], own, rtol=0, atol=1e-4)


def test_an_export_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    policy, other = activated_policy("llama"), activated_policy("llama", std=0.0)
    export(policy, tmp_path)
    for agent in AGENTS:
        other.weights.load(agent, tmp_path / agent)
        with torch.no_grad(), policy.use(agent), other.use(agent):
            assert torch.equal(policy.scores(some_turns(), 1.0).logprobs, other.scores(some_turns(), 1.0).logprobs)
        assert other.weights.files(agent, "base") == policy.weights.files(agent, "base")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("merge", [True, False])
def test_the_engine_samples_what_the_training_path_scores(name: str, merge: bool, monkeypatch) -> None:
    """With a prefix that prompts share, and with rows that enter and leave the batch."""
    monkeypatch.setattr(prompt_states, "LEAST_SAVED", 10)
    policy = activated_policy(name)
    asked = [(*tokens(11, 7), *prompt) for prompt in prompts()]
    decoding = Decoding(max_new_tokens=STEPS, temperature=TEMPERATURE, rows=4)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, decoding, merge)
    found = activated_generate(engine, "x_0", asked, np.random.default_rng(0).random((len(asked), STEPS)))
    with torch.no_grad(), policy.use("x_0"):
        scores = policy.scores(turns_of([(p, c.token_ids) for p, c in zip(asked, found, strict=True)]), TEMPERATURE)
    for row, c in zip(scores.logprobs, found, strict=True):
        torch.testing.assert_close(row[: len(c.logprobs)], torch.tensor(c.logprobs), rtol=0, atol=1e-4)


def gradients(policy: SharedBasePolicy, loss: Tensor) -> list[Tensor]:
    loss.backward()
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in policy.adapter_parameters("x_0")]
    for p in policy.adapter_parameters("x_0"):
        p.grad = None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_gradients_with_and_without_the_store_are_those_of_a_direct_computation(name: str) -> None:
    policy, turns = activated_policy(name), some_turns()
    total = torch.cat(continued_logprobs(policy, turns, TEMPERATURE)).sum()
    expected = gradients(policy, total)
    assert any(bool(g.any()) for g in expected)

    def check(part: AgentTurns, *, checkpointing: bool = False) -> None:
        with policy.use("x_0"), checkpointed(policy.causal_lm, on=checkpointing):
            loss = policy.scores(part, TEMPERATURE).logprobs.sum()
            found = gradients(policy, loss)
        torch.testing.assert_close(loss.detach(), total.detach(), rtol=1e-5, atol=0)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()))

    check(turns)
    check(turns, checkpointing=True)
    with prompts_kept(policy, 10**9):
        with torch.no_grad(), policy.use(None):  # pi_0 fills the store, in passes of other turns
            for rows in ([5, 0, 2], [1, 6, 3, 4]):
                policy.scores(select(turns, torch.tensor(rows)), TEMPERATURE)
        check(turns)
        check(turns, checkpointing=True)
        check(select(turns, torch.tensor([3, 1, 6, 5, 0, 2, 4])))


def test_prompts_are_common_to_all_agents_and_pi_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the base's, whatever the adapters are, and each is read once."""
    policy, turns, reads = activated_policy("qwen3"), some_turns(), []
    original = policy_module.read_prompts
    monkeypatch.setattr(policy_module, "read_prompts", lambda *a: (reads.append(len(a[2])), original(*a))[1])
    with torch.no_grad(), prompts_kept(policy, 10**9):
        for agent in (None, *AGENTS):
            with policy.use(agent):
                first = policy.scores(turns, 1.0).logprobs
        assert reads == [len(turns)]
        before = [
            policy.store.states(policy, turns.tokens[:, :24], turns.base_tokens, policy.read_prompts).layer(i)
            for i in (0, 1)
        ]
        perturb(policy, 1.0, seed=5)
        with policy.use("y_0"):
            assert not torch.equal(policy.scores(turns, 1.0).logprobs, first)
            alone = policy.read_prompts(turns.tokens[:, : int(turns.base_tokens.max())], turns.base_tokens)
    assert policy.store.bytes == 0
    for of_store, of_pass in zip(before, alone.layers, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(of_store, of_pass, strict=True))
    base = make_model("qwen3")
    for i, length in enumerate(turns.base_tokens.tolist()):
        cache = DynamicCache(config=base.config)
        base(input_ids=turns.tokens[i : i + 1, :length], cache=cache)
        for layer, own in zip(before, cache.layers, strict=True):
            torch.testing.assert_close(layer.keys[i, :, -length:], own.keys[0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(layer.values[i, :, -length:], own.values[0], rtol=1e-4, atol=1e-5)


def test_a_fresh_adapter_is_pi_0_bit_for_bit() -> None:
    policy = SharedBasePolicy(
        make_model("llama"), AGENTS, LoraSettings(2, 4, activated=True), 0, invocation_ids=INVOCATION
    )
    found = []
    for agent in (None, "x_0"):
        with torch.no_grad(), policy.use(agent):
            found.append(policy.scores(some_turns(), TEMPERATURE).logprobs)
    assert torch.equal(*found)


def test_the_store_keeps_to_its_limit() -> None:
    policy, turns = activated_policy("llama"), some_turns()
    ids, reads = turns.tokens[:, : int(turns.base_tokens.max())], []

    def read(some: Tensor, lengths: Tensor, before: object):
        reads.append(len(some))
        assert before is None  # the prompts are too short for a beginning to be worth it
        return policy.read_prompts(some, lengths)

    size = policy.read_prompts(ids[:3, : int(turns.base_tokens[:3].max())], turns.base_tokens[:3]).bytes
    store = PromptStore(size)
    for rows in ([0, 1, 2], [0, 3, 1], [3, 3, 2]):
        states = store.states(policy, ids[rows], turns.base_tokens[rows], read)
        alone = policy.read_prompts(ids[3:4, : int(turns.base_tokens[3])], turns.base_tokens[3:4]).layers[1]
        if 3 in rows:
            at, length = rows.index(3), int(turns.base_tokens[3])
            torch.testing.assert_close(states.layer(1).keys[at, :, -length:], alone.keys[0], rtol=1e-4, atol=1e-5)
    assert reads == [3, 1, 1] and store.bytes <= size  # row 3 does not fit; in the last call it is read once
    store.states("another base", ids[:1], turns.base_tokens[:1], read)
    assert reads == [3, 1, 1, 1]
    store.close()
    store.states(policy, ids[:2], turns.base_tokens[:2], read)
    assert reads == [3, 1, 1, 1, 2] and store.bytes == 0


@pytest.mark.parametrize("name", ["lfm2", "mamba", "jamba"])
def test_a_cache_of_other_states_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"lora\.activated: the cache of model class \w+ holds more than keys and val"):
        activated_policy(name)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="LoraSettings invocation='=': expected activated=True"):
        LoraSettings(invocation="=")
    with pytest.raises(
        ValueError, match=re.escape("invocation_ids=(): expected token ids with LoraSettings(activated")
    ):
        SharedBasePolicy(make_model("llama"), AGENTS, LoraSettings(activated=True), 0)
    with pytest.raises(ValueError, match=r"invocation_ids=\(150, 151\): expected token ids with .* else none"):
        SharedBasePolicy(make_model("llama"), AGENTS, LoraSettings(), 0, invocation_ids=INVOCATION)
    engine = TorchEngine(activated_policy("llama"), load_model("tiny").tokenizer, Decoding(max_new_tokens=2))
    with pytest.raises(ValueError, match=re.escape("requests[0].base_tokens=3: expected 0 to 2")):
        activated_generate(engine, "x_0", [(5, 6, 7)], base=3)
