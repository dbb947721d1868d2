"""A step of TRL's GRPOTrainer as a side of the comparison: a child process in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import torch

from baselines.models.load import LoadedModel
from benchmarks.speed.comparison import Seconds
from benchmarks.speed.workload import Workload

_PROGRAM = Path(__file__).with_name("trl_step.py")


class TrlStep:
    """Generates the replies of one agent and makes its update with TRL, when it is called.

    TRL trains one adapter, so the seconds are those of one agent times the agents: their work is equal. Its prompts are
    those of the first agent as text.

    Args:
        python: The Python of an environment that has TRL, peft and datasets.
        work: The work.
        loaded: The base model.
        folder: The folder of the model's files.
        rows: Turns of a training pass; TRL uses the next smaller divisor of the episodes.
        repetitions: How often it is called at most.
    """

    def __init__(
        self, python: Path, work: Workload, loaded: LoadedModel, folder: Path, rows: int, repetitions: int
    ) -> None:
        episodes = work.cell.episodes
        self._agents = work.cell.agents
        prompts = [loaded.tokenizer.decode(list(ids)) for ids in next(iter(work.prompts.values()))]
        settings: dict[str, Any] = {
            "folder": str(folder),
            "dtype": str(loaded.dtype).removeprefix("torch."),
            "device": loaded.device.type,
            "prompts": prompts,
            "new_tokens": work.cell.new_tokens,
            "rows": next(n for n in range(min(rows, episodes), 0, -1) if episodes % n == 0),
            "repetitions": repetitions,
        }
        self._command = [str(python), str(_PROGRAM), json.dumps(settings)]
        self._process: subprocess.Popen[str] | None = None

    def __call__(self) -> Seconds:
        """Return the seconds of one repetition. The first call starts the process.

        Raises:
            RuntimeError: The process ended. The message is the last line of its output.
        """
        if self._process is None:
            pipe, threads = subprocess.PIPE, {"OMP_NUM_THREADS": str(torch.get_num_threads())}
            self._process = subprocess.Popen(
                self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **threads},
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        last = "no message"
        for line in self._process.stdout:
            if line.startswith("seconds "):
                return {"total": self._agents * float(line.split()[1])}
            last = line.strip() or last
        raise RuntimeError(last)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
