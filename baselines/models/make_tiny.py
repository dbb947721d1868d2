"""Make a tiny model: a causal LM for experiments on a CPU, pre-trained on a simulated student that makes mistakes.

    python -m baselines.models.make_tiny --output DIR               "tiny": a relay duo
    python -m baselines.models.make_tiny --output DIR --agents 4 --q .3 --steps 800
    python -m baselines.models.make_tiny --output DIR --family report --agents 8 --q .45 --hidden 64 --layers 2

The last command makes "tiny-report". The model imitates the replies of a simulated student. In the relay, the student
adds two digits to the total of its predecessor, and with probability q it forgets the carry of the units column. In the
report, it adds two digits, and with probability q it is wrong by one, up or down. So the model writes well-formed
answers from the start, and q sets how often a team is correct. It is trained on problems of the training split and
evaluated on the test split.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch.nn import functional

from baselines.models.card import CARD, sha256_of
from baselines.models.tiny_tokenizer import tiny_tokenizer
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.team_report import Report
from marft_envs.task import Problem
from marft_envs.verdict import Outcome

Family = Literal["relay", "report"]
DIGITS_PER_AGENT = 2
IGNORE = -100  # label of tokens that cross_entropy leaves out
MAX_NEW_TOKENS = 5
TEAMS = {1: "solo", 2: "duo", 3: "trio", 4: "quartet", 8: "octet"}


@dataclass(frozen=True)
class WarmStart:
    """Settings of the pre-training. With this file and the package versions they determine the weights.

    Attributes:
        family: Family of problems.
        agents: Number of agents of the team.
        q: Probability that the student makes its mistake.
        hidden: Hidden size; the MLP is 2.5 times as wide.
        layers: Number of transformer layers.
        steps: Number of optimiser steps.
        batch: Turns per step.
        learning_rate: Peak learning rate: linear warm-up over the first tenth of the steps, then cosine decay to 0.
        seed: Seed of the weights, the problems and the student.

    Raises:
        ValueError: A value is out of its range. The message names the field.
    """

    family: Family = "relay"
    agents: int = 2
    q: float = 0.5
    hidden: int = 128
    layers: int = 3
    steps: int = 400
    batch: int = 128
    learning_rate: float = 2.5e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise ValueError(f"q={self.q}: expected a probability between 0 and 1")
        if self.family not in get_args(Family):
            raise ValueError(f"family={self.family!r}: expected one of {', '.join(get_args(Family))}")
        for field in ("agents", "steps", "batch", "hidden", "layers"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}={getattr(self, field)}: expected at least 1")


# --- problems and the simulated student -------------------------------------------------------------------------------


def task_of(family: str, agents: int, split: str, seed: int) -> Relay | Report:
    """Return the family's task for a number of agents, in the symbols that the tiny model reads."""
    names = [f"agent_{index}" for index in range(agents)]
    if family == "report":
        return Report(agents=names, split=split, seed=seed)
    return Relay(agents=names, k=DIGITS_PER_AGENT, split=split, seed=seed)


def student_total(total: int, private: str, forget_carry: bool) -> int:
    """Return the student's new total in the relay.

    Args:
        total: Total of the predecessor.
        private: The agent's own numbers, such as "6+8=".
        forget_carry: Whether the student loses the carry of the units column. With a total of 7 and "6+8=" that column
            is 7 + 6 + 8 = 21; the carry of 20 is lost, and the result is 1.
    """
    numbers = [int(number) for number in private.rstrip("=").split("+")]
    carry = (total % 10 + sum(number % 10 for number in numbers)) // 10
    return total + sum(numbers) - (10 * carry if forget_carry else 0)


def dialogue(family: str, problem: Problem, q: float, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return one (prompt, reply) per turn. In the relay, a turn continues from the previous reply, even a wrong one."""
    if family == "report":
        return [(private, str(student_sum(private, q, rng))) for private in problem.private.values()]
    turns: list[tuple[str, str]] = []
    for private in problem.private.values():
        incoming = turns[-1][1] if turns else ""
        reply = str(student_total(int(incoming or 0), private, bool(rng.random() < q)))
        turns.append((tiny_prompt(incoming, private), reply))
    return turns


def student_sum(private: str, q: float, rng: np.random.Generator) -> int:
    """Return the student's sum in the report: with probability q wrong by one, up or down, but never below 0."""
    correct = sum(int(number) for number in private.rstrip("=").split("+"))
    if rng.random() >= q:
        return correct
    return correct + 1 if correct == 0 or rng.random() < 0.5 else correct - 1


def tiny_prompt(incoming: str, private: str) -> str:
    """Return the prompt that the chat template renders for a relay turn. A test compares the two."""
    return f"{incoming}|{private}" if incoming else private


# --- the model --------------------------------------------------------------------------------------------------------


def new_model(tokenizer: Any, warm: WarmStart) -> Any:
    """Return a Llama model with 4 heads and new float32 weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=warm.hidden,
        intermediate_size=warm.hidden * 5 // 2,
        num_hidden_layers=warm.layers,
        num_attention_heads=4,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(warm.seed)  # noqa: TID251  transformers accepts no generator; fork_rng restores the global state
        return LlamaForCausalLM(config).float()


def example(prompt: str, reply: str, tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return (ids, labels) of one turn. The loss covers the reply and its EOS token only."""
    prompt_ids, reply_ids = tokenizer(prompt)["input_ids"], tokenizer(reply)["input_ids"] + [tokenizer.eos_token_id]
    return prompt_ids + reply_ids, [IGNORE] * len(prompt_ids) + reply_ids


def pad(rows: Sequence[Sequence[int]], value: int, *, left: bool = False) -> torch.Tensor:
    """Pad rows of different lengths to a tensor [B, T]."""
    width = max(map(len, rows))
    fill = [[value] * (width - len(row)) for row in rows]
    return torch.tensor([[*f, *row] if left else [*row, *f] for row, f in zip(rows, fill, strict=True)])


def train(model: Any, tokenizer: Any, warm: WarmStart) -> None:
    """Train the model in place and print the progress on stderr."""
    rng = np.random.default_rng([warm.seed, warm.agents])
    task = task_of(warm.family, warm.agents, "train", warm.seed)
    turns = (turn for index in itertools.count() for turn in dialogue(warm.family, task.problem(index), warm.q, rng))
    optimiser = torch.optim.AdamW(model.parameters(), lr=warm.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, warm.steps))
    started = time.perf_counter()
    for step in range(1, warm.steps + 1):
        examples = [example(*next(turns), tokenizer) for _ in range(warm.batch)]
        ids = pad([ids for ids, _ in examples], tokenizer.pad_token_id)
        labels = pad([labels for _, labels in examples], IGNORE)
        logits = model(input_ids=ids, use_cache=False).logits  # no mask: padding on the right is never attended to
        loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 0 or step == warm.steps:
            print(
                f"step {step}/{warm.steps}  loss {loss.item():.3f}  {time.perf_counter() - started:.0f} s",
                file=sys.stderr,
            )


def _rate(step: int, steps: int) -> float:
    """Return the factor on the learning rate: linear warm-up over the first tenth, then cosine decay to 0."""
    warm_up = max(1, steps // 10)
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


# --- accuracy before any reinforcement learning -----------------------------------------------------------------------


@torch.inference_mode()
def generate(model: Any, tokenizer: Any, prompts: Sequence[str], generator: torch.Generator | None) -> list[str]:
    """Return one reply per prompt, greedy without a generator, else sampled at temperature 1."""
    ids = pad([tokenizer(prompt)["input_ids"] for prompt in prompts], tokenizer.pad_token_id, left=True)
    mask = (ids != tokenizer.pad_token_id).long()
    start = ids.shape[1]
    for _ in range(MAX_NEW_TOKENS):
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        logits = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits[:, -1]
        new = _choose(logits, generator)
        ids, mask = torch.cat([ids, new], -1), torch.cat([mask, torch.ones_like(new)], -1)
    return [_until_eos(row, tokenizer) for row in ids[:, start:].tolist()]


def _choose(logits: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Choose a token per row: logits [B, V] -> ids [B, 1]."""
    if generator is None:
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)


def _until_eos(row: list[int], tokenizer: Any) -> str:
    end = row.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in row else len(row)
    return tokenizer.decode(row[:end])


def starting_level(
    model: Any, tokenizer: Any, warm: WarmStart, problems: int, sample_seed: int | None
) -> dict[str, float]:
    """Evaluate the model on test problems.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        warm: Settings of the pre-training.
        problems: Number of test problems.
        sample_seed: Seed of sampling; None decodes greedily.

    Returns:
        ``accuracy``, the mean score, and ``no_answer``, the share of graded replies without an answer.
    """
    generator = None if sample_seed is None else torch.Generator().manual_seed(sample_seed)
    task = task_of(warm.family, warm.agents, "test", seed=0)
    items = [task.problem(index) for index in range(problems)]
    texts, verdicts = [""] * problems, []
    for agent in task.agents:
        incoming = texts if warm.family == "relay" else [""] * problems
        prompts = [tiny_prompt(text, item.private[agent]) for text, item in zip(incoming, items, strict=True)]
        texts = generate(model, tokenizer, prompts, generator)
        if warm.family == "report":
            verdicts += [
                task.grade(text, replace(item, gold=item.gold[agent])) for text, item in zip(texts, items, strict=True)
            ]
    if warm.family == "relay":
        verdicts = [task.grade(text, item) for text, item in zip(texts, items, strict=True)]
    unanswered = sum(verdict.outcome == Outcome.NO_ANSWER for verdict in verdicts)
    score = sum(verdict.score for verdict in verdicts)
    return {"accuracy": score / len(verdicts), "no_answer": unanswered / len(verdicts)}


# --- the command ------------------------------------------------------------------------------------------------------


def write(model: Any, tokenizer: Any, folder: Path, warm: WarmStart, level: dict[str, Any]) -> None:
    """Write weights, configuration, tokenizer, and a card with their hashes."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    hashed = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
    version = "v1"
    card = {
        "name": f"tiny-{warm.family}-{TEAMS.get(warm.agents, f'team-of-{warm.agents}')}-{version}",
        "revision": version,
        "names_in_template": True,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "warm_start": asdict(warm),
        "starting_level": level,
        "command": f"python -m baselines.models.make_tiny --output DIR {shlex.join(_flags(warm))}",
        "sha256": {file: sha256_of(folder / file) for file in hashed},
    }
    (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _flags(warm: WarmStart) -> list[str]:
    return [part for name, value in asdict(warm).items() for part in (f"--{name.replace('_', '-')}", str(value))]


def make(folder: Path, warm: WarmStart, problems: int) -> dict[str, Any]:
    """Train, evaluate and write a model. Return its accuracy before any reinforcement learning."""
    tokenizer = tiny_tokenizer()
    model = new_model(tokenizer, warm)
    train(model, tokenizer, warm)
    model.eval()
    sampled = starting_level(model, tokenizer, warm, problems, sample_seed=warm.seed)
    greedy = starting_level(model, tokenizer, warm, problems, sample_seed=None)
    level = {"test_problems": problems, "sampled": sampled, "greedy": greedy}
    write(model, tokenizer, folder, warm, level)
    return level


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``python -m baselines.models.make_tiny``."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.models.make_tiny", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--output", type=Path, required=True, help="new or empty folder")
    parser.add_argument("--problems", type=int, default=2000, help="test problems to evaluate on (default: 2000)")
    for name, default in asdict(WarmStart()).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default, help=f"(default: {default})"
        )
    chosen = vars(parser.parse_args(arguments))
    folder: Path = chosen.pop("output")
    problems: int = chosen.pop("problems")
    if problems < 1:
        parser.error(f"--problems {problems}: expected at least 1")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        parser.error(f"--output {folder}: expected a new or empty folder")
    try:
        warm = WarmStart(**chosen)
    except ValueError as error:
        parser.error(str(error))
    torch.set_num_threads(1)
    level = make(folder, warm, problems)
    print(f"sampled {level['sampled']}\ngreedy {level['greedy']}\nwritten to {folder}")


if __name__ == "__main__":
    main()
