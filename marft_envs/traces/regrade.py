"""Grade recorded episodes again, without playing them: which verdicts would the present grader change?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from marft_envs.arguments import did_you_mean
from marft_envs.game import scoring
from marft_envs.game.flex_mg import FlexMG
from marft_envs.traces.rows import Row, TraceError
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome, Verdict


@dataclass(frozen=True)
class ChangedVerdict:
    """A verdict that differs from the recorded one.

    Attributes:
        episode: The number of the episode in the trace.
        index: The index of its problem.
        agent: The agent whose answer was graded.
        answer: The answer.
        before: The recorded outcome.
        after: The new verdict, with its reason.
    """

    episode: int
    index: int
    agent: str
    answer: str
    before: Outcome
    after: Verdict

    def __str__(self) -> str:
        why = f": {self.after.reason}" if self.after.reason else ""
        return (
            f"episode {self.episode}, problem {self.index}, {self.agent}: {self.before} -> {self.after.outcome}{why}\n"
            f"  answer: {self.answer!r:.300}"
        )


@dataclass
class Regrade:
    """The result of ``regrade``. The means are over the episodes that are graded both times.

    Attributes:
        changed: The verdicts that differ.
        answers: Number of answers that were graded again.
        episodes: Number of episodes that were graded again.
        truncated: Number of episodes that an outside limit truncated, which are not graded.
        not_graded_before: Number of episodes without a recorded score, of those graded again.
        not_graded_after: Number of episodes without a new score.
        scores: The recorded and the new score of each episode that has both.
    """

    changed: list[ChangedVerdict] = field(default_factory=list)
    answers: int = 0
    episodes: int = 0
    truncated: int = 0
    not_graded_before: int = 0
    not_graded_after: int = 0
    scores: list[tuple[float, float]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the result as text, one changed verdict after the other, and a summary at the end."""
        yield from map(str, self.changed)
        yield (
            f"{self.answers} answers of {self.episodes} episodes graded again, {len(self.changed)} verdicts changed; "
            f"{self.truncated} truncated episodes not graded"
        )
        if self.scores:
            before, after = (sum(column) / len(self.scores) for column in zip(*self.scores, strict=True))
            yield f"mean score of the {len(self.scores)} episodes graded both times: {before:.4f} -> {after:.4f}"
        yield f"episodes that could not be graded: {self.not_graded_before} -> {self.not_graded_after}"


def with_policy(env: Any, changes: Mapping[str, Any]) -> None:
    """Change the grading policy of an environment's task, for this environment only.

    Args:
        env: The environment.
        changes: Fields of the policy, such as ``{"arithmetic": "any"}``.

    Raises:
        ValueError: The task has no grading policy, or a field or its value is not allowed.
    """
    if not changes:
        return
    task = env.unwrapped.task
    policy = getattr(task, "policy", None)
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type):
        raise ValueError(f"policy={dict(changes)!r}: the task {task.name!r} has no grading policy that could change")
    known = [f.name for f in dataclasses.fields(policy)]
    for name in changes:
        if name not in known:
            raise ValueError(f"policy {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
    task.policy = dataclasses.replace(policy, **changes)


def regrade(env: Any, rows: Iterable[Row]) -> Regrade:
    """Grade the final answers of recorded episodes with the environment's present grader.

    Nothing is generated or played: the recorded transcripts are graded as they are. Recorded episodes that could not be
    graded are tried again; truncated ones have no score and are only counted.

    Args:
        env: An environment with the arguments of the recorded one.
        rows: Episodes of ``read(path).episodes``.

    Raises:
        TraceError: A row is of another problem or another team than the environment's.
    """
    game: FlexMG = env.unwrapped
    found = Regrade()
    for row in rows:
        if row["truncated"]:
            found.truncated += 1
            continue
        env.reset(seed=row["seed"], options={"index": row["index"]})
        _check_same(game, row)
        _grade_episode(game, row, found)
    return found


def _grade_episode(game: FlexMG, row: Row, found: Regrade) -> None:
    turns = [Turn(turn["round"], turn["agent"], turn["text"], turn["kind"]) for turn in row["turns"]]
    answers = scoring.answers_of(game.team, game.problem, turns)
    verdicts = scoring.grade_answers(game.task, answers)
    outcome, fault = scoring.score(game.task, game.team, turns, verdicts)
    found.episodes += 1
    found.answers += len(answers)
    found.not_graded_before += row["score"] is None
    found.not_graded_after += bool(fault)
    if row["score"] is not None and not fault:
        found.scores.append((row["score"], outcome.score))
    for agent, verdict in verdicts.items():
        recorded = row["verdicts"].get(agent)
        before = Outcome(recorded["outcome"]) if recorded else Outcome.NOT_GRADED
        if before is not verdict.outcome or (recorded and recorded["score"] != verdict.score):
            found.changed.append(ChangedVerdict(row["number"], row["index"], agent, answers[agent][0], before, verdict))


def _check_same(game: FlexMG, row: Row) -> None:
    """Raise TraceError unless the row is of the problem that the environment shows, and of agents of its team."""
    actual = {"prompt": game.problem.prompt, "private": dict(game.problem.private)}
    for name, value in actual.items():
        if value != row[name]:
            raise TraceError(
                f"episode {row['number']}: problem {row['index']} has the {name} {value!r:.200}, in the trace "
                f"{row[name]!r:.200}; expected an environment with the arguments of the recorded one"
            )
    unknown = [agent for agent in row["verdicts"] if agent not in game.team.answering]
    if unknown:
        raise TraceError(
            f"episode {row['number']} has verdicts on {', '.join(unknown)}: expected some of "
            f"{', '.join(game.team.answering)}, the agents of the environment that answer"
        )
