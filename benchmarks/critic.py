"""Measure what the critic explains of the scores of an untrained team, against a control with shuffled messages.

    python benchmarks/critic.py --env-arg dataset=relay --batches batches/relay
    python benchmarks/critic.py --model smollm2-135m --allow-wheel --env-arg dataset=report --env-arg style=words \\
        --env-arg team=panel_4_guided --set decoding.max_new_tokens=8 --batches batches/report --json critic.json

Samples --updates batches of --episodes episodes, which a second call with the same --batches does not sample again.
Then a new critic is trained on three quarters of the batches, one after the other, as the learner trains it
(critic_epochs over the last replay_batches after each batch), and predicts the scores of the fourth quarter before
each turn. This is repeated for all four quarters. The table has, per position in a round:

    critic    explained variance on the held-out quarter, mean over the four, +- the standard error of this mean
    control   the same for a critic that is trained and tested with the encoding of every message replaced by that of
              the same agent's message in another episode. It still reads the prompts, so it can explain something where
              agents read messages of others
    ceiling   explained variance of a critic that knows the label of Task.progress and nothing else, on all episodes

Source: docs/reference/critic.md, section 5.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch
from torch import Tensor

from baselines.command_line import require_packages, run_command
from baselines.critics.critic import TeamCritic, each_position
from baselines.critics.features import TurnFeatures, read_reference
from baselines.functional.losses import explained_variance, explained_variance_ceiling
from baselines.ppo.credit import monte_carlo_returns
from baselines.ppo.learner import Learner
from baselines.runs.progress import Reporter
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig, decisive, differences
from baselines.train import add_settings, config_of
from baselines.trajectory import AgentTurns, Batch, Views

DEFAULTS = {"arm": "marft", "updates": 12, "episodes": 16}
ROTATIONS = 4
Data = tuple[Batch, TurnFeatures]  # a batch and the critic's inputs for its turns
_LEARNER = ("reward", "critic_private")  # settings of the learner that decide the content of a batch


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/critic.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--batches", type=Path, required=True, help="folder of the sampled batches; missing ones are sampled")
    add("--updates", type=int, help=f"number of batches, at least {ROTATIONS} (default: {DEFAULTS['updates']})")
    add("--episodes", type=int, help=f"episodes per batch (default: {DEFAULTS['episodes']})")
    add("--json", type=Path, help="also write the results to this file")
    add_settings(parser)
    parser.set_defaults(out=None, resume=False, cooperation=False)  # options of a training run
    return parser.parse_args(arguments)


def sampled_batches(run: Run, folder: Path) -> list[Batch]:
    """Return the run's batches; those that the folder has are loaded, the others are sampled and saved.

    Raises:
        ValueError: A batch of the folder was sampled with other settings, or no episode of a batch was graded.
    """
    settings, progress, batches = _settings(run.config), Reporter(run.config.updates, sys.stderr, unit="batch"), []
    folder.mkdir(parents=True, exist_ok=True)
    for update in range(1, run.config.updates + 1):
        path = folder / f"batch_{update:04d}.pt"
        if not path.is_file():
            episodes, sampler = run.sample(update)
            batch = run.batch([episode for episode in episodes if not episode.not_graded], sampler)
            if batch is None:
                raise ValueError(f"batch {update}: no episode was graded: expected at least one")
            torch.save({"settings": settings, "batch": batch}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
        batches.append(_load(path, settings).to(run.policy.device))
        progress.update(update, "sampled")
    progress.close()
    return batches


def _load(path: Path, settings: Mapping[str, Any]) -> Batch:
    with torch.serialization.safe_globals([Batch, AgentTurns, Views]):
        saved = torch.load(path, weights_only=True, map_location="cpu")
    if changed := differences(saved["settings"], settings):
        raise ValueError(f"{path} was sampled with other settings ({'; '.join(changed)}): expected the same settings, "
                         "or another folder in --batches")  # fmt: skip
    return saved["batch"]


def _settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings that decide the batches, as JSON values. Most of the learner's do not."""
    settings = decisive(config.resolved())
    settings["learner"] = {name: settings["learner"][name] for name in _LEARNER}
    return json.loads(json.dumps(settings))


def read(run: Run, batch: Batch) -> Data:
    """Return the batch with the critic's inputs, read as the learner reads them."""
    learner = run.learner
    how = learner.config, monte_carlo_returns(batch, learner.config), learner.temperature, learner.passes
    return batch, learner.passes.repeat(lambda: read_reference(run.policy, batch, *how))[0]


def shuffled(features: TurnFeatures, generator: torch.Generator) -> TurnFeatures:
    """Return the features with every message's encoding replaced by that of a message in another episode.

    The messages of an agent in the same turn of their episodes are permuted so that none stays in its episode; only a
    message without a counterpart stays.
    """
    message = features.message.clone()
    for slot in range(features.mask.shape[1]):
        for agent in features.agent[:, slot].unique():
            rows = (features.mask[:, slot] & (features.agent[:, slot] == agent)).nonzero().squeeze(-1)
            order = rows[torch.randperm(len(rows), generator=generator).to(rows.device)]
            message[order, slot] = features.message[order.roll(1), slot]
    return replace(features, message=message)


def trained_critic(run: Run, data: Sequence[Data]) -> TeamCritic:
    """Return a new critic, trained on the batches as ``Learner.update`` trains it (steps 3, 4 and 7)."""
    config = run.learner.config
    learner = Learner(run.policy, config, temperature=run.learner.temperature, seed=run.config.seed)
    critic = learner.critic
    assert critic is not None
    for batch, features in data:
        critic.start(features, features.mask)
        values = critic.values(features)
        critic.observe_explained_variance(values, features, batch.position)
        no_penalty, no_view = torch.zeros_like(values), torch.zeros_like(batch.round_score)
        _, returns = learner.advantages(batch, features.decisions, values, no_penalty, critic.lam_in(), no_view)
        critic.train(features, values, returns, config.critic_epochs)
    return critic


def explained(run: Run, data: Sequence[Data]) -> dict[str, list[float]]:
    """Return, by position, the explained variance on each held-out quarter of the batches."""
    found: dict[str, list[float]] = {}
    for rotation in range(ROTATIONS):
        critic = trained_critic(run, [each for i, each in enumerate(data) if i % ROTATIONS != rotation])
        heldout = data[rotation::ROTATIONS]
        values = [critic.values(features)[..., 0] for _, features in heldout]
        for position, value in by_position(heldout, values, explained_variance).items():
            found.setdefault(position, []).append(value)
    return found


def ceilings(data: Sequence[Data]) -> dict[str, float]:
    """Return the ceiling by position over all episodes; empty without labels."""
    labels = [batch.label for batch, _ in data if batch.label is not None]
    return by_position(data, labels, explained_variance_ceiling) if len(labels) == len(data) else {}


def by_position(
    data: Sequence[Data], columns: Sequence[Tensor], statistic: Callable[[Tensor, Tensor], float]
) -> dict[str, float]:
    """Return ``statistic(column, return)`` over all turns at each position; one column [B, K] per batch."""
    rows = [(b.position[f.mask], x[f.mask], f.target[f.mask]) for (b, f), x in zip(data, columns, strict=True)]
    position, column, target = (torch.cat(parts) for parts in zip(*rows, strict=True))
    return each_position(torch.ones_like(position, dtype=torch.bool), position, column, target, statistic)


def mean_and_error(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and standard error of the values that are not NaN; None where there are too few."""
    known = torch.tensor([v for v in values if not math.isnan(v)], dtype=torch.float64)
    error = float(known.std() / math.sqrt(len(known))) if len(known) > 1 else None
    return {"mean": float(known.mean()) if len(known) else None, "error": error}


def measure(run: Run, batches: Sequence[Batch]) -> dict[str, Any]:
    """Return the explained variances by position, and a description of the episodes, as JSON values."""
    data = [read(run, batch) for batch in batches]
    generator = torch.Generator().manual_seed(run.config.seed)
    critic, control = explained(run, data), explained(run, [(b, shuffled(f, generator)) for b, f in data])
    ceiling = ceilings(data)
    parts = [turns for batch in batches for turns in batch.turns.values()]
    tokens = torch.cat([turns.action_mask.sum(-1).float() for turns in parts])
    return {
        "settings": run.config.resolved(),
        "episodes": sum(len(batch.score) for batch in batches),
        "messages": len(tokens),
        "mean_score": float(torch.cat([batch.score for batch in batches]).mean()),
        "mean_tokens": float(tokens.mean()),
        "ended_by_limit": float(torch.cat([turns.truncated.float() for turns in parts]).mean()),
        "positions": {
            position: {
                "critic": mean_and_error(critic[position]),
                "control": mean_and_error(control[position]),
                "ceiling": mean_and_error([ceiling.get(position, math.nan)])["mean"],
            }
            for position in sorted(critic, key=int)
        },
    }


def table(result: Mapping[str, Any]) -> str:
    """Return the results as a Markdown table below a line on the episodes."""
    lines = [
        f"{result['episodes']} episodes, {result['messages']} messages of {result['mean_tokens']:.1f} tokens, "
        f"{result['ended_by_limit']:.0%} ended by the limit, mean score {result['mean_score']:.2f}\n",
        "| explained variance at position | critic | control | ceiling |",
        "|---|---|---|---|",
    ]
    for position, row in result["positions"].items():
        numbers = (row["critic"].values(), row["control"].values(), [row["ceiling"]])
        cells = [" ± ".join(f"{x:z.2f}" for x in found if x is not None) or "-" for found in numbers]
        lines.append(f"| {' | '.join([position, *cells])} |")
    return "\n".join(lines)


def run_benchmark(options: argparse.Namespace) -> None:
    """Sample the batches, measure, print the table and write --json."""
    config = config_of(options, DEFAULTS)
    learner = config.learner()
    if learner.critic == "none" or learner.critic_network != "additive":
        raise ValueError(
            f"critic={learner.critic!r}, critic_network={learner.critic_network!r}: expected a critic with "
            "critic_network='additive', which reads encodings of messages"
        )
    if config.updates < ROTATIONS:
        raise ValueError(f"--updates {config.updates}: expected at least {ROTATIONS}, one for each quarter")
    if options.json:
        options.json.open("a", encoding="utf-8").close()
    run = Run(config)
    result = measure(run, sampled_batches(run, options.batches))
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parse(arguments)
    return run_command("critic", require_packages) or run_command("critic", lambda: run_benchmark(options))


if __name__ == "__main__":
    sys.exit(main())
