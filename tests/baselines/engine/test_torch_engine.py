"""The engine: end tokens, the context length, rows that end in caches of every kind, and devices."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from baselines.engine.protocol import GenerationRequest, Sampling
from baselines.engine.running_batch import RunningBatch
from baselines.engine.stopping import end_token_ids
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.errors import RunError
from baselines.ladder import arm
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.policies.shared_prefix import attention_layers
from baselines.ppo.learner import Learner
from tests.baselines.engine.generate import generate
from tests.baselines.models.architectures import CONTEXT, VOCABULARY, make_model


@pytest.fixture(scope="module")
def llama():
    return make_model("llama")


def engine_of(model, **decoding) -> TorchEngine:
    policy = SharedBasePolicy(copy.deepcopy(model), ("x_0",), LoraSettings(2, 4), 0)
    return TorchEngine(policy, load_model("tiny").tokenizer, Decoding(**decoding))


@pytest.mark.parametrize(
    ("generation", "config", "tokenizer", "expected"),
    [
        ([7, 9], 7, 1, {1, 7, 9}),  # Llama 3: <|end_of_text|>, <|eom_id|>, <|eot_id|>
        (7, [8, 9], 1, {1, 7, 8, 9}),
        (None, None, 1, {1}),
        (7, None, None, {7}),
    ],
)
def test_a_reply_ends_at_every_end_token_of_settings_configuration_and_tokenizer(
    llama, generation, config, tokenizer, expected
):
    model = copy.copy(llama)
    model.generation_config = GenerationConfig(eos_token_id=generation)
    model.config = copy.deepcopy(llama.config)
    model.config.eos_token_id = config
    assert end_token_ids(model, SimpleNamespace(eos_token_id=tokenizer)) == expected
    del model.generation_config
    assert end_token_ids(model, SimpleNamespace(eos_token_id=1)) >= {1}


def test_prompt_and_action_share_the_context(llama):
    assert engine_of(llama, max_new_tokens=20, max_prompt_tokens=30).prompt_limit == 30
    engine = engine_of(llama, max_new_tokens=20, max_prompt_tokens=1024)
    assert engine.prompt_limit == CONTEXT - 20
    (reply,) = generate(engine, None, [[5] * engine.prompt_limit], None)
    assert len(reply.token_ids) <= 20
    with pytest.raises(
        ValueError, match=r"requests\[1\]\.prompt_ids has 45 tokens: expected at least 1, and at most 44 "
    ):
        generate(engine, None, [[5], [5] * 45], None)
    with pytest.raises(ValueError, match=r"requests\[0\]\.prompt_ids has 0 tokens: expected at least 1"):
        generate(engine, None, [[]], None)


def test_actions_as_long_as_the_context_are_refused(llama):
    assert engine_of(llama, max_new_tokens=CONTEXT - 1).prompt_limit == 1
    message = f"max_new_tokens={CONTEXT}: the model's context has {CONTEXT} tokens .* expected at most {CONTEXT - 1}"
    with pytest.raises(ValueError, match=message):
        engine_of(llama, max_new_tokens=CONTEXT)


def test_a_model_without_a_context_length_limits_no_prompt():
    model = make_model("mamba")
    del model.config.max_position_embeddings  # the matrix gives it to every model
    engine = engine_of(model, max_new_tokens=2, max_prompt_tokens=5000)
    assert engine.policy.context_length is None and engine.prompt_limit == 5000
    assert generate(engine, None, [[5] * 3], None)


@pytest.mark.parametrize(
    ("name", "in_place"), [("llama", True), ("gemma2", True), ("lfm2", False), ("falcon_h1", False), ("mamba", False)]
)
def test_only_keys_and_values_are_written_in_place(name, in_place):
    """Falcon-H1's layers have keys and values, and recurrent states beside them."""
    assert (attention_layers(make_model(name).config) is not None) == in_place


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_rows_that_have_ended_do_not_change_the_others(name):
    """Sampled rows end at different steps; each gives the tokens and log-probabilities that it gives alone."""
    model = make_model(name)
    model.generation_config.eos_token_id = list(range(5, VOCABULARY, 6))
    engine = engine_of(model, max_new_tokens=10)
    prompts = [[30 + i] * (2 + i) for i in range(6)]
    uniforms = np.random.default_rng(1).random((6, 10))
    together = generate(engine, "x_0", prompts, uniforms)
    assert len({len(g.token_ids) for g in together}) > 2
    for i, g in enumerate(together):
        (alone,) = generate(engine, "x_0", [prompts[i]], uniforms[i : i + 1])
        assert alone.token_ids == g.token_ids
        np.testing.assert_allclose(alone.logprobs, g.logprobs, atol=1e-4)
        assert g.finish_reason == ("stop" if g.token_ids[-1] in engine.end_ids else "length")
        assert not engine.end_ids & set(g.token_ids[:-1])


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_prompts_are_read_in_passes_of_limited_size(name, monkeypatch):
    """Rows whose prompts do not fit a pass enter with a later one; a prompt that is longer than a pass enters alone."""
    model = make_model(name)
    model.generation_config.eos_token_id = list(range(5, VOCABULARY, 9))
    prompts = [[30 + i] * (12 - i) for i in range(10)] + [[50, 51] * 10]
    uniforms = np.random.default_rng(1).random((11, 8))
    whole = generate(engine_of(model, max_new_tokens=8), "x_0", prompts, uniforms)
    admitted, original = [], RunningBatch.admit

    def admit(batch, rows):
        admitted.append([len(row.request.prompt_ids) for row in rows])
        original(batch, rows)

    monkeypatch.setattr(RunningBatch, "admit", admit)
    limited = generate(engine_of(model, max_new_tokens=8, prefill_tokens=17), "x_0", prompts, uniforms)
    for found, expected in zip(limited, whole, strict=True):
        assert found.token_ids == expected.token_ids
        np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)
    assert admitted == [[3, 4, 5], [6, 7], [8], [9], [10], [11], [12], [20]]  # 3 * 5, 2 * 7 tokens with the padding


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()])
def test_an_exhausted_memory_is_answered_by_fewer_prompts_at_a_time(llama, monkeypatch, caplog, error):
    engine = engine_of(llama, max_new_tokens=4, rows=8)
    prompts = [[30 + i] * (12 - i) for i in range(11)]
    uniforms = np.random.default_rng(1).random((11, 4))
    whole = generate(engine, "x_0", prompts, uniforms)
    original, sizes, most = RunningBatch._forward, [], 3

    def forward(batch, ids, *others):
        sizes.append(len(ids))
        if len(ids) > most:
            raise error
        return original(batch, ids, *others)

    monkeypatch.setattr(RunningBatch, "_forward", forward)
    for _ in range(2):
        for g, expected in zip(generate(engine, "x_0", prompts, uniforms), whole, strict=True):
            assert g.token_ids == expected.token_ids
            np.testing.assert_allclose(g.logprobs, expected.logprobs, atol=1e-4)
    assert sizes[:3] == [8, 4, 2] and max(sizes[2:]) == engine.rows == 2  # the next call begins with 2
    assert engine.out_of_memory == 2
    assert "out of memory while replies to 4 prompts of up to 5 tokens were generated" in caplog.text
    most = 0
    with pytest.raises(RunError, match=r"a single prompt of 2 tokens was generated \(.*\): expected more memory"):
        generate(engine, "x_0", prompts, uniforms)
    monkeypatch.setattr(RunningBatch, "_forward", lambda *_: (_ for _ in ()).throw(RuntimeError("another error")))
    with pytest.raises(RuntimeError, match=r"^another error$"):
        generate(engine, "x_0", prompts, uniforms)


def test_the_engines_log_probabilities_have_the_heads_scale():
    """Granite divides its logits by 4, so its replies are less certain than the plain head would say."""
    engine = engine_of(make_model("granite"), max_new_tokens=3)
    (reply,) = generate(engine, None, [[5, 9]], None)
    with torch.no_grad():
        logits = engine.policy.causal_lm(input_ids=torch.tensor([[5, 9]])).logits[0, -1]
    assert reply.logprobs[0] == pytest.approx(float(logits.log_softmax(-1).max()), abs=1e-5)


def test_completions_have_the_version_of_the_weights_that_sampled_them(duo):
    """The number of optimiser steps of the agent's adapter, which a checkpoint keeps."""
    config = arm("ippo").with_settings({"epochs": 3, "advantage_floor": 0.0})
    learner = Learner(duo.policy, config, temperature=1.0, seed=0)
    prompts = [[10, 13, 7, 17]]
    assert generate(duo.engine, "actor_0", prompts)[0].adapter_version == 0
    learner.update(duo.batch)
    assert generate(duo.engine, "actor_0", prompts)[0].adapter_version == 3
    assert generate(duo.engine, None, prompts)[0].adapter_version == 0
    assert {s.data.adapter_version for e in duo.play((0, 8)) for s in e.steps} == {3}
    state = learner.state_dict()
    duo.policy.versions["actor_0"] = 0
    learner.load_state_dict(state)
    assert duo.policy.version("actor_0") == 3


def test_requests_of_several_agents_are_answered_in_their_order(duo):
    """Also if one decodes greedily, and with limits and temperatures of their own."""
    prompt = (10, 13, 7, 17)
    requests = [
        GenerationRequest("actor_0", prompt, Sampling(3), (0, 1)),
        GenerationRequest("reasoner_0", prompt, Sampling(4, 2.0), (0, 2)),
        GenerationRequest("actor_0", prompt, Sampling(1), None),
        GenerationRequest(None, prompt, Sampling(2), (0, 3)),
        GenerationRequest("actor_0", prompt, Sampling(5, 0.5), (0, 1)),
    ]
    together = duo.engine.generate(requests)
    for request, found in zip(requests, together, strict=True):
        (alone,) = duo.engine.generate([request])
        assert (alone.token_ids, alone.finish_reason) == (found.token_ids, found.finish_reason)
        np.testing.assert_allclose(alone.logprobs, found.logprobs, atol=1e-5)
        assert len(found.token_ids) <= request.sampling.max_new_tokens
    assert together[2].finish_reason == "length"
