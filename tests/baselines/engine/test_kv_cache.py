"""The cache that is written in place: its rows and columns are those of a cache that appends copies."""

from __future__ import annotations

import torch

from baselines.engine.kv_cache import InPlaceCache
from baselines.policies.prompt_states import KeyValues

HEADS, SIZE = 2, 3


def states(rows: int, tokens: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    keys, values = torch.randn(2, rows, HEADS, tokens, SIZE, generator=generator)
    return keys, values


def filled(rows: int, tokens: int, seed: int = 0) -> InPlaceCache:
    cache = InPlaceCache(2)
    for layer in range(2):
        cache.update(*states(rows, tokens, 10 * seed + layer), layer)
    return cache


def test_tokens_are_appended_without_a_copy_of_the_earlier_ones() -> None:
    cache, expected = InPlaceCache(1), [torch.empty(4, HEADS, 0, SIZE)] * 2
    sizes = set()
    for step in range(200):
        new = states(4, 1, step)
        found = cache.update(*new, 0)
        expected = [torch.cat(pair, 2) for pair in zip(expected, new, strict=True)]
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        assert cache.get_seq_length() == cache.columns == step + 1
        sizes.add(found[0].untyped_storage().nbytes())
    assert len(sizes) == 4  # the buffer grows by 64 columns at a time


def test_rows_from_the_end_fill_the_gaps_of_those_that_leave() -> None:
    cache = filled(6, 5)
    before = [layer.keys.clone() for layer in cache.layers]
    order = cache.keep([1, 3, 5], 6)
    assert sorted(order) == [1, 3, 5] and order[1] == 1  # row 1 stays where it is
    for layer, keys in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys[order])
    found, _ = cache.update(*states(3, 1, 9), 0)
    assert found.shape == (3, HEADS, 6, SIZE)


def test_rows_that_enter_end_in_the_same_column() -> None:
    for own, other in ((7, 4), (4, 7)):
        running, entering = filled(3, own, 1), filled(2, other, 2)
        before = [(a.keys.clone(), b.keys.clone()) for a, b in zip(running.layers, entering.layers, strict=True)]
        running.append(entering, 3)
        assert running.columns == 7 and entering.columns == 0
        for layer, (first, second) in zip(running.layers, before, strict=True):
            assert torch.equal(layer.keys[:3, :, 7 - own :], first)
            assert torch.equal(layer.keys[3:, :, 7 - other :], second)
            assert bool(layer.keys.isfinite().all())


def test_columns_that_no_row_uses_are_dropped() -> None:
    cache = filled(3, 9)
    before = cache.layers[1].values.clone()
    cache.drop_columns(4)
    assert cache.columns == 5 and torch.equal(cache.layers[1].values, before[:, :, 4:])


def test_a_shared_prefix_stands_directly_before_the_tokens_of_each_row() -> None:
    """Prefixes of 4 tokens, and 1, 3 and 2 tokens after them, padded on the left to 3."""
    gaps, rest = torch.tensor([2, 0, 1]), states(3, 3, 6)
    for prefixes, source in ((1, [0, 0, 0]), (2, [1, 0, 1]), (3, [0, 1, 2])):
        prefix, cache = states(prefixes, 4, 5), InPlaceCache(1)
        cache.share([lambda prefix=prefix: KeyValues(*prefix)], 4, gaps, torch.tensor(source))
        assert cache.get_seq_length() == 4  # the mask of the next pass covers the prefix
        for found, start, end in zip(cache.update(*rest, 0), prefix, rest, strict=True):
            for row, gap in enumerate(gaps.tolist()):
                expected = torch.cat([start[source[row]], end[row, :, gap:]], 1)
                assert torch.equal(found[row, :, gap:], expected)
