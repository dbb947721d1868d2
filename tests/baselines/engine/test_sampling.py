"""The choice of tokens: by inversion, in float64, and the log-probabilities at the temperature."""

import numpy as np
import pytest
import torch

from baselines.engine.sampling import choose


def ones(n):
    return torch.ones(n)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_tokens_follow_the_distribution_at_the_temperature(scale):
    logits = scale * torch.tensor([0.2, 0.5, 0.3]).log().expand(3000, 3)
    uniform = torch.as_tensor((np.arange(3000) + 0.5) / 3000)
    chosen, logprobs = choose(logits, scale * ones(3000), uniform)
    assert torch.bincount(chosen, minlength=3).tolist() == [600, 1500, 900]
    torch.testing.assert_close(logprobs.exp(), torch.tensor([0.2, 0.5, 0.3])[chosen])


def test_the_first_token_whose_cumulative_probability_exceeds_the_number_is_chosen():
    """For vocabularies of every size around the squares, where the sampler's parts end."""
    generator = torch.Generator().manual_seed(0)
    for size in (1, 2, 3, 4, 5, 8, 9, 10, 120, 121, 122, 1000):
        logits = 4 * torch.randn(200, size, generator=generator)
        uniform = torch.rand(200, generator=generator, dtype=torch.float64)
        cumulative = logits.double().softmax(-1).cumsum(-1)
        expected = torch.searchsorted(cumulative, uniform.unsqueeze(-1), right=True).squeeze(-1)
        chosen, logprobs = choose(logits, ones(200), uniform)
        assert torch.equal(chosen, expected.clamp(max=size - 1)), size
        own = logits.log_softmax(-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(logprobs, own, rtol=0, atol=2e-6)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("size", [7, 9, 50_000])
def test_a_token_of_probability_0_is_never_chosen(uniform, size):
    """Not by the smallest and the largest number either, and not where whole parts of the vocabulary are excluded."""
    for allowed in ([0], [size - 1], [size // 2], [1, size - 2], [2, size // 2]):
        logits = torch.full((1, size), -torch.inf)
        logits[0, allowed] = 0.0
        chosen, logprobs = choose(logits, ones(1), torch.tensor([uniform], dtype=torch.float64))
        assert chosen.item() == (allowed[0] if uniform == 0 else allowed[-1])
        assert logprobs.item() == pytest.approx(-np.log(len(allowed)), abs=1e-6)


def test_rows_without_a_number_take_the_most_likely_token():
    logits = torch.tensor([[0.0, 3.0, 1.0], [0.0, 3.0, 1.0]])
    mixed, _ = choose(logits, ones(2), torch.tensor([-1.0, 0.0], dtype=torch.float64))
    assert mixed.tolist() == [1, 0]
    greedy, logprobs = choose(logits, ones(2), None)
    assert greedy.tolist() == [1, 1]
    torch.testing.assert_close(logprobs, logits.log_softmax(-1)[:, 1])
