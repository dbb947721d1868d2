"""A store of keys and values, so that no model reads tokens again that it has read in the same rollout or update.

An agent's prompt in a later turn begins with what it has read in earlier ones, and an update reads the prompts of the
rollout. What has been read is found by the longest beginning that it has in common with a new prompt.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import torch
from torch import Tensor

from baselines.policies.prompt_states import Place, PromptBlock, PromptStates
from baselines.policies.shared_prefix import LEAST_SAVED

STORE_SHARE = 1 / 2
"""Largest share of the budget of a pass that the stored keys and values take in an update."""

Read = Callable[[Tensor, Tensor, PromptStates | None], PromptBlock]
"""``SharedBasePolicy.read_prompts``."""


class PromptStore:
    """Stores keys and values of token sequences, within a limit.

    A sequence is found by its reader, which is the model that has read it with the state of its weights, and by its
    token ids. So it never gets the keys and values of another one, and a prompt of several episodes is read once.

    Args:
        limit: Largest number of bytes. 0 stores nothing.

    Attributes:
        limit: The same.
        bytes: Size of the stored keys and values.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._places: dict[tuple[Hashable, bytes], Place] = {}
        self._sorted: dict[Hashable, list[bytes]] = {}  # sequences by reader, whose neighbours have most in common
        self._blocks: dict[int, tuple[PromptBlock, list[tuple[Hashable, bytes]]]] = {}  # the oldest first
        self.bytes = 0

    def add(
        self, readers: Sequence[Hashable], sequences: Sequence[bytes], block: PromptBlock, *, replace: bool = False
    ) -> None:
        """Store the keys and values of some sequences, unless they do not fit.

        Args:
            readers: The reader of each sequence.
            sequences: Token ids of each sequence, see ``key``.
            block: Keys and values, one row for each sequence.
            replace: Whether the oldest blocks are deleted if there is no room, as they are of the earliest turns.
        """
        size = block.bytes
        if size > self.limit:
            return
        while replace and self.bytes + size > self.limit:
            self._delete_oldest()
        if self.bytes + size > self.limit:
            return
        places = {
            pair: row for row, pair in enumerate(zip(readers, sequences, strict=True)) if pair not in self._places
        }
        if not places:
            return
        self.bytes += size
        self._blocks[id(block)] = block, list(places)
        for (reader, sequence), row in places.items():
            self._places[reader, sequence] = Place(block, row, _tokens(sequence))
            insort(self._sorted.setdefault(reader, []), sequence)

    def beginnings(self, readers: Sequence[Hashable], sequences: Sequence[bytes]) -> tuple[list[Place], int]:
        """Return where the longest stored beginning of each sequence is, without the last token of the sequence.

        Args:
            readers: The reader of each sequence.
            sequences: Token ids of each sequence, see ``key``.

        Returns:
            A place for each sequence, of no tokens if none is stored; and how many tokens, padding included, a pass
            over the sequences need not read. No places if that is not worth it.
        """
        if not self._places:
            return [], 0
        found = [self._beginning(reader, sequence) for reader, sequence in zip(readers, sequences, strict=True)]
        lengths = [_tokens(sequence) for sequence in sequences]
        rest = max(length - (place.tokens if place else 0) for length, place in zip(lengths, found, strict=True))
        saved = len(lengths) * (max(lengths) - rest)
        if saved < LEAST_SAVED:
            return [], 0
        some = next(place for place in found if place)
        nothing = Place(some.block, some.row, 0, some.tokens + some.after)
        return [place or nothing for place in found], saved

    def _beginning(self, reader: Hashable, sequence: bytes) -> Place | None:
        stored = self._sorted.get(reader, [])
        at = bisect_left(stored, sequence)
        found = [(common_tokens(other, sequence), other) for other in stored[max(0, at - 1) : at + 1]]
        if not found:
            return None
        common, other = max(found)
        common, place = min(common, _tokens(sequence) - 1), self._places[reader, other]
        return Place(place.block, place.row, common, place.tokens - common) if common else None

    def states(
        self, reader: Hashable, ids: Tensor, lengths: Tensor, read: Read, *, replace: bool = False
    ) -> PromptStates:
        """Return the keys and values of prompts, and store those that are new.

        Args:
            reader: The base that reads them.
            ids: [n, P] token ids, padded on the right.
            lengths: [n] tokens of each prompt.
            read: Function that reads prompts with the base, from ``ids`` and ``lengths`` of some of them and from the
                keys and values of their first tokens.
            replace: As in ``add``.
        """
        rows = zip(ids.cpu().numpy(), lengths.tolist(), strict=True)
        keys = [(reader, key(row[:length])) for row, length in rows]
        places = {pair: self._places[pair] for pair in keys if pair in self._places}
        new: dict[tuple[Hashable, bytes], int] = {}
        for i, pair in enumerate(keys):
            if pair not in places:
                new.setdefault(pair, i)
        if new:
            sequences = [sequence for _, sequence in new]
            begun, _ = self.beginnings([reader] * len(new), sequences)
            chosen = torch.tensor(list(new.values()), device=ids.device)
            before = PromptStates(begun) if begun else None
            block = read(ids[chosen, : int(lengths[chosen].max())], lengths[chosen], before)
            places |= {pair: Place(block, row, _tokens(pair[1])) for row, pair in enumerate(new)}
            self.add([reader] * len(new), sequences, block, replace=replace)
        return PromptStates([places[pair] for pair in keys])

    def close(self) -> None:
        """Delete everything and store nothing more, after an out-of-memory error."""
        self.limit = self.bytes = 0
        self._places.clear()
        self._sorted.clear()
        self._blocks.clear()

    def _delete_oldest(self) -> None:
        block, pairs = self._blocks.pop(next(iter(self._blocks)))
        self.bytes -= block.bytes
        for reader, sequence in pairs:
            del self._places[reader, sequence]
            self._sorted[reader].remove(sequence)


def key(ids: Sequence[int] | np.ndarray) -> bytes:
    """Return token ids as the bytes that a store finds them by."""
    return np.asarray(ids, np.int64).tobytes()


def common_tokens(first: bytes, second: bytes) -> int:
    """Return how many first tokens two sequences have in common."""
    a, b = np.frombuffer(first, np.int64), np.frombuffer(second, np.int64)
    length = min(len(a), len(b))
    different = np.flatnonzero(a[:length] != b[:length])
    return int(different[0]) if len(different) else length


def _tokens(sequence: bytes) -> int:
    return len(sequence) // np.dtype(np.int64).itemsize
