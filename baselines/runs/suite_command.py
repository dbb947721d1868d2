"""The work of ``python -m baselines.evaluate --suite``: data sets are played, recorded, and summarised in a folder.

    config.json          what was evaluated, and all settings that decide a number
    records/NAME.jsonl   one line for each problem of a data set, with its samples
    results.json         metrics in the results format of lm-evaluation-harness
    results.md           the same as a table for a model card

The same command resumes an evaluation that was stopped, and plays the problems with a fault again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baselines.runs.checkpoint import replace_file
from baselines.runs.episode_text import transcript
from baselines.runs.evaluate_command import default_datasets
from baselines.runs.evaluation import environment_of, evaluation_items, make_environment
from baselines.runs.evaluation_subjects import Subject, subject_of
from baselines.runs.evaluation_suites import Benchmark, benchmarks_of, names_of
from baselines.runs.item_records import RecordFile, item_record
from baselines.runs.progress import Reporter
from baselines.runs.run_config import RunConfig, differences
from baselines.runs.run_folder import CONFIG, lock
from baselines.runs.suite_results import BenchmarkResult, SuiteResults, result_of, to_play
from marft_envs.batch import BatchRunner, Episode
from marft_envs.cli.key_values import parse_key_values
from marft_envs.datasets.files import DataError

RECORDS, RESULTS, TABLE = "records", "results.json", "results.md"
GENERATED_ITEMS = 200
VOTING = ("math_v0",)
"""Environments whose answers are compared with the grader of mathematics, so that samples can vote."""
INCOMPLETE = 1
HOW_TO_GET = "set MARFT_DATA or --path to a folder that has them, or run with access to the Hugging Face hub"


@dataclass(frozen=True)
class Opened:
    """A data set that was found.

    Attributes:
        benchmark: The data set.
        config: The configuration whose test split is played.
        runner: Plays the episodes.
        items: Indices of the problems.
    """

    benchmark: Benchmark
    config: RunConfig
    runner: BatchRunner
    items: list[int]


def evaluate_suite(options: argparse.Namespace) -> int:
    """Evaluate a subject on data sets; write records and results to ``options.out``.

    Returns:
        0; 1 if a data set was not found, or a problem has no result because of a fault.

    Raises:
        CheckpointError: RUN has no checkpoint that can be used.
        RunError: The endpoint is down.
        ValueError: An option cannot be used, no data set was found, or the folder holds another evaluation.
    """
    start, ks = time.perf_counter(), numbers_of_tries(options.samples, options.pass_at)
    benchmarks = chosen(options)
    subject = subject_of(options)
    try:
        opened, missing = open_benchmarks(subject, benchmarks, options)
        subject.policy(opened[0].runner.team.agents)  # loads a model, before the folder is created
        settings = settings_of(subject, opened[0].config, options)
        release = prepare_folder(options.out, settings)
        try:
            results = [evaluate(subject, each, options, ks) for each in opened]
        finally:
            release()
    finally:
        subject.close()
    versions = {each.benchmark.name: each.runner.task.version for each in opened}
    found = SuiteResults(subject.name, settings, results, missing, versions, time.perf_counter() - start)
    return report(found, options.out)


def chosen(options: argparse.Namespace) -> list[Benchmark]:
    """Return the data sets of the suite, or without one those of --env and --dataset."""
    if options.suite is not None:
        return benchmarks_of(options.suite, options.dataset)
    environment = options.env or "math_v0"
    return [Benchmark(environment, name) for name in options.dataset or default_datasets(environment)]


def numbers_of_tries(samples: int, given: Sequence[int] | None) -> list[int]:
    """Return the numbers k of pass@k: by default the powers of 2 up to the number of samples, and that number.

    Raises:
        ValueError: A number is less than 1 or larger than the number of samples.
    """
    if given is None:
        return sorted({2**i for i in range(samples.bit_length())} | {samples})
    for k in given:
        if not 1 <= k <= samples:
            raise ValueError(f"--pass-at {k}: expected 1 to {samples}, the number of --samples")
    return sorted(set(given))


# ---- the data sets


def open_benchmarks(
    subject: Subject, benchmarks: Sequence[Benchmark], options: argparse.Namespace
) -> tuple[list[Opened], dict[str, str]]:
    """Open each data set. Print those that are not available.

    Returns:
        The data sets that were found, and for each of the others the reason.

    Raises:
        ValueError: None was found, or an argument cannot be used.
    """
    opened, missing = [], {}
    for benchmark in benchmarks:
        config = subject.config(benchmark)
        try:
            opened.append(open_benchmark(config, benchmark, options, subject.together))
        except (DataError, FileNotFoundError, ImportError) as error:
            missing[benchmark.name] = str(error)
            print(f"not available: {benchmark.name}: {str(error).split('. To get it')[0]}", flush=True)
    if not opened:
        raise ValueError(f"no data set of {names_of(benchmarks)} was found: {HOW_TO_GET}")
    return opened, missing


def open_benchmark(config: RunConfig, benchmark: Benchmark, options: argparse.Namespace, together: int) -> Opened:
    """Return the runner and the problems of a data set.

    Raises:
        DataError, FileNotFoundError: The data cannot be found or read.
        ImportError: A package that reads the data is not installed.
    """
    setting = environment_of(config, "test")
    env = make_environment(config.environment, "test", setting.environment_arguments)
    size = env.unwrapped.task.size
    count = options.items or size or GENERATED_ITEMS
    block = max(1, together // options.samples)
    runner = BatchRunner(env, min(count, block) * options.samples)
    seed = config.seed if options.seed is None else options.seed
    return Opened(benchmark, config, runner, evaluation_items(runner, count, seed))


# ---- the folder


def settings_of(subject: Subject, config: RunConfig, options: argparse.Namespace) -> dict[str, Any]:
    """Return what was evaluated and how, as JSON values. A folder holds one evaluation of these settings.

    ``items`` and the data sets may differ when an evaluation is resumed.
    """
    sampling = subject.sampling()
    names = ("team", "dependency", "rounds")
    return {
        "subject": subject.description(),
        "team": {name: config.environment_arguments[name] for name in names if name in config.environment_arguments},
        "environment_arguments": parse_key_values("--env-arg", options.env_arg),
        "samples": options.samples,
        "sampling": {
            "do_sample": options.mode == "sampled",
            "temperature": sampling.temperature,
            "max_new_tokens": sampling.max_new_tokens,
            "until": list(sampling.stop_strings),
        },
        "seed": config.seed if options.seed is None else options.seed,
        "items": options.items,
    }


def prepare_folder(folder: Path, settings: dict[str, Any]) -> Any:
    """Create the folder of an evaluation, or validate that it holds this one. Return a function that releases its lock.

    Raises:
        ValueError: The folder holds something else, or another process uses it.
    """
    path = folder / CONFIG
    if folder.exists() and not path.is_file() and any(p.name != ".lock" for p in folder.iterdir()):
        raise ValueError(f"--out {folder}: the folder is not empty and holds no evaluation; expected a new folder")
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    release = lock(folder)
    current = json.loads(json.dumps(settings))
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        changed = differences(stored | {"items": None}, current | {"items": None})
        if changed:
            release()
            raise ValueError(
                f"--out {folder}: the folder holds another evaluation: {'; '.join(changed)}; expected the same "
                "settings, or another folder"
            )
    replace_file(path, json.dumps(settings, indent=1).encode())
    return release


# ---- playing


def evaluate(subject: Subject, opened: Opened, options: argparse.Namespace, ks: Sequence[int]) -> BenchmarkResult:
    """Play the problems of a data set that have no record yet, and return the result of all of them."""
    runner, name = opened.runner, opened.benchmark.name
    file = RecordFile(options.out / RECORDS / f"{name}.jsonl", runner, options.samples)
    left = to_play(opened.items, file.records)
    done = len(opened.items) - len(left)
    print(f"{name}: {len(opened.items)} items" + (f", {done} of them recorded" if done else ""), flush=True)
    progress = Reporter(len(opened.items), sys.stdout, unit=f"{name} item")
    policy = subject.policy(runner.team.agents)
    vote = opened.benchmark.environment in VOTING and options.samples > 1
    block, shown = len(runner.envs) // options.samples, 0
    try:
        for start in range(0, len(left), block):
            episodes = play(runner, policy, left[start : start + block], options.samples)
            for i in range(0, len(episodes), options.samples):
                file.write(item_record(runner, episodes[i : i + options.samples], vote=vote))
            for episode in episodes[: max(0, options.show - shown)]:
                progress.line(transcript(episode))
                shown += 1
            scores = [s for record in file.records.values() for s in record["scores"] if s is not None]
            progress.update(done + min(start + block, len(left)), f"mean score {np.mean(scores or [0.0]):.1%}")
    finally:
        progress.close()
        file.close()
    records = [file.records[index] for index in dict.fromkeys(opened.items)]
    result = result_of(opened.benchmark, runner.task.size, records, options.samples, ks)
    print(f"{name}: {summary(result)}", flush=True)
    return result


def play(runner: BatchRunner, policy: Any, items: Sequence[int], samples: int) -> list[Episode]:
    """Play a block of problems, ``samples`` episodes of each in a row.

    The environment's random choices depend on the problem and the number of the sample alone.
    """
    seeds = [env_seed(index, sample) for index in items for sample in range(samples)]
    return runner.play(policy, indices=items, groups=samples, seeds=seeds)


def env_seed(index: int, sample: int) -> int:
    """Return the environment's seed for a sample of a problem. The first sample has that of other evaluations."""
    return index % 2**31 if sample == 0 else int(np.random.default_rng([index, sample]).integers(2**31))


# ---- results


def summary(result: BenchmarkResult) -> str:
    """Return the result on a data set in one line."""
    metrics = ", ".join(f"{name} {estimate.mean:.1%}" for name, estimate in result.metrics.items())
    interval = "" if result.interval is None else f" [{result.interval[0]:.1%}, {result.interval[1]:.1%}]"
    line = (
        f"{metrics or 'nothing graded'}{interval} of {result.items} items; no answer in {result.no_answer:.1%}; "
        f"{result.prompt_tokens} tokens read, {result.generated_tokens} generated"
    )
    if result.truncated_replies:
        line += f"; {result.truncated_replies:.1%} of the replies ended at the token limit"
    if result.not_graded:
        line += f"; {result.not_graded} items not graded: {'; '.join(result.reasons)[:300]}"
    return line


def report(results: SuiteResults, folder: Path) -> int:
    """Write and print the results. Return the exit code."""
    replace_file(folder / RESULTS, json.dumps(results.harness(), indent=2).encode())
    table = results.markdown()
    replace_file(folder / TABLE, table.encode())
    print(f"\n{table}\nresults are in {folder}")
    if results.complete:
        return 0
    reasons = [f"not available: {', '.join(results.missing)} ({HOW_TO_GET})"] if results.missing else []
    faulty = [f"{r.benchmark.name} ({r.not_graded})" for r in results.results if r.not_graded]
    reasons += [f"items without a result: {', '.join(faulty)}; the same command plays them again"] if faulty else []
    print(f"evaluate: incomplete; {'; '.join(reasons)}", file=sys.stderr)
    return INCOMPLETE
