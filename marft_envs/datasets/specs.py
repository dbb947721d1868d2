"""What is known of a data set: where its rows are, and how a row becomes a problem."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from marft_envs.datasets.files import Row


@dataclass(frozen=True)
class Item:
    """One usable row. notes: level (a whole number where there is one), subject and the like."""

    prompt: str
    gold: str
    notes: Mapping[str, Any] = field(default_factory=dict)


class Unusable(ValueError):
    """Why a row cannot be graded; such rows are left out, counted and listed."""


def counted(reasons: Mapping[str, int]) -> str:
    """Reasons and how many rows each has, the most frequent first, for people: "12 no layer reads the gold answer"."""
    return "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class HubSource:
    """A data set of the hub. configs: read one after another. revision: a commit; None, where none is known, is the
    newest, and ``origin`` of the task says which that was. parts: our split -> the hub's, where the names differ.
    files: for a repository whose own loading script no longer runs, the file of a part, as JSON.
    """

    repository: str
    configs: tuple[str, ...] = ("default",)
    revision: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    files: str = ""


@dataclass(frozen=True)
class DatasetSpec:
    """name, licence, source: as in the docs. columns: what a row must have. read: row to item.

    splits: the parts, as files name them. member: the split of a row, for a data set that is split here: then all parts
    that are found are read as one. hub: None for data that only files hold. variant: what else the cache is keyed by.
    """

    name: str
    licence: str
    source: str
    columns: tuple[str, ...]
    read: Callable[[Row], Item]
    hub: HubSource | None
    splits: tuple[str, ...] = ("train", "test")
    member: Callable[[Row], str] | None = None
    variant: str = ""


def at_revision(hub: HubSource | None, revision: str, name: str) -> HubSource:
    """The same at another commit. ValueError for a data set that is not on the hub, or what is no revision."""
    if hub is None:
        raise ValueError(f"revision={revision!r}: {name} is not read from the hub")
    if not isinstance(revision, str) or not revision:
        raise ValueError(f"revision={revision!r}: expected a commit of {hub.repository}")
    return replace(hub, revision=revision)


def hashed_split(key: str) -> str:
    """The split for good of data that comes as one: SHA-256 of the key, a multiple of 5 for "test"."""
    return "test" if int(hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest(), 16) % 5 == 0 else "train"
