"""Parallel runs in worker processes of one thread each. However the comparison ends, no worker is left behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from baselines.errors import RunError
from baselines.models.load import ModelCorrupt, ModelNotFound
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.results_folder import ResultsFolder

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_KNOWN_ERRORS = (RunError, ModelNotFound, ModelCorrupt)  # their message is enough for the terminal
_STOP_S = 10.0  # time that a worker has to end after SIGTERM


@dataclass(frozen=True)
class Event:
    """Progress of a run.

    Attributes:
        kind: "row", "done" or "failed".
        run: The run.
        row: The row without its items; of a failed run "error", its message in one line or a few, and "traceback", the
            lines of the traceback (empty if its process has died).
    """

    kind: str
    run: RunConfig
    row: Mapping[str, Any]


class Worker:
    """A process that does one run after the other. It has a pipe of its own, so that its death affects no other run."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, worker_end = context.Pipe()
        self.run: RunConfig | None = None
        self.process = context.Process(target=_work, args=(worker_end,), daemon=True)
        with _sigint_blocked():
            self.process.start()
        worker_end.close()

    def assign(self, run: RunConfig, folder: str) -> None:
        """Send a run to the worker. If the worker has died, ``receive`` reports it."""
        self.run = run
        with contextlib.suppress(OSError):
            self.connection.send((run, folder))

    def receive(self) -> Event:
        """Return the next event of the worker's run; "failed" if the worker has died."""
        assert self.run is not None
        try:
            kind, row = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_STOP_S)
            code = self.process.exitcode
            why = f"was killed by signal {-code} (out of memory?)" if code and code < 0 else f"ended with code {code}"
            message = f"its process {why}; --resume continues from the last checkpoint"
            kind, row = "failed", {"error": message, "traceback": []}
        return Event(kind, self.run, row)

    def stop(self) -> None:
        """End the process, by SIGKILL if SIGTERM does not. Its run can be resumed."""
        self.process.terminate()
        self.process.join(_STOP_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()  # last: a live worker that writes into a closed pipe prints a traceback


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT in processes that are started in the block.

    Ctrl-C reaches every process of a terminal. A worker inherits the mask for good, so only the parent reacts.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def execute(runs: Sequence[RunConfig], results: ResultsFolder, workers: int) -> Generator[Event, None, None]:
    """Do the runs in parallel, each from its last checkpoint if it has one.

    Args:
        runs: The runs, in the order in which they are started.
        results: Folder of the comparison.
        workers: Number of processes.

    Yields:
        The events of all runs, as they happen. Closing the generator stops the workers.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    waiting = deque(runs)
    busy: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                busy.append(Worker())
                busy[-1].assign(waiting[0], str(results.run_folder(waiting.popleft())))
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                event = worker.receive()
                if event.kind == "row":
                    yield event
                    continue
                if waiting and worker.process.is_alive():
                    worker.assign(waiting[0], str(results.run_folder(waiting.popleft())))
                else:
                    busy.remove(worker)
                    worker.stop()
                yield event
    finally:
        for worker in busy:
            worker.process.terminate()  # signal all workers before waiting for the first one
        for worker in busy:
            worker.stop()


def _exit_with_parent() -> None:
    """End this process when the parent dies, since a killed parent cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(connection: Connection) -> None:
    """Do runs from the pipe until it is closed; the body of a worker process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # under nohup or timeout the inherited handler ignores SIGTERM
    import torch

    threading.Thread(target=_exit_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    while True:
        try:
            run, folder = connection.recv()
        except EOFError:
            return

        def send(row: dict[str, Any]) -> None:
            connection.send(("row", {k: v for k, v in row.items() if not k.startswith("item_")}))

        try:
            train(run, send, folder=folder, resume=True)
            connection.send(("done", {}))
        except Exception as error:  # one run's error is reported and does not stop the others
            connection.send(("failed", _failure(error)))


def _failure(error: Exception) -> dict[str, Any]:
    """Return the row of an event "failed"; the message names the type of an error that is a bug."""
    known = isinstance(error, _KNOWN_ERRORS)
    message = str(error) if known else "".join(traceback.format_exception_only(error)).strip()
    return {"error": message, "traceback": "".join(traceback.format_exception(error)).splitlines()}
