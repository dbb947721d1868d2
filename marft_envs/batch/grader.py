"""Grading beside generation: verdicts in an executor of threads or processes, with a boundary around its faults.

Whatever happens to a worker (killed, out of memory, a pool that is broken or shut down, a task that cannot be pickled)
becomes ``NOT_GRADED`` with the reason: the run goes on, and no answer is called wrong for it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from marft_envs.arguments import callable_name, check_callable
from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.scoring import grade_answer
from marft_envs.task import Problem
from marft_envs.verdict import Verdict

ExecutorSource = Executor | Callable[[], Executor] | None
Pending = dict[str, "Future[Verdict] | Verdict"]


class Grader:
    """Verdicts for finished games.

    source: an Executor of the caller's, who shuts it down; a function that makes one, which the grader owns, replaces
    when a killed worker has broken it, and shuts down in ``close``; None grades in the calling thread. A process
    executor gets the task pickled with every answer.
    """

    def __init__(self, source: ExecutorSource) -> None:
        if source is not None and not isinstance(source, Executor) and not callable(source):
            raise TypeError(f"executor={source!r:.80}: expected a concurrent.futures.Executor, a function or None")
        if callable(source):
            check_callable("executor", source, (), classes=True)
        self._make = None if isinstance(source, Executor) or source is None else source
        self._executor = source if isinstance(source, Executor) else None

    @property
    def beside(self) -> bool:
        """Whether grading runs beside the play."""
        return self._make is not None or self._executor is not None

    def submit(self, env: FlexMG) -> Pending:
        """Begin to grade a game that is over: for each answering agent a verdict or the promise of one."""
        if not self.beside:
            return dict(env.grade())
        return {agent: self._submit(env, answer, self._make is not None) for agent, answer in env.answers().items()}

    def _submit(self, env: FlexMG, answer: tuple[str, Problem], again: bool) -> Future[Verdict] | Verdict:
        if self._executor is None and self._make is not None:
            self._executor = _made(self._make)
        assert self._executor is not None
        try:
            return self._executor.submit(grade_answer, env.task, *answer)
        except RuntimeError as fault:  # a killed worker has broken it, or it was shut down
            if not again:
                return not_graded(fault)
        self.close()
        return self._submit(env, answer, again=False)

    @staticmethod
    def collect(pending: Pending) -> dict[str, Verdict]:
        """The verdicts; waits for those that are not there yet."""
        return {agent: _verdict(entry) for agent, entry in pending.items()}

    def close(self) -> None:
        """Shut down an executor that the grader made itself."""
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def _made(make: Callable[[], Executor]) -> Executor:
    made = make()
    if not isinstance(made, Executor):
        raise TypeError(f"executor={callable_name(make)} made {made!r:.80}: expected a concurrent.futures.Executor")
    return made


def _verdict(entry: Future[Verdict] | Verdict) -> Verdict:
    if isinstance(entry, Verdict):
        return entry
    try:
        return entry.result()
    except Exception as fault:  # the boundary: a worker's fault is counted, not scored
        return not_graded(fault)


def not_graded(fault: BaseException) -> Verdict:
    """NOT_GRADED with the exception's name and words."""
    return Verdict.not_graded(f"{type(fault).__name__}: {fault}")
