"""Compare the calculated memory of a pass with the measured one, each setting in a process of its own.

    python benchmarks/memory.py --model smollm2-135m --allow-wheel
    python benchmarks/memory.py --model tiny --pass 64+20x128 --pass 64+20x128c --pass 64+20x128a
    python benchmarks/memory.py --table            # the table of docs/memory.md, from 0.5B to 72B

A pass is PROMPT+REPLYxTURNS, in tokens, with an "a" at its end for activated adapters, and a "c" for gradient
checkpointing. "saved" are the bytes of activations that autograd keeps from the forward to the backward pass, and with
activated adapters also the keys and values of the prompts, which an update stores; "peak" is what the process (on a
CPU, under Linux) or the allocator (on a GPU) holds at most during the pass, minus what it held before. Formulas:
docs/memory.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch

from baselines.command_line import add_model_options, run_command
from baselines.models.load import load_model
from baselines.policies.checkpointing import checkpointed
from baselines.policies.micro_batches import GIB, pass_memory
from baselines.policies.policy import LoraSettings, SharedBasePolicy, prompts_kept
from baselines.runs.memory_table import table_of_sizes
from baselines.trajectory import Generation, padded_turns
from benchmarks.speed.peak_memory import peak, start_peak

_PASSES = ("100+64x4", "100+64x4a", "100+64x4c", "600+64x2", "600+64x2a", "600+64x2c", "300+16x8", "300+16x8a")
_PASS = re.compile(r"(\d+)\+(\d+)x(\d+)(a?)(c?)")
_HEADER = 4
"""Tokens of a prompt that an activated adapter reads: the header of the reply."""
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")  # torch records no peak of MPS
_AGENT = "agent"


class Pass(NamedTuple):
    """Size of a pass: tokens of a prompt and of a reply, turns, activated adapters, and gradient checkpointing."""

    prompt: int
    reply: int
    turns: int
    activated: bool
    checkpointing: bool

    @property
    def base(self) -> int:
        """Tokens of a prompt that the base alone reads."""
        return self.prompt - _HEADER if self.activated else 0


def parse_pass(text: str) -> Pass:
    """Return the pass that a string such as "100+64x4c" describes."""
    found = _PASS.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected PROMPT+REPLYxTURNS, such as 100+64x4, 100+64x4a, 100+64x4c or 100+64x4ac"
        )
    prompt, reply, turns, activated, checkpointing = found.groups()
    if activated and int(prompt) <= _HEADER:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a prompt of more than {_HEADER} tokens before the a")
    return Pass(int(prompt), int(reply), int(turns), bool(activated), bool(checkpointing))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/memory.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add_model_options(parser, {"model": "tiny", "dtype": "auto"}, set_defaults=True)
    add("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    add("--pass", action="append", type=parse_pass, dest="passes", metavar="PASS",
        help=f"size of a pass; repeatable (default: {' '.join(_PASSES)})")  # fmt: skip
    add("--table", action="store_true", help="print the calculated memory of runs from 0.5B to 72B and exit")
    add("--json", action="store_true", help="measure the one --pass in this process and print a JSON object")
    options = parser.parse_args(arguments)
    if options.json and len(options.passes or ()) != 1:
        parser.error("--json measures one pass: expected --pass PROMPT+REPLYxTURNS once")
    if not _DEVICE.fullmatch(options.device):
        parser.error(f"--device {options.device}: expected cpu, cuda or cuda:N, whose peak can be measured")
    return options


def measure(options: argparse.Namespace, size: Pass) -> dict[str, Any]:
    """Return calculated and measured bytes of one pass.

    A process should measure one pass only, because the allocator keeps the memory of earlier ones.

    Args:
        options: The command line, for the model.
        size: The pass.
    """
    loaded = load_model(options.model, device=options.device, dtype=options.dtype, allow_wheel=options.allow_wheel)
    policy = SharedBasePolicy(
        loaded.model,
        [_AGENT],
        LoraSettings(activated=size.activated),
        0,
        invocation_ids=(1,) if size.activated else (),
    )
    _forward(policy, Pass(8, 2, 1, size.activated, size.checkpointing)).backward()  # libraries allocate their buffers
    before = start_peak(policy.device)
    saved: dict[int, int] = {}
    weights = {p.untyped_storage().data_ptr() for p in policy.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in weights:
            saved[memory.data_ptr()] = memory.nbytes()
        return tensor

    formula, length, actions = pass_memory(policy), size.prompt + size.reply, size.turns * size.reply
    with prompts_kept(policy, formula.kept(size.turns * size.base)):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = _forward(policy, size)
        measured = sum(saved.values()) + policy.store.bytes
        with policy.use(_AGENT):
            loss.backward()
        measured_peak = peak(policy.device) - before
    work = {"turns": size.turns, "length": length, "actions": actions, "base": size.base}
    return {
        "calculated_saved": formula.saved(**work, checkpointing=size.checkpointing),
        "measured_saved": measured,
        "calculated_peak": formula.peak(**work, checkpointing=size.checkpointing),
        "measured_peak": measured_peak,
    }


def _forward(policy: SharedBasePolicy, size: Pass) -> torch.Tensor:
    """Return a loss of log-probabilities and entropies, as an update computes it."""
    tokens = torch.randint(3, 1000, (size.turns, size.prompt + size.reply), generator=torch.Generator().manual_seed(0))
    tokens = tokens % policy.vocabulary_sizes[0]
    generations = [
        Generation(
            tuple(row[: size.prompt]), tuple(row[size.prompt :]), (0.0,) * size.reply, "", False, base_tokens=size.base
        )
        for row in tokens.tolist()
    ]
    turns = padded_turns(generations, [(i, 0) for i in range(size.turns)], 0).to(policy.device)
    with policy.use(_AGENT), checkpointed(policy.causal_lm, on=size.checkpointing):
        scores = policy.scores(turns, 1.0)
    return scores.logprobs.sum() + scores.entropy.sum()


def compare(options: argparse.Namespace) -> None:
    """Measure every pass in a process of its own and print a Markdown table, in GiB."""
    print("| pass | saved: calculated | measured | ratio | peak: calculated | measured | ratio |")
    print("|---|---|---|---|---|---|---|")
    for size in options.passes or [parse_pass(text) for text in _PASSES]:
        text = f"{size.prompt}+{size.reply}x{size.turns}{'a' * size.activated}{'c' * size.checkpointing}"
        command = [sys.executable, __file__, "--model", options.model, "--dtype", options.dtype]
        command += ["--device", options.device, "--pass", text, "--json", *["--allow-wheel"] * options.allow_wheel]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"pass {text}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        found = json.loads(done.stdout.splitlines()[-1])
        cells = [text]
        for kind in ("saved", "peak"):
            calculated, measured = found[f"calculated_{kind}"], found[f"measured_{kind}"]
            cells += [f"{calculated / GIB:.3f}", f"{measured / GIB:.3f}", f"{calculated / measured:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if options.table:
        print(table_of_sizes())
    elif options.json:
        print(json.dumps(measure(options, options.passes[0])))
    else:
        compare(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of memory.py and return its exit code."""
    options = parse(arguments)
    return run_command("memory", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
