"""An agent's later turn begins from the keys and values of its earlier turns, with the same actions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from baselines.engine.invocation import base_tokens
from baselines.engine.protocol import Completion
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import SharedBasePolicy, prompts_kept
from baselines.policies.shared_prefix import attention_layers
from tests.baselines.engine.generate import ChosenNumbers
from tests.baselines.engine.test_several_agents import policy_of
from tests.baselines.models.architectures import ARCHITECTURES, VOCABULARY, make_model
from tests.baselines.models.test_architectures import FAST
from tests.baselines.policies.activated import AGENTS, INVOCATION, prompts, tokens

STEPS = 5
ROUNDS = 3
LARGE = 10**9


class Game:
    """A game of several rounds, in which each agent reads its earlier prompts, its actions and new messages.

    Attributes:
        found: The completions of each round.
        read: Tokens that each pass of the trunk reads, padding included.
    """

    def __init__(self, policy: SharedBasePolicy, *, merge: bool = True, rows: int = 256) -> None:
        decoding = Decoding(max_new_tokens=STEPS, temperature=0.7, rows=rows)
        self.policy, self.random = policy, np.random.default_rng(7)
        self.engine = TorchEngine(policy, load_model("tiny").tokenizer, decoding, merge)
        self.asked = [(agent, prompt) for prompt in prompts()[:4] for agent in AGENTS]
        self.found: list[list[Completion]] = []

    def request(self, agent: str, prompt: tuple[int, ...]) -> ChosenNumbers:
        base = base_tokens(prompt, INVOCATION) if self.policy.invocation_ids else 0
        sampling = self.engine.decoding.sampling
        return ChosenNumbers(agent, prompt, sampling, base_tokens=base, numbers=self.random.random(STEPS))

    def play(self) -> Game:
        for _ in range(ROUNDS):
            found = self.engine.generate([self.request(*pair) for pair in self.asked])
            self.found.append(found)
            self.asked = [
                (agent, (*prompt, *c.token_ids, *tokens(2 + i % 3, i), *INVOCATION))
                for i, ((agent, prompt), c) in enumerate(zip(self.asked, found, strict=True))
            ]
        return self


def read_tokens(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the rows of passes over several tokens, by the number of tokens of a row."""
    widths: Counter[int] = Counter()
    original = torch.nn.Embedding.forward

    def forward(layer: torch.nn.Embedding, ids: torch.Tensor) -> torch.Tensor:
        if layer.num_embeddings == VOCABULARY:
            widths[ids.shape[1]] += len(ids)
        return original(layer, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", forward)
    return widths


def both(policy: SharedBasePolicy, limit: int = LARGE, **settings: object) -> tuple[Game, Game]:
    """Return a game without and with stored turns."""
    plain = Game(policy, **settings).play()
    with prompts_kept(policy, limit):
        kept = Game(policy, **settings).play()
        assert 0 <= policy.store.bytes <= limit
    assert policy.store.bytes == 0
    return plain, kept


def assert_same(plain: Game, kept: Game) -> None:
    for first, second in zip(plain.found, kept.found, strict=True):
        for a, b in zip(first, second, strict=True):
            assert a.token_ids == b.token_ids and a.finish_reason == b.finish_reason
            np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)


@pytest.fixture(autouse=True)
def _short_prompts_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("engine.running_batch", "policies.prompt_store", "policies.prompt_states"):
        monkeypatch.setattr(f"baselines.{module}.LEAST_SAVED", 2)


@pytest.mark.parametrize("activated", [False, True])
@pytest.mark.parametrize(("merge", "rows"), [(True, 256), (False, 3)])
@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_later_turns_that_begin_from_earlier_ones_have_the_same_actions(name, merge, rows, activated) -> None:
    if activated and attention_layers(make_model(name).config) is None:
        with pytest.raises(ValueError, match=r"lora\.activated: the cache of model class \w+ holds more than keys"):
            policy_of(name, activated=True)
        return
    assert_same(*both(policy_of(name, activated=activated), merge=merge, rows=rows))


@pytest.mark.parametrize("activated", [False, True])
def test_tokens_of_earlier_turns_are_not_read_again(activated, monkeypatch) -> None:
    policy = policy_of("llama", activated=activated)
    widths = read_tokens(monkeypatch)
    Game(policy, merge=False).play()
    without = dict(widths)
    widths.clear()
    with prompts_kept(policy, LARGE):
        Game(policy, merge=False).play()
    assert sum(w * n for w, n in widths.items()) < 0.75 * sum(w * n for w, n in without.items())


@pytest.mark.parametrize("activated", [False, True])
def test_the_oldest_turns_leave_a_full_store(activated) -> None:
    policy = policy_of("llama", activated=activated)
    with prompts_kept(policy, LARGE):
        Game(policy).play()
        size = policy.store.bytes
    for limit in (size // 2, size // 10, 100):
        assert_same(*both(policy, limit))


def test_an_adapter_that_has_changed_reads_its_earlier_turns_again() -> None:
    policy = policy_of("llama", activated=False)
    with prompts_kept(policy, LARGE):
        stale = Game(policy).play()
        with torch.no_grad():
            for agent in AGENTS:
                for parameter in policy.adapter_parameters(agent):
                    parameter.mul_(1.5)
        last = [stale.request(*pair) for pair in stale.asked]
        inside = stale.engine.generate(last)
    outside = stale.engine.generate(last)
    for a, b in zip(inside, outside, strict=True):
        assert a.token_ids == b.token_ids
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)


def test_the_prompts_of_a_rollout_are_not_those_of_another_adapter() -> None:
    policy = policy_of("llama", activated=False)
    with prompts_kept(policy, LARGE):
        game = Game(policy)
        (first,) = game.engine.generate([game.request("x_0", tokens(20, 1))])
        longer = (*tokens(20, 1), *first.token_ids, *tokens(3, 2))
        inside = game.engine.generate([request := game.request("y_0", longer)])
    assert inside[0].token_ids == game.engine.generate([request])[0].token_ids


def test_a_store_that_was_closed_by_an_error_is_not_used(monkeypatch) -> None:
    policy = policy_of("llama", activated=False)
    plain = Game(policy).play()
    with prompts_kept(policy, LARGE):
        game = Game(policy)
        original, failures = type(policy.store).add, iter([True])

        def add(store, *arguments, **keywords):
            if next(failures, False):
                raise torch.OutOfMemoryError("CUDA out of memory")
            return original(store, *arguments, **keywords)

        monkeypatch.setattr(type(policy.store), "add", add)
        game.play()
        assert policy.store.limit == policy.store.bytes == 0 and game.engine.out_of_memory == 1
    assert_same(plain, game)
