"""Descriptions of data sets: where the rows are, and how a row becomes an item that can be graded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from marft_envs.arguments import did_you_mean
from marft_envs.datasets.files import DataError, Row


class DatasetItem(Protocol):
    """One usable row: a frozen dataclass whose fields can be written as JSON."""

    @property
    def prompt(self) -> str:
        """The problem statement."""


ItemT = TypeVar("ItemT", bound=DatasetItem)
SpecT = TypeVar("SpecT", bound="DatasetSpec[Any]")


class Unusable(ValueError):
    """The reason why a row cannot be graded. Such rows are left out, counted and listed."""


@dataclass(frozen=True)
class HubDataset:
    """A data set on the Hugging Face hub.

    Attributes:
        repository: Its name, ``owner/name``.
        configs: Configurations to read, one after another.
        revision: Commit hash. None reads the newest commit; the task's ``origin`` then names it.
        split_names: The hub's name of a split, where it differs from ours.
        files: For a repository whose loading script no longer runs: the path of its JSON file, in which ``{split}``
            stands for the split. Empty otherwise.
    """

    repository: str
    configs: tuple[str, ...] = ("default",)
    revision: str | None = None
    split_names: Mapping[str, str] = field(default_factory=dict)
    files: str = ""


@dataclass(frozen=True)
class DatasetSpec(Generic[ItemT]):
    """A data set: where its rows are, and how a row becomes an item.

    A subclass for one subject sets ``item_type`` to the class of its items.

    Attributes:
        name: Name for ``load``, and of its folder in MARFT_DATA.
        licence: Licence of the data, for people.
        source: Publication or repository, for people.
        columns: Columns that every row must have.
        read: Converts a row to an item, or raises ``Unusable``.
        hub: Where the hub has it; None for data that only files hold.
        splits: Names of the splits.
        files: File names without suffix, tried in order; the first that exists is read. ``{split}`` stands for the
            split, ``{part}`` for the part, and a final ``*`` matches several files, which are read in sorted order.
        split_of: Returns the split of a row, for data that is published as one. The files of all splits are then read
            together.
        parts: Names of the parts of a data set of which one part is loaded at a time.
        keep: Returns whether a row is loaded at all; None loads all rows.
        lazy: Whether rows are converted only when their problem is read, because converting all of them takes minutes.
        variant: Whatever else decides what a row becomes; it is part of the key in the cache.
    """

    item_type: ClassVar[Callable[..., Any]]

    name: str
    licence: str
    source: str
    columns: tuple[str, ...]
    read: Callable[[Row], ItemT]
    hub: HubDataset | None
    splits: tuple[str, ...] = ("train", "test")
    files: tuple[str, ...] = ("{split}",)
    split_of: Callable[[Row], str] | None = None
    parts: tuple[str, ...] = ()
    keep: Callable[[Row], bool] | None = None
    lazy: bool = False
    variant: str = ""

    def at_revision(self, revision: str | None) -> Self:
        """Return the data set at another commit of the hub; None keeps the pinned one.

        Raises:
            ValueError: The data set is not on the hub, or ``revision`` is not a non-empty string.
        """
        if revision is None:
            return self
        if self.hub is None:
            raise ValueError(f"revision={revision!r}: expected None, {self.name} is not read from the hub")
        if not isinstance(revision, str) or not revision:
            raise ValueError(f"revision={revision!r}: expected a commit of {self.hub.repository}")
        return replace(self, hub=replace(self.hub, revision=revision))

    def of_part(self, part: str | None) -> Self:
        """Return one part of the data set; None for a data set without parts.

        Raises:
            ValueError: There is no such part.
        """
        if part not in (self.parts or (None,)):
            wanted = f"one of {', '.join(self.parts)}" if self.parts else f"None, {self.name} has no parts"
            raise ValueError(f"part={part!r}: expected {wanted}")
        if part is None:
            return self
        files = tuple(pattern.replace("{part}", part) for pattern in self.files)
        hub = self.hub and replace(self.hub, configs=(part,))
        return replace(self, files=files, hub=hub, variant=part)


def spec_named(name: str, specs: Mapping[str, SpecT], also: tuple[str, ...] = ()) -> SpecT:
    """Return the spec of a data set.

    Args:
        name: What the user passed.
        specs: The known data sets by name.
        also: Further names to list in the error message.

    Raises:
        TypeError: ``name`` is not a string.
        DataError: There is no data set of that name; the message suggests the nearest one.
    """
    if not isinstance(name, str):
        raise TypeError(f"dataset={name!r}: got {type(name).__name__}, expected str")
    if name not in specs:
        names = (*specs, *also)
        raise DataError(f"dataset={name!r}: unknown, expected one of {', '.join(names)}{did_you_mean(name, names)}")
    return specs[name]


def hashed_split(key: str, *, one_in: int = 5) -> str:
    """Return the split of a row of data that is published as one file.

    Args:
        key: What identifies the row.
        one_in: One row in so many is in "test".

    Returns:
        "test" if the SHA-256 of ``key`` is a multiple of ``one_in``, else "train"; the same in every process.
    """
    number = int(hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest(), 16)
    return "test" if number % one_in == 0 else "train"


def format_reasons(reasons: Mapping[str, int]) -> str:
    """Return reasons with the number of rows of each, the most frequent first: ``12 no gold; 3 no tests``."""
    return "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))
