"""Runs side by side: processes of one thread each, what they tell, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from baselines.models.load import ModelCorrupt, ModelNotFound
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.results_folder import Results

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SELF_EXPLAINING = (CheckpointError, NonFiniteLoss, ModelNotFound, ModelCorrupt)
_LAST_WORDS_S = 10.0  # for a worker that was told to end


@dataclass(frozen=True)
class Event:
    """News of a run. kind: "row", "done" or "failed"; row: the row, or {"error": text}."""

    kind: str
    run: RunConfig
    row: Mapping[str, Any]


class Worker:
    """A process that does one run after the other; a pipe of its own, so that its death disturbs nobody."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.run: RunConfig | None = None
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _ctrl_c_held_back():
            self.process.start()
        theirs.close()

    def give(self, run: RunConfig, folder: str) -> None:
        """Let it do ``run``. A worker that has died meanwhile is noticed by ``hear``."""
        self.run = run
        try:
            self.connection.send((run, folder))
        except OSError:
            return

    def hear(self) -> Event:
        """The next news of its run; of its death, too."""
        assert self.run is not None
        try:
            kind, row = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_LAST_WORDS_S)
            code = self.process.exitcode
            why = f"was killed by signal {-code} (out of memory?)" if code and code < 0 else f"ended with code {code}"
            kind, row = "failed", {"error": f"its process {why}; --resume goes on from the last checkpoint"}
        return Event(kind, self.run, row)

    def end(self) -> None:
        """Stop it, whatever it does; its run can be resumed. The pipe is closed last: a worker that still writes into
        one that is closed would say so in a traceback."""
        self.process.terminate()
        self.process.join(_LAST_WORDS_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


@contextlib.contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """It reaches every process of a terminal. A child that is started in here inherits that it waits, for good, and the
    parent decides."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def execute(runs: Sequence[RunConfig], results: Results, workers: int) -> Iterator[Event]:
    """Do them in ``workers`` processes, from their last checkpoints where they have some, and tell what happens.
    Closing the generator stops the workers."""
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    waiting = deque(runs)
    busy: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                busy.append(Worker())
                busy[-1].give(waiting[0], str(results.cell(waiting.popleft())))
            heard = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in heard]:
                event = worker.hear()
                if event.kind == "row":
                    yield event
                    continue
                if waiting and worker.process.is_alive():
                    worker.give(waiting[0], str(results.cell(waiting.popleft())))
                else:
                    busy.remove(worker)
                    worker.end()
                yield event
    finally:
        for worker in busy:
            worker.process.terminate()  # all of them before the first is waited for
        for worker in busy:
            worker.end()


def _die_with_the_parent() -> None:
    """A killed parent must not leave workers behind that train for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(connection: Connection) -> None:
    """One worker: runs from the pipe until it is closed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a parent that ignores it, as under nohup or timeout, hands that on
    import torch

    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    while True:
        try:
            run, folder = connection.recv()
        except EOFError:
            return

        def tell(row: dict[str, Any]) -> None:
            connection.send(("row", {k: v for k, v in row.items() if not k.startswith("item_")}))

        try:
            train(run, tell, folder=folder, resume=True)
            connection.send(("done", {}))
        except _SELF_EXPLAINING as fault:
            connection.send(("failed", {"error": str(fault)}))
        except Exception:  # the boundary of a run: told, and the other runs go on
            connection.send(("failed", {"error": traceback.format_exc()}))
