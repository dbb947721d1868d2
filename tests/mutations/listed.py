"""The list of mutations: plausible faults of the learners, each an edit of one line, and the tests that must fail."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutations.toml")


@dataclass(frozen=True)
class Mutation:
    """A fault: an edit of one file.

    Attributes:
        name: The fault in a few words.
        file: Path of the file in the repository.
        old: The code that is replaced; it occurs exactly once in the file.
        new: Its replacement.
        tests: Files or node ids of pytest, one of which must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def problem(self, text: str) -> str:
        """Return why the mutation does not apply to the content of its file; "" if it does."""
        found = text.count(self.old)
        return "" if found == 1 else f"does not apply: {self.old!r} occurs {found} times in {self.file}, expected once"

    def apply(self, text: str) -> str:
        """Return the content of its file with the fault.

        Raises:
            ValueError: If ``old`` does not occur exactly once.
        """
        if self.problem(text):
            raise ValueError(f"mutation {self.name!r} {self.problem(text)}")
        return text.replace(self.old, self.new)


def load(path: Path = LIST) -> list[Mutation]:
    """Return the mutations of a list."""
    entries = tomllib.loads(path.read_text())["mutation"]
    return [Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
