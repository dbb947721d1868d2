"""From rows to a store of usable problems, through the cache where the source has an identity."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import Any

from marft_envs.datasets.duplicates import prompt_key
from marft_envs.datasets.files import DataError, Row, check_columns, read_rows
from marft_envs.datasets.progress import shown
from marft_envs.datasets.source import find_source, sibling_files
from marft_envs.datasets.specs import DatasetSpec, Unusable, counted
from marft_envs.datasets.store import Store, key_of, open_store, pack, save_store


def stored_rows(spec: DatasetSpec, split: str, path: str | os.PathLike[str] | None) -> Store:
    """The usable rows of a split, from the cache or built and put there."""
    source = find_source(spec, split, path)
    beside = sibling_files(spec, "test", path) if split == "train" else []
    other = hashlib.sha256(b"".join(file.read_bytes() for file in beside)).hexdigest() if beside else ""
    key = key_of(spec.name, spec.variant, split, source.identity, other) if source.identity else ""
    if key and (store := open_store(key)):
        return store
    rows, origin = source.read()
    check_columns(rows, spec.columns, f"{spec.name} from {origin.split(' (')[0]}")
    if spec.member is not None and split != "all":
        rows = [row for row in rows if spec.member is not None and spec.member(row) == split]
    tested = _prompts(spec, [row for file in beside for row in read_rows(file)])
    store = _build(spec, split, rows, origin, tested)
    return save_store(key, store) if key else store


def _build(spec: DatasetSpec, split: str, rows: list[Row], origin: str, tested: set[bytes]) -> Store:
    items: list[Any] = []
    unusable: list[tuple[int, str]] = []
    for number, row in enumerate(shown(f"{spec.name} {split}", rows)):
        try:
            item = spec.read(row)
        except Unusable as reason:
            unusable.append((number, str(reason)))
            continue
        if tested and prompt_key(item.prompt) in tested:
            unusable.append((number, "the same problem is in the test split"))
        else:
            items.append((number, item.prompt, item.gold, dict(item.notes)))
    if not items:
        why = Counter(reason for _, reason in unusable)
        raise DataError(f"{spec.name} from {origin}: no usable row among {len(rows)}: {counted(why)}")
    return pack(items, {"origin": origin, "rows": len(rows), "unusable": unusable})


def _prompts(spec: DatasetSpec, rows: list[Row]) -> set[bytes]:
    """The keys of the prompts of a split, of rows that can be graded or not."""
    keys = set()
    for row in rows:
        try:
            keys.add(prompt_key(spec.read(row).prompt))
        except Unusable:
            continue
    return keys
