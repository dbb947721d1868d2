"""The engine's tokens and log-probabilities at a temperature that is not 1, against probabilities known exactly."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.engine.generate import generate
from tests.baselines.ppo.bigram import EOS, HALF, A, B, C, bigram_policy, bigram_tokenizer, logprobs, one_turn


def after_a(uniforms, tokens=1):
    engine = TorchEngine(bigram_policy(), bigram_tokenizer(), Decoding(max_new_tokens=tokens, temperature=HALF))
    return generate(engine, "a_0", [(A,)] * len(uniforms), uniforms)


def test_tokens_are_drawn_at_the_temperature():
    """After A the squared table is (1, 4, 9, 4) / 18, so tokens change at 1/18, 5/18 and 14/18. The numbers are on
    either side of these, and would give other tokens at temperature 1, where tokens change at 1/8, 3/8 and 6/8."""
    uniforms = [[0.05], [0.06], [0.27], [0.29], [0.77], [0.79]]
    found = [g.token_ids[0] for g in after_a(uniforms)]
    assert found == [EOS, A, A, B, B, C], "the temperature is missing in the probabilities that the sampler draws from"


def test_the_samplers_log_probabilities_are_those_at_the_temperature():
    """.5 gives B after A (from 5/18 to 14/18), .9 gives C after B (from 6/22), .1 gives the end after C (to 16/22)."""
    (found,) = after_a([[0.5, 0.9, 0.1]], tokens=3)
    assert found.token_ids == (B, C, EOS)
    assert found.logprobs == pytest.approx(logprobs((A,), (B, C, EOS)), abs=1e-5), (
        "the temperature is missing in the log-probabilities that the sampler returns"
    )


def test_the_training_path_has_the_samplers_log_probabilities_at_the_same_temperature():
    policy = bigram_policy()
    engine = TorchEngine(policy, bigram_tokenizer(), Decoding(max_new_tokens=4, temperature=HALF))
    prompts, uniforms = [[A], [B, A], [C, B, A]], np.random.default_rng(0).random((3, 4))
    for prompt, found in zip(prompts, generate(engine, "b_0", prompts, uniforms), strict=True):
        with torch.no_grad(), policy.use("b_0"):
            turn = one_turn(prompt, found.token_ids)
            scored = policy.scores(turn, HALF).logprobs[0]
        torch.testing.assert_close(
            scored, torch.tensor(found.logprobs), rtol=0, atol=1e-5,
            msg=lambda text: f"sampler and training path use different temperatures\n{text}",
        )  # fmt: skip


def test_greedy_decoding_takes_the_most_likely_token():
    """B after A (9/18), C after B (16/22), the end after C (16/22)."""
    engine = TorchEngine(bigram_policy(), bigram_tokenizer(), Decoding(max_new_tokens=4, temperature=HALF))
    (found,) = generate(engine, "a_0", [(A,)], None)
    assert found.token_ids == (B, C, EOS), "greedy decoding does not pick the most likely token"
    assert found.logprobs == pytest.approx(logprobs((A,), (B, C, EOS)), abs=1e-5)


def test_a_stop_string_ends_a_reply_with_the_token_that_completes_it():
    """The token C is a word with a newline here. Greedy decoding gives B, C and the end."""
    words = bigram_tokenizer(("<eos>", "a", "b", "c\n"))
    for stop, expected in ((("\n",), (B, C)), (("b c",), (B, C)), (("b", "x"), (B,)), ((), (B, C, EOS))):
        engine = TorchEngine(bigram_policy(), words, Decoding(max_new_tokens=4, temperature=HALF, stop_strings=stop))
        (found,) = generate(engine, "a_0", [(A,)], None)
        assert found.token_ids == expected, f"stop_strings={stop}"
        assert found.finish_reason == "stop"


def test_prompts_of_different_lengths_share_a_forward_pass_without_influence():
    """The tiny model reads a long prompt beside a short one, which is padded on the left, and the short one alone."""
    loaded = load_model("tiny")
    policy = SharedBasePolicy(loaded.model, ["a_0"], LoraSettings(), 0)
    engine = TorchEngine(policy, loaded.tokenizer, Decoding(max_new_tokens=3, temperature=HALF))
    short, long = [10, 13, 7, 17], [4, 4, 20, 10, 13, 7, 17, 9, 8, 20]
    (alone,), (beside, _) = (generate(engine, "a_0", prompts, None) for prompts in ([short], [short, long]))
    assert beside.token_ids == alone.token_ids and beside.logprobs == pytest.approx(alone.logprobs, abs=1e-4), (
        "the padding of a prompt changes its reply"
    )


def test_turns_of_an_episode_have_random_numbers_of_their_own(duo):
    """The same observations as first and as second turn of their episodes, at a temperature that makes tokens vary."""
    requests = [episode.steps[0].request for episode in duo.episodes]
    engine = TorchEngine(duo.policy, duo.loaded.tokenizer, Decoding(max_new_tokens=4, temperature=3.0))
    sampler = EngineSampler(engine, duo.loaded, (0, 7))
    again = [reply.text for reply in sampler(requests)]
    assert again == [reply.text for reply in sampler(requests)]
    later = [reply.text for reply in sampler([replace(request, turn=1) for request in requests])]
    assert again != later, "a later turn is sampled with the random numbers of an earlier one"
