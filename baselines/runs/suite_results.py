"""Results of an evaluation from its records: metrics, the results format of lm-evaluation-harness, and Markdown."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import marft_envs
from baselines.runs.evaluation import item_interval
from baselines.runs.evaluation_suites import Benchmark
from baselines.runs.item_records import is_complete
from baselines.runs.sample_metrics import pass_at_k

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over items.

    Attributes:
        mean: The mean.
        stderr: Its standard error over items; NaN for a single item.
    """

    mean: float
    stderr: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Return the mean of values, one for each item, at least one."""
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(np.mean(values)), error)


@dataclass(frozen=True)
class BenchmarkResult:
    """The result on one data set.

    Attributes:
        benchmark: The data set.
        samples: K, the number of samples of each problem.
        size: Number of problems of the data set; None for a generator.
        items: Number of problems that count: those of which all samples have a score.
        not_graded: Number of problems that do not count.
        reasons: The reasons why, each once.
        interval: Wilson's 95 % interval of avg@K over items; None without an item.
        metrics: Estimates by name: avg@K, pass@k for each k, and maj@K.
        no_answer: Share of answers in which the grader found none.
        truncated_replies: Share of replies that the token limit ended.
        prompt_tokens: Tokens that were read.
        generated_tokens: Tokens that were generated.
    """

    benchmark: Benchmark
    samples: int
    size: int | None
    items: int
    not_graded: int
    reasons: tuple[str, ...]
    interval: tuple[float, float] | None
    metrics: Mapping[str, Estimate]
    no_answer: float
    truncated_replies: float
    prompt_tokens: int
    generated_tokens: int


def result_of(
    benchmark: Benchmark, size: int | None, records: Sequence[Row], samples: int, ks: Sequence[int]
) -> BenchmarkResult:
    """Return the result on a data set from the records of its problems.

    A problem counts if all of its samples have a score. So a fault of the endpoint, the sandbox or the grader is no
    wrong answer.

    Args:
        benchmark: The data set.
        size: Number of its problems; None for a generator.
        records: One record for each problem.
        samples: K, the number of samples of each problem.
        ks: The numbers k of pass@k, at most ``samples``.
    """
    counted = [record for record in records if None not in record["scores"]]
    means = [float(np.mean(record["scores"])) for record in counted]
    replies, answers = sum(r["replies"] for r in records), samples * len(counted)
    return BenchmarkResult(
        benchmark,
        samples,
        size,
        items=len(counted),
        not_graded=len(records) - len(counted),
        reasons=tuple(dict.fromkeys(fault for record in records for fault in record["faults"] if fault)),
        interval=item_interval(means) if means else None,
        metrics=_metrics(counted, means, samples, ks) if counted else {},
        no_answer=sum(record["no_answer"] for record in counted) / max(1, answers),
        truncated_replies=sum(record["truncated_replies"] for record in records) / max(1, replies),
        prompt_tokens=sum(record["prompt_tokens"] for record in records),
        generated_tokens=sum(record["generated_tokens"] for record in records),
    )


def _metrics(counted: Sequence[Row], means: Sequence[float], samples: int, ks: Sequence[int]) -> dict[str, Estimate]:
    found = {f"avg@{samples}": Estimate.of(means)}
    for k in ks:
        correct = [sum(score == 1 for score in record["scores"]) for record in counted]
        found[f"pass@{k}"] = Estimate.of([pass_at_k(samples, c, k) for c in correct])
    if samples > 1 and all("majority" in record for record in counted):
        found[f"maj@{samples}"] = Estimate.of([record["majority"] for record in counted])
    return found


@dataclass(frozen=True)
class SuiteResults:
    """The results of an evaluation.

    Attributes:
        name: Name of the team or model.
        settings: Settings of the evaluation, as config.json has them.
        results: The result on each data set that was evaluated.
        missing: Reason by name of each data set that was not found.
        versions: Version of the environment by data set.
        seconds: Duration of this call.
    """

    name: str
    settings: Mapping[str, Any]
    results: Sequence[BenchmarkResult]
    missing: Mapping[str, str]
    versions: Mapping[str, int]
    seconds: float
    date: float = field(default_factory=time.time)

    @property
    def complete(self) -> bool:
        """Whether every data set was found, and every problem has a result."""
        return not self.missing and not any(result.not_graded for result in self.results)

    # ---- lm-evaluation-harness

    def harness(self) -> dict[str, Any]:
        """Return the results as lm-evaluation-harness writes them to ``results_*.json``.

        What the harness does not know, such as the team and data sets that were not found, is under ``marft_envs``.
        """
        names = [result.benchmark.name for result in self.results]
        return {
            "results": {result.benchmark.name: _harness_entry(result) for result in self.results},
            "group_subtasks": {name: [] for name in names},
            "configs": {result.benchmark.name: self._harness_config(result) for result in self.results},
            "versions": {name: self.versions[name] for name in names},
            "n-shot": dict.fromkeys(names, 0),
            "higher_is_better": {r.benchmark.name: dict.fromkeys(r.metrics, True) for r in self.results},
            "n-samples": {
                r.benchmark.name: {"original": r.size or r.items, "effective": r.items} for r in self.results
            },
            "config": {
                "model": "marft_envs", "model_args": dict(self.settings["subject"]), "limit": self.settings["items"],
                "gen_kwargs": dict(self.settings["sampling"]), "random_seed": self.settings["seed"],
            },
            "date": self.date,
            "model_source": self.settings["subject"]["kind"],
            "model_name": self.name,
            "model_name_sanitized": re.sub(r"[\"<>:/|\\?*\[\] ]+", "__", self.name),
            "total_evaluation_time_seconds": f"{self.seconds:.1f}",
            "marft_envs": {
                "version": marft_envs.__version__,
                "settings": dict(self.settings),
                "missing": dict(self.missing),
                "not_graded": {r.benchmark.name: r.not_graded for r in self.results},
                "faults": {r.benchmark.name: list(r.reasons) for r in self.results if r.reasons},
            },
        }  # fmt: skip

    def _harness_config(self, result: BenchmarkResult) -> dict[str, Any]:
        return {
            "task": result.benchmark.name,
            "test_split": "test",
            "output_type": "generate_until",
            "num_fewshot": 0,
            "repeats": result.samples,
            "generation_kwargs": dict(self.settings["sampling"]),
            "metadata": {"version": self.versions[result.benchmark.name], "environment": result.benchmark.environment},
        }

    # ---- Markdown

    def markdown(self) -> str:
        """Return the results as a table for a model card, in %, with the settings and what is missing."""
        names = list(dict.fromkeys(name for result in self.results for name in result.metrics))
        head = ["data set", "items", *(f"{name} (%)" for name in names), "95 % interval", "no answer (%)", "not graded"]
        lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
        for result in self.results:
            low, high = result.interval or (math.nan, math.nan)
            values = [_percent(result.metrics[n].mean) if n in result.metrics else "" for n in names]
            interval = f"{_percent(low)} to {_percent(high)}" if result.interval else ""
            cells = [result.benchmark.name, str(result.items), *values, interval, _percent(result.no_answer)]
            lines.append(_line([*cells, str(result.not_graded)]))
        notes = [
            f"**{self.name}**: {self._settings_text()} The interval is Wilson's, of avg@k over items. An item that is "
            "not graded, because of a fault or a limit outside the team, is in no mean.",
        ]
        if self.missing:
            notes.append(f"Not evaluated, because the data is not available: {', '.join(self.missing)}.")
        return "\n".join(lines) + "\n\n" + "\n\n".join(notes) + "\n"

    def _settings_text(self) -> str:
        sampling, samples = self.settings["sampling"], self.settings["samples"]
        how = f"temperature {sampling['temperature']:g}" if sampling["do_sample"] else "greedy decoding"
        each = f"{samples} samples per item" if samples > 1 else "one sample per item"
        team = ", ".join(f"{key} {value}" for key, value in self.settings["team"].items())
        return f"{team + '; ' if team else ''}{each}, {how}, at most {sampling['max_new_tokens']} tokens per reply."


def _harness_entry(result: BenchmarkResult) -> dict[str, Any]:
    found: dict[str, Any] = {"alias": result.benchmark.name, "sample_len": result.items}
    for name, estimate in result.metrics.items():
        found[f"{name},none"] = estimate.mean
        found[f"{name}_stderr,none"] = "N/A" if math.isnan(estimate.stderr) else estimate.stderr
    return found


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def to_play(items: Sequence[int], records: Mapping[int, Row]) -> list[int]:
    """Return the problems that have no record, or one with a fault, in their order."""
    return [index for index in items if index not in records or not is_complete(records[index])]
