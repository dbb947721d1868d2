"""Traces: episodes as JSONL, one schema with a version, to keep, to read, to replay and to fork. See docs/traces.md.

    with Recorder("run.jsonl", env) as recorder:
        for episode in runner.stream(policy, episodes=1000):
            recorder.record(episode)
    trace = read("run.jsonl")
    replay(env, trace.episodes[0])           # the same observations, texts, verdicts and score, or ReplayError
    fork(env, trace.episodes[0], turn=1)     # env stands after the first action, and play goes on from there

The first line is the header, every other line an episode. The gold is left out unless it is asked for.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marft_envs.batch.episode import Episode
from marft_envs.game.flex_mg import FlexMG
from marft_envs.traces.replay import ReplayError, fork, replay
from marft_envs.traces.rows import SCHEMA, Row, TraceError, digest, episode_of, episode_row, make_header


@dataclass(frozen=True)
class Trace:
    """What a file holds. cut: the unfinished last line of a run that was killed while it wrote, "" without one."""

    header: Row
    episodes: list[Row]
    cut: str = ""


class Recorder:
    """Appends episodes to a file, one whole line at a time.

    env: what is played (guarded or not); its name, team and settings go into the header. arguments: how it was made, if
    you want that in the header, too. with_gold: keep the reference answers. observations: keep what each agent read in
    full, not only its digest. append: go on with a file of the same environment, cutting off an unfinished last line;
    otherwise a file that exists is an error, FileExistsError.
    """

    def __init__(
        self,
        path: str | Path,
        env: Any,
        *,
        arguments: Mapping[str, Any] | None = None,
        with_gold: bool = False,
        observations: bool = False,
        append: bool = False,
    ) -> None:
        self.path, self.with_gold, self.observations = Path(path), with_gold, observations
        game: FlexMG = env.unwrapped
        header = make_header(game, arguments)
        json.dumps(header)  # arguments that are no JSON show here, before a file is there
        exists = self.path.exists()
        if exists and not append:
            raise FileExistsError(f"{self.path}: exists; expected a new file, or append=True")
        self.count = self._continue(header) if exists else 0
        new = 0 if exists else os.O_CREAT | os.O_EXCL
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | new, 0o644)
        if not exists:
            self._write(header)

    def _continue(self, header: Row) -> int:
        """Check that the file is of the same game, and cut an unfinished line off. Returns its number of episodes."""
        found = read(self.path)
        for key in ("schema", "environment", "team", "game"):
            if found.header[key] != json.loads(json.dumps(header[key])):
                raise TraceError(f"{self.path}: its header has another {key}; expected that of the environment given")
        if found.cut:
            with self.path.open("rb+") as file:
                file.truncate(self.path.stat().st_size - len(found.cut.encode("utf-8", "surrogateescape")))
        return len(found.episodes)

    def record(self, played: Any, *, seed: int | None = None) -> Row:
        """Write one episode: an ``Episode`` of the batch runner, or an environment whose episode is over and whose
        agents have not left yet (before the dead steps), with the seed it was reset with. Returns the row."""
        episode = played if isinstance(played, Episode) else episode_of(played, seed)
        row = episode_row(episode, with_gold=self.with_gold, observations=self.observations)
        row["number"] = self.count
        self._write(row)
        self.count += 1
        return row

    def _write(self, row: Row) -> None:
        """One write for the whole line: whoever reads sees it entirely or, if the machine dies in it, as the last."""
        try:
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # lone surrogates of a problem or a tool: escaped
            line = json.dumps(row).encode() + b"\n"
        except TypeError as fault:
            raise TraceError(f"{self.path}: episode of problem {row.get('index')}: {fault}; expected JSON") from fault
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line of {len(line)} bytes was written in part; is the disk full?")

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
    """The header and all episodes. An unfinished last line is told (a warning, and ``Trace.cut``); anything else that
    is no row of this schema is a TraceError that names the line."""
    source = Path(path)
    text = source.read_bytes().decode("utf-8", "surrogateescape")
    *lines, cut = text.split("\n")
    if cut:
        warnings.warn(
            f"{source}: line {len(lines) + 1} is cut off ({len(cut)} characters); it is left out", stacklevel=2
        )
    rows = [_parse(source, number, line) for number, line in enumerate(lines, 1)]
    if not rows or rows[0].get("kind") != "header":
        raise TraceError(f"{source}: line 1 is no header; expected a file with schema {SCHEMA!r}")
    if rows[0].get("schema") != SCHEMA:
        raise TraceError(f"{source}: schema={rows[0].get('schema')!r}; expected {SCHEMA!r}")
    for number, row in enumerate(rows[1:], 2):
        if row.get("kind") != "episode":
            raise TraceError(f"{source}: line {number} has kind={row.get('kind')!r}; expected 'episode'")
    return Trace(rows[0], rows[1:], cut)


def _parse(source: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as fault:
        raise TraceError(f"{source}: line {number} is no JSON ({fault})") from fault
    if not isinstance(row, dict):
        raise TraceError(f"{source}: line {number} is a {type(row).__name__}; expected an object")
    return row


__all__ = ["SCHEMA", "Recorder", "ReplayError", "Trace", "TraceError", "digest", "fork", "read", "replay"]
