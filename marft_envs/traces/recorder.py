"""Writing and reading of trace files: one header line, then one line per episode."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marft_envs.batch.episode import Episode
from marft_envs.game.flex_mg import FlexMG
from marft_envs.traces.rows import SCHEMA, Row, TraceError, add_entries, episode_of, episode_row, make_header


@dataclass(frozen=True)
class Trace:
    """The contents of a trace file.

    Attributes:
        header: The header row.
        episodes: The episode rows in the order of the file.
        partial_line: The incomplete last line of a run that was killed while it wrote; "" if the file is complete.
    """

    header: Row
    episodes: list[Row]
    partial_line: str = ""


class Recorder:
    """Writes episodes to a trace file, one line each. Can be used in a ``with`` block.

    Args:
        path: The file.
        env: The environment that is played; its name, team and settings go into the header.
        arguments: The arguments that the environment was made with, to store in the header.
        notes: What else is to be known about the file, to store in the header, such as the policy that played.
        with_gold: Store the gold answers. Without it, the file does not reveal them.
        observations: Store every observation in full, not only its digest.
        append: Continue a file of the same environment, after deleting an incomplete last line.

    Attributes:
        count: The number of episodes in the file.

    Raises:
        FileExistsError: The file exists and ``append`` is False.
        TraceError: The file to append to is not a trace, or is one of another environment.
        TypeError: ``arguments`` or ``notes`` cannot be written as JSON.
    """

    def __init__(
        self,
        path: str | Path,
        env: Any,
        *,
        arguments: Mapping[str, Any] | None = None,
        notes: Mapping[str, Any] | None = None,
        with_gold: bool = False,
        observations: bool = False,
        append: bool = False,
    ) -> None:
        self.path, self.with_gold, self.observations = Path(path), with_gold, observations
        game: FlexMG = env.unwrapped
        header = make_header(game, arguments, notes)
        json.dumps(header)  # raises for arguments that are not JSON, before the file is created
        exists = self.path.exists()
        if exists and not append:
            raise FileExistsError(f"{self.path}: the file exists; expected a new file, or append=True")
        self.count = self._prepare_append(header) if exists else 0
        create = 0 if exists else os.O_CREAT | os.O_EXCL
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | create, 0o644)
        if not exists:
            self._write(header)

    def _prepare_append(self, header: Row) -> int:
        """Validate the header of the file and delete an incomplete last line. Return the number of episodes."""
        trace = read(self.path)
        for key in ("schema", "environment", "team", "game"):
            if trace.header[key] != json.loads(json.dumps(header[key])):
                raise TraceError(f"{self.path}: the header has a different {key}; expected that of the environment")
        if trace.partial_line:
            with self.path.open("rb+") as file:
                size = len(trace.partial_line.encode("utf-8", "surrogateescape"))
                file.truncate(self.path.stat().st_size - size)
        return len(trace.episodes)

    def record(self, played: Any, *, seed: int | None = None, added: Sequence[Mapping[str, Any]] = ()) -> Row:
        """Write one episode.

        Args:
            played: An ``Episode`` of a BatchRunner; or an environment whose episode is over, before any agent has left
                it (that is, before the first dead step).
            seed: The seed of the environment's ``reset``; ignored for an ``Episode``, which has its own.
            added: For each action of the episode, entries to add to its turn, such as ``value`` (docs/traces.md).

        Returns:
            The row, which is in the file when this method returns.

        Raises:
            TraceError: The episode is not over or not graded yet, or it cannot be written as JSON.
            ValueError: ``added`` has entries, but not one for each action.
        """
        episode = played if isinstance(played, Episode) else episode_of(played, seed)
        row = episode_row(episode, with_gold=self.with_gold, observations=self.observations)
        add_entries(row, added)
        row["number"] = self.count
        self._write(row)
        self.count += 1
        return row

    def _write(self, row: Row) -> None:
        """Write the line with one call, so that only the last line of a file can ever be incomplete."""
        try:
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # lone surrogates in a problem or a tool's result: write escapes
            line = json.dumps(row).encode() + b"\n"
        except TypeError as fault:
            raise TraceError(
                f"{self.path}: the episode of problem {row.get('index')} is not JSON ({fault}); expected plain values"
            ) from fault
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line of {len(line)} bytes was not written completely; is the disk full?")

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def read(path: str | Path) -> Trace:
    """Read a trace file.

    An incomplete last line, which a killed run leaves, is ignored with a warning; it is in ``Trace.partial_line``.

    Args:
        path: The file.

    Returns:
        The header and all episodes.

    Raises:
        FileNotFoundError: There is no such file.
        TraceError: A line is not a row of the schema; the message names the line.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"trace {source}: not found, expected a JSONL file that a Recorder wrote")
    text = source.read_bytes().decode("utf-8", "surrogateescape")
    *lines, partial_line = text.split("\n")
    if partial_line:
        warnings.warn(
            f"{source}: line {len(lines) + 1} is incomplete ({len(partial_line)} characters) and is ignored",
            stacklevel=2,
        )
    rows = [_parse(source, number, line) for number, line in enumerate(lines, 1)]
    if not rows or rows[0].get("kind") != "header":
        raise TraceError(f"{source}: line 1 is not a header; expected a file with schema {SCHEMA!r}")
    if rows[0].get("schema") != SCHEMA:
        raise TraceError(f"{source}: schema={rows[0].get('schema')!r}; expected {SCHEMA!r}")
    for number, row in enumerate(rows[1:], 2):
        if row.get("kind") != "episode":
            raise TraceError(f"{source}: line {number} has kind={row.get('kind')!r}; expected 'episode'")
    return Trace(rows[0], rows[1:], partial_line)


def _parse(source: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as fault:
        raise TraceError(f"{source}: line {number} is not JSON ({fault})") from fault
    if not isinstance(row, dict):
        raise TraceError(f"{source}: line {number} is a {type(row).__name__}; expected a JSON object")
    return row
