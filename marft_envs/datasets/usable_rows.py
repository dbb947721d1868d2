"""The rows of a split that can be graded: converted once and cached, or converted when they are read.

``load_rows`` finds the source, checks the columns and leaves out the rows of other splits. The rows of an ordinary data
set are then all converted, the unusable ones are listed, and the result is cached (``StoredRows``). A ``lazy`` data set
is converted row by row (``LazyRows``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from marft_envs.arguments import expected_one_of
from marft_envs.datasets.dataset_spec import DatasetSpec, ItemT, Unusable, format_reasons
from marft_envs.datasets.duplicates import prompt_key
from marft_envs.datasets.files import DataError, Row, check_columns, read_rows
from marft_envs.datasets.progress_bar import progress_bar
from marft_envs.datasets.source import HubRows, LocalFiles, find_source, hash_files, sibling_files
from marft_envs.datasets.store import Store, key_of, open_store, pack, save_store

T_co = TypeVar("T_co", covariant=True)


class UsableRows(Protocol[T_co]):
    """A sequence of (row number, item); row numbers count the rows of the split from 0."""

    @property
    def origin(self) -> str:
        """The files or the repository, with a hash or commit where there is one."""

    @property
    def total(self) -> int:
        """Number of rows of the split, unusable ones included."""

    @property
    def unusable(self) -> tuple[tuple[int, str], ...]:
        """(row number, reason) of each row that was left out."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> tuple[int, T_co]: ...


@dataclass(frozen=True)
class StoredRows(Generic[ItemT]):
    """Converted rows, mapped from the cache where possible. item_type: the class of the items."""

    store: Store
    item_type: Callable[..., ItemT]

    @property
    def origin(self) -> str:
        return str(self.store.meta["origin"])

    @property
    def total(self) -> int:
        return int(self.store.meta["rows"])

    @property
    def unusable(self) -> tuple[tuple[int, str], ...]:
        return tuple((row, reason) for row, reason in self.store.meta["unusable"])

    def __len__(self) -> int:
        return len(self.store)

    def __getitem__(self, number: int) -> tuple[int, ItemT]:
        row, values = self.store[number]
        return row, self.item_type(**values)


@dataclass(frozen=True)
class LazyRows(Generic[ItemT]):
    """Rows that are converted when they are read; reading an unusable one raises ``Unusable``."""

    rows: list[Row]
    origin: str
    read: Callable[[Row], ItemT]
    unusable: tuple[tuple[int, str], ...] = ()

    @property
    def total(self) -> int:
        return len(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[int, ItemT]:
        return number, self.read(self.rows[number])


def load_rows(
    spec: DatasetSpec[ItemT],
    *,
    split: str,
    path: str | os.PathLike[str] | None = None,
    code: Iterable[Path],
) -> UsableRows[ItemT]:
    """Return the usable rows of a split, in the order of the source.

    Args:
        spec: The data set.
        split: One of ``spec.splits``.
        path: A file, or a folder with the data; None for the folder in MARFT_DATA, then the hub or its cache.
        code: Folders whose Python code decides what a row becomes, for the key in the cache (``key_of``).

    Raises:
        ValueError: The data set has no such split.
        FileNotFoundError: ``path`` or MARFT_DATA does not exist, or ``path`` holds no file of the split.
        DataError: No source has the data, a file is corrupt, a column is missing, or no row is usable.
    """
    if split not in spec.splits:
        raise ValueError(expected_one_of("split", split, spec.splits, f" (the splits of {spec.name})"))
    source = find_source(spec, split, path)
    if spec.lazy:
        rows, origin = source.read_once()
        return LazyRows(_of_split(spec, split, rows, origin), origin, spec.read)
    return StoredRows(_open_or_build(spec, split, path, source, code), spec.item_type)


def _open_or_build(
    spec: DatasetSpec[ItemT],
    split: str,
    path: str | os.PathLike[str] | None,
    source: LocalFiles | HubRows,
    code: Iterable[Path],
) -> Store:
    test_files = sibling_files(spec, "test", path) if split == "train" else ()
    tested = hash_files(test_files) if test_files else ""
    key = key_of(spec.name, spec.variant, split, source.identity, tested, code=code) if source.identity else ""
    if key and (store := open_store(key)):
        return store
    rows, origin = source.read()
    rows = _of_split(spec, split, rows, origin)
    test_prompts = _prompts(spec, [row for file in test_files for row in read_rows(file)])
    store = _convert(spec, split, rows, origin, test_prompts)
    return save_store(key, store) if key else store


def _of_split(spec: DatasetSpec[Any], split: str, rows: list[Row], origin: str) -> list[Row]:
    """Return the rows of the split that ``spec.keep`` accepts."""
    check_columns(rows, spec.columns, f"{spec.name} from {origin.split(' (')[0]}")
    if spec.split_of is not None and split != "all":
        rows = [row for row in rows if spec.split_of(row) == split]
    if spec.keep is not None:
        rows = [row for row in rows if spec.keep(row)]
    if not rows:
        raise DataError(f"{spec.name} from {origin}: no row of split={split!r} with these arguments")
    return rows


def _convert(spec: DatasetSpec[Any], split: str, rows: list[Row], origin: str, test_prompts: set[bytes]) -> Store:
    items: list[tuple[int, Mapping[str, Any]]] = []
    unusable: list[tuple[int, str]] = []
    for number, row in enumerate(progress_bar(rows, f"{spec.name} {split}")):
        try:
            item = spec.read(row)
        except Unusable as reason:
            unusable.append((number, str(reason)))
            continue
        if test_prompts and prompt_key(item.prompt) in test_prompts:
            unusable.append((number, "the same problem is in the test split"))
        else:
            items.append((number, {field.name: getattr(item, field.name) for field in fields(item)}))
    if not items:
        reasons = format_reasons(Counter(reason for _, reason in unusable))
        raise DataError(f"{spec.name} from {origin}: no usable row among {len(rows)}: {reasons}")
    return pack(items, {"origin": origin, "rows": len(rows), "unusable": unusable})


def _prompts(spec: DatasetSpec[Any], rows: list[Row]) -> set[bytes]:
    """Return the keys of the prompts of all usable rows."""
    keys = set()
    for row in rows:
        try:
            keys.add(prompt_key(spec.read(row).prompt))
        except Unusable:
            continue
    return keys
