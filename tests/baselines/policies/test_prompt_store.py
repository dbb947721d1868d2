"""The store of keys and values: what it finds, and what it deletes."""

from __future__ import annotations

import pytest
import torch

from baselines.policies.prompt_states import KeyValues, PromptBlock, PromptStates
from baselines.policies.prompt_store import PromptStore, common_tokens, key


def block(*sequences: tuple[int, ...]) -> PromptBlock:
    """Return a block whose keys are the token ids, and whose values are their negatives, in one layer."""
    width = max(map(len, sequences))
    rows = torch.tensor([[-1] * (width - len(s)) + list(s) for s in sequences], dtype=torch.float32)
    states = rows.view(len(sequences), 1, width, 1)
    return PromptBlock([KeyValues(states, -states)], torch.tensor([len(s) for s in sequences]))


def add(store: PromptStore, reader: str, *sequences: tuple[int, ...], replace: bool = False) -> None:
    store.add([reader] * len(sequences), [key(s) for s in sequences], block(*sequences), replace=replace)


def beginnings(store: PromptStore, reader: str, *sequences: tuple[int, ...]) -> list[list[int]]:
    places, _ = store.beginnings([reader] * len(sequences), [key(s) for s in sequences])
    if not places:
        return []
    states = PromptStates(places).layer(0)
    assert torch.equal(states.keys, -states.values)
    rows = states.keys[:, 0, :, 0].int().tolist()
    return [row[len(row) - place.tokens :] for row, place in zip(rows, places, strict=True)]


@pytest.fixture(autouse=True)
def _all_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baselines.policies.prompt_store.LEAST_SAVED", 1)


def test_the_longest_beginning_is_found() -> None:
    store = PromptStore(10**6)
    add(store, "a", (5, 6, 7, 8), (5, 6, 9))
    add(store, "a", (5, 6, 7, 300, 2), (1,))
    add(store, "b", (5, 6, 7, 300, 2, 3))
    assert beginnings(store, "a", (5, 6, 7, 300, 2, 4)) == [[5, 6, 7, 300, 2]]
    assert beginnings(store, "a", (5, 6, 7, 300, 9), (5, 6, 9, 9, 9)) == [[5, 6, 7, 300], [5, 6, 9]]
    assert beginnings(store, "a", (5, 6, 7, 1, 1), (8, 6, 5)) == [[5, 6, 7], []]
    assert beginnings(store, "b", (5, 6, 7, 300, 2, 3)) == [[5, 6, 7, 300, 2]]  # the last token is read
    assert beginnings(store, "c", (5, 6, 7)) == []


def test_a_beginning_that_saves_too_little_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PromptStore(10**6)
    add(store, "a", tuple(range(1, 11)))
    longer = [(*range(1, 11), 20 + i) for i in range(4)]
    monkeypatch.setattr("baselines.policies.prompt_store.LEAST_SAVED", 40)
    assert len(beginnings(store, "a", *longer)) == 4
    assert beginnings(store, "a", *longer[:3]) == []
    assert beginnings(store, "a", *longer, (9,) * 11) == []  # a pass is as long as the longest rest


def test_the_oldest_blocks_are_replaced_and_only_on_request() -> None:
    size = block((1, 2, 3)).bytes
    store = PromptStore(2 * size)
    for first in (1, 2, 3):
        add(store, "a", (first, 0, 0), replace=True)
    assert store.bytes == 2 * size
    assert [bool(beginnings(store, "a", (first, 0, 0, 0))) for first in (1, 2, 3)] == [False, True, True]
    add(store, "a", (4, 0, 0))
    assert store.bytes == 2 * size and not beginnings(store, "a", (4, 0, 0, 0))
    add(store, "a", (5,) * 7, replace=True)  # larger than the limit
    assert store.bytes == 2 * size
    add(store, "a", (2, 0, 0), replace=True)  # is stored
    assert [bool(beginnings(store, "a", (first, 0, 0, 0))) for first in (2, 3)] == [True, True]


def test_common_tokens_are_not_common_bytes() -> None:
    assert common_tokens(key((1, 256)), key((1, 512))) == 1
    assert common_tokens(key((1, 2, 3)), key((1, 2))) == 2
    assert common_tokens(key(()), key((1,))) == 0
