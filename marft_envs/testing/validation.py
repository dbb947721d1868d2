"""``validate``: all that an environment must show before anybody trains on it, in one report.

Beside the checks of ``check_env`` and ``check_task``, it plays policies: one that knows the answer must get the
maximum, and policies that cannot know it must stay at the floor. It also replays recorded episodes and reads problems.
"""

from __future__ import annotations

import inspect
import math
import re
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marft_envs.arguments import check_integer
from marft_envs.game.reward import REWARDS
from marft_envs.registry.registry import make
from marft_envs.task import Task
from marft_envs.testing.checking import CheckReport, ConformanceError, expect, run_checks
from marft_envs.testing.env_case import EnvCase
from marft_envs.testing.env_checks import ENV_CHECKS
from marft_envs.testing.episodes import is_over
from marft_envs.testing.policies import CONSTANTS, FLOOR, Policy, constant, most_frequent_reply, oracle
from marft_envs.testing.problem_statistics import ProblemStatistics, problem_statistics
from marft_envs.testing.task_checks import TASK_CHECKS, TaskCase
from marft_envs.testing.task_variants import problem_of
from marft_envs.testing.validation_report import CheckResult, PolicyResult, ValidationReport
from marft_envs.traces import Recorder, ReplayError, read, replay

FLOOR_SCORE = 0.05
"""The largest mean score of a policy that must earn nothing."""
GAP = 0.4
"""The least distance between the oracle's mean score and that of the best constant answer."""
FEW = 5
"""With fewer problems, a constant answer may be right by chance."""
MOST_DUPLICATES = 0.05
"""The largest share of repeated problems in a data set."""
_PINNED = re.compile(r"[0-9a-f]{7,}")


@dataclass
class _Subject:
    """The environment under validation.

    Attributes:
        name: Its name.
        arguments: Its arguments.
        seed: The seed of the episodes.
        indices: The problems that the policies play.
        results: The checks so far.
    """

    name: str
    arguments: dict[str, Any]
    seed: int
    indices: tuple[int, ...] = ()
    results: list[CheckResult] = field(default_factory=list)

    def env(self) -> Any:
        return make(self.name, **self.arguments)

    def check(self, name: str, function: Callable[[], None]) -> None:
        """Run one check of this module and note its result."""
        try:
            function()
        except ConformanceError as failure:
            self.results.append(CheckResult(name, "failed", str(failure)))
        except Exception as fault:  # an environment may raise anything
            self.results.append(CheckResult(name, "failed", f"it raised {type(fault).__name__}: {fault!s:.500}"))
        else:
            self.results.append(CheckResult(name, "passed"))

    def run(self, checks: Mapping[str, Callable[[Any], None]], case: Any) -> None:
        """Run each check of a collection on its own, so that the report lists all failures."""
        for name in checks:
            try:
                report = run_checks(checks, case, self.name, [name], ())
            except ConformanceError as failure:
                self.results.append(CheckResult(name, "failed", str(failure)))
            else:
                self.results.append(_result(name, report))


def _result(name: str, report: CheckReport) -> CheckResult:
    reason = report.not_checked.get(name)
    return CheckResult(name, "passed") if reason is None else CheckResult(name, "not checked", reason)


class _TaskOf:
    """Makes the task of an environment, with another seed or split if the environment has these arguments.

    A class, and not a local function, so that another process can import it.
    """

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.name, self.arguments = name, dict(arguments)
        keyword = inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(p, keyword, default=None) for p in ("seed", "split") if self._accepts(p)]
        )

    def _accepts(self, parameter: str) -> bool:
        if parameter in self.arguments:
            return False
        try:
            make(self.name, **self.arguments, **{parameter: {"seed": 0, "split": "test"}[parameter]})
        except (ValueError, TypeError, OSError):
            return False
        return True

    def __call__(self, **changes: Any) -> Task:
        task: Task = make(self.name, **{**self.arguments, **changes}).unwrapped.task
        return task


def validate(
    environment: str, *, problems: int = 20, seed: int = 0, arguments: Mapping[str, Any] | None = None
) -> ValidationReport:
    """Check an environment, its task and its data, and play policies that must earn everything or nothing.

    Args:
        environment: The name of the environment, as ``marft_envs.make`` takes it.
        problems: How many problems each policy plays.
        seed: The seed of the episodes.
        arguments: Arguments of the environment, such as ``{"dataset": "relay"}``.

    Returns:
        The report. A failed check is in it and raises nothing.

    Raises:
        ValueError: The name or an argument of the environment is wrong, or ``problems`` is below 1.
    """
    count = check_integer("problems", problems, 1)
    subject = _Subject(environment, dict(arguments or {}), seed)
    game = subject.env().unwrapped
    task = game.task
    subject.indices = tuple(range(count if task.size is None else min(count, task.size)))
    few = subject.indices[:3]
    subject.run(ENV_CHECKS, EnvCase(subject.env, environment.rpartition(":")[2], seed, few))
    subject.run(TASK_CHECKS, TaskCase(task, _TaskOf(environment, subject.arguments), subject.indices))
    subject.check("replay_from_a_trace", lambda: _replay_from_trace(subject))
    policies = _play_policies(subject, task)
    statistics_ = _check_problems(subject, task)
    return ValidationReport(environment, subject.arguments, tuple(subject.results), policies, statistics_)


def _replay_from_trace(subject: _Subject) -> None:
    """An episode that was written to a file is replayed from it, with the same verdicts and rewards."""
    with tempfile.TemporaryDirectory() as folder:
        path, env = Path(folder) / "trace.jsonl", subject.env()
        with Recorder(path, env, with_gold=False) as recorder:
            for index, policy in zip(subject.indices[:2] * 2, (oracle, FLOOR["garbage"]) * 2, strict=False):
                _play(env, policy, index, subject.seed)
                recorder.record(env, seed=subject.seed)
        for row in read(path).episodes:
            try:
                replay(subject.env(), row)
            except ReplayError as difference:
                raise ConformanceError(
                    f"episode {row['number']} of a trace is replayed differently: {difference}"
                ) from None


def _play(env: Any, policy: Policy, index: int, seed: int) -> None:
    """Play one problem to the end of the last turn."""
    env.reset(seed=seed, options={"index": index})
    while not is_over(env):
        env.step(policy(env.unwrapped, env.agent_selection))


def _play_policies(subject: _Subject, task: Task) -> tuple[PolicyResult, ...]:
    """Play all policies. The oracle must earn the maximum, and the others must stay below their limits."""
    rewards: list[tuple[str, float]] = []
    played: dict[str, PolicyResult] = {}

    def play(name: str, policy: Policy) -> PolicyResult:
        played[name] = _scores(subject, name, policy, rewards)
        return played[name]

    subject.check("oracle_scores_the_maximum", lambda: _expect_maximum(play("oracle", oracle)))
    for name, policy in FLOOR.items():
        subject.check(f"{name}_stays_at_the_floor", lambda n=name, p=policy: _expect_floor(play(n, p)))  # type: ignore[misc]
    subject.check("no_constant_answer_wins", lambda: _expect_gap(subject, task, play))
    subject.check("rewards_are_in_their_range", lambda: _expect_range(subject, rewards))
    return tuple(played.values())


def _scores(subject: _Subject, name: str, policy: Policy, rewards: list[tuple[str, float]]) -> PolicyResult:
    env, scores, faults = subject.env(), [], 0
    for index in subject.indices:
        _play(env, policy, index, subject.seed)
        if any("not_graded" in info for info in env.infos.values()):
            faults += 1
            continue
        scores.append(float(env.unwrapped.outcome.score))
        rewards += [(name, float(reward)) for reward in env.rewards.values()]
    mean = statistics.fmean(scores) if scores else math.nan
    return PolicyResult(name, mean, max(scores, default=math.nan), len(scores), faults)


def _expect_maximum(result: PolicyResult) -> None:
    _expect_graded(result)
    expect(result.mean == 1.0, f"correct replies have the mean score {result.mean:.3f}; expected 1")


def _expect_floor(result: PolicyResult) -> None:
    _expect_graded(result)
    expect(
        result.mean <= FLOOR_SCORE,
        f"the policy {result.name!r} has the mean score {result.mean:.3f}; expected at most {FLOOR_SCORE}, because it "
        "does not solve the problem",
    )


def _expect_graded(result: PolicyResult) -> None:
    expect(
        not result.not_graded,
        f"{result.not_graded} of {result.not_graded + result.episodes} episodes of the policy {result.name!r} could "
        "not be graded; expected a verdict on every reply",
    )


def _expect_gap(subject: _Subject, task: Task, play: Callable[[str, Policy], PolicyResult]) -> None:
    """The best answer that does not depend on the problem earns much less than the oracle."""
    frequent = most_frequent_reply(task, [problem_of(task, index) for index in subject.indices])
    texts = [text for text in dict.fromkeys((*CONSTANTS, frequent)) if text]
    means = {text: _scores(subject, "constant", constant(text), []).mean for text in texts}
    text = max(means, key=means.__getitem__)
    best = play(f"best constant answer, {text!r:.30}", constant(text))
    expect(
        best.mean <= 1.0 - GAP or len(subject.indices) < FEW,
        f"the {best.name} has the mean score {best.mean:.3f} on {best.episodes} problems; expected at most "
        f"{1 - GAP:.1f}, so that the answer depends on the problem",
    )


def _expect_range(subject: _Subject, rewards: Sequence[tuple[str, float]]) -> None:
    """Rewards are finite; those of a named reward function are between 0 and 1, plus the format bonus."""
    game = subject.env().unwrapped
    high = 1.0 + max(0.0, game.format_bonus) if game.reward in REWARDS.values() else math.inf
    low = min(0.0, game.format_bonus) if math.isfinite(high) else -math.inf
    for name, reward in rewards:
        expect(
            math.isfinite(reward) and low <= reward <= high,
            f"the policy {name!r} got the reward {reward}; expected a finite number from {low} to {high}",
        )


def _check_problems(subject: _Subject, task: Task) -> ProblemStatistics | None:
    """Read problems, describe them, and check that a data set repeats few of them and is pinned."""
    found: list[ProblemStatistics] = []
    subject.check("problems_are_readable", lambda: found.append(problem_statistics(task)))
    if not found:
        return None
    subject.check("few_duplicates", lambda: _expect_few_duplicates(found[0]))
    subject.check("data_is_pinned", lambda: _expect_pinned(task))
    return found[0]


def _expect_few_duplicates(problems: ProblemStatistics) -> None:
    if problems.size is None:
        return  # a generator with few different problems repeats them by design
    share = problems.duplicates / problems.read
    expect(
        share <= MOST_DUPLICATES,
        f"{problems.duplicates} of {problems.read} problems repeat an earlier one; expected at most "
        f"{MOST_DUPLICATES:.0%}",
    )


def _expect_pinned(task: Task) -> None:
    origin = getattr(task, "origin", None)
    expect(
        origin is None or _PINNED.search(str(origin)),
        f"the data comes from {origin!r}, without a hash or a commit; expected a pinned source",
    )
