"""Records of an evaluation: one JSON line per problem, with all its samples, in a file that a killed run continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from baselines.engine.endpoint import EndpointReply
from baselines.runs.sample_metrics import majority
from baselines.runs.transcripts import GOLD_LIMIT
from marft_envs.batch import BatchRunner, Episode
from marft_envs.game.scoring import answers_of
from marft_envs.task import Problem
from marft_envs.traces.rows import add_entries, episode_row
from marft_envs.verdict import Outcome

Row = dict[str, Any]


def problem_digest(problem: Problem) -> str:
    """Return 16 hexadecimal digits that depend on the prompt, the private parts and the gold of a problem."""
    text = json.dumps([problem.prompt, dict(problem.private), problem.gold], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def item_record(runner: BatchRunner, episodes: Sequence[Episode], *, vote: bool) -> Row:
    """Return the record of one problem (docs/evaluation.md).

    Args:
        runner: The runner that played the episodes.
        episodes: The samples: at least one episode, all of the same problem.
        vote: Whether to find the answer of the majority, for a task of mathematics.
    """
    problem = episodes[0].problem
    assert problem is not None
    scores = [None if episode.not_graded else episode.score for episode in episodes]
    answers = [answer_of(runner, episode) for episode in episodes]
    verdicts = [verdict for e in episodes if e.outcome for verdict in e.outcome.verdicts.values()]
    with_gold = len(json.dumps(problem.gold, default=repr)) <= GOLD_LIMIT
    record = {
        "kind": "item",
        "index": problem.index,
        "problem": problem_digest(problem),
        "scores": scores,
        "answers": answers,
        "no_answer": sum(verdict.outcome is Outcome.NO_ANSWER for verdict in verdicts),
        "faults": [episode.not_graded for episode in episodes],
        **_usage(episodes),
        "episodes": [_episode_row(episode, with_gold) for episode in episodes],
    }
    if vote and None not in scores and isinstance(problem.gold, str) and len(runner.team.answering) == 1:
        winner = majority(runner.task, problem, answers)
        record["majority"] = 0.0 if winner is None else scores[winner]
    return record


def answer_of(runner: BatchRunner, episode: Episode) -> str | None:
    """Return the answer of the team, if one agent answers; None without an answer."""
    assert episode.problem is not None
    found = answers_of(runner.team, episode.problem, episode.transcript)
    if episode.not_graded or len(found) != 1:
        return None
    ((text, _),) = found.values()
    return runner.task.answer_of(text)


def _episode_row(episode: Episode, with_gold: bool) -> Row:
    """Return an episode by the schema of traces, with the tokens of each action. Its number is that of the sample."""
    row = episode_row(episode, with_gold=with_gold) | {"number": episode.member, "group": 0}
    if sum(turn["kind"] != "result" for turn in row["turns"]) == len(episode.steps):
        add_entries(row, [_token_counts(step.data) for step in episode.steps])
    return row


def _token_counts(data: Any) -> Row:
    if isinstance(data, EndpointReply):
        return {
            "prompt_tokens": data.prompt_tokens, "generated_tokens": data.generated_tokens, "truncated": data.truncated,
            "attempts": data.attempts,
        }  # fmt: skip
    return {
        "prompt_tokens": len(data.prompt_ids),
        "generated_tokens": len(data.action_ids),
        "truncated": data.truncated,
    }


def _usage(episodes: Sequence[Episode]) -> Row:
    """Return the tokens of all samples, the number of replies, and of those that the token limit ended."""
    counts = [_token_counts(step.data) for episode in episodes for step in episode.steps]
    return {
        "prompt_tokens": sum(count["prompt_tokens"] for count in counts),
        "generated_tokens": sum(count["generated_tokens"] for count in counts),
        "replies": len(counts),
        "truncated_replies": sum(count["truncated"] for count in counts),
    }


def is_complete(record: Mapping[str, Any]) -> bool:
    """Return whether every sample of a record has a score, or was truncated by the game's own limit."""
    return all(
        score is not None or fault.startswith("truncated:")
        for score, fault in zip(record["scores"], record["faults"], strict=True)
    )


class RecordFile:
    """The records of one data set.

    Args:
        path: The file. If it exists, it is continued; an incomplete last line, which a killed run leaves, is deleted.
        runner: The runner of the data set.
        samples: Number of samples of each problem.

    Attributes:
        records: The record of each problem that has been played, by index: the newest, if a problem with a fault was
            played again.

    Raises:
        ValueError: The file has records of other problems, or a line that is no record.
    """

    def __init__(self, path: Path, runner: BatchRunner, samples: int) -> None:
        self.path = path
        self.records: dict[int, Row] = {}
        if path.exists():
            self._read(runner, samples)
        self._file = path.open("ab")

    def _read(self, runner: BatchRunner, samples: int) -> None:
        content = self.path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                record = json.loads(line)
                index, digest, played = record["index"], record["problem"], len(record["scores"])
            except (ValueError, LookupError, TypeError) as error:
                raise ValueError(f"{self.path}: line {number} is no record of an item: {error}") from error
            if played != samples or digest != problem_digest(runner.task.problem(index)):
                raise ValueError(
                    f"{self.path}: line {number} is of another problem {index} than the data set has now: expected the "
                    "data of the first run, or another folder"
                )
            self.records[index] = record
        if len(complete) < len(content):
            with self.path.open("rb+") as file:
                file.truncate(len(complete))

    def write(self, record: Row) -> None:
        """Append a record and flush the file."""
        self.records[record["index"]] = record
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
