"""Grading in an executor of threads or processes, concurrently with generation.

Any fault of a worker (it was killed or ran out of memory, its pool broke or was shut down, the task does not pickle)
becomes the verdict ``NOT_GRADED`` with the reason. The run continues, and no answer is graded as wrong because of it.
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
PendingVerdicts = dict[str, "Future[Verdict] | Verdict"]


class Grader:
    """Grades finished games.

    Args:
        source: An Executor, which the caller shuts down; or a function that makes one, which the grader replaces after
            a killed worker broke it and shuts down in ``close``; or None to grade in the calling thread. For a process
            executor, the task is pickled with every answer.
    """

    def __init__(self, source: ExecutorSource) -> None:
        if source is not None and not isinstance(source, Executor) and not callable(source):
            raise TypeError(f"executor={source!r:.80}: expected a concurrent.futures.Executor, a function or None")
        if callable(source):
            check_callable("executor", source, (), classes=True)
        self._make_executor = None if isinstance(source, Executor) or source is None else source
        self._executor = source if isinstance(source, Executor) else None

    @property
    def concurrent(self) -> bool:
        """Whether an executor grades while other episodes are played."""
        return self._make_executor is not None or self._executor is not None

    def submit(self, env: FlexMG) -> PendingVerdicts:
        """Start to grade a game that is over. Return a verdict, or a future of one, for each answering agent."""
        if not self.concurrent:
            return dict(env.grade())
        retry = self._make_executor is not None
        return {agent: self._submit(env, answer, retry) for agent, answer in env.answers().items()}

    def _submit(self, env: FlexMG, answer: tuple[str, Problem], retry: bool) -> Future[Verdict] | Verdict:
        if self._executor is None and self._make_executor is not None:
            self._executor = _new_executor(self._make_executor)
        assert self._executor is not None
        try:
            return self._executor.submit(grade_answer, env.task, *answer)
        except RuntimeError as fault:  # a killed worker broke the executor, or it was shut down
            if not retry:
                return not_graded(fault)
        self.close()
        return self._submit(env, answer, retry=False)

    @staticmethod
    def collect(pending: PendingVerdicts) -> dict[str, Verdict]:
        """Return the verdicts, after waiting for the unfinished ones."""
        return {agent: _wait_for_verdict(verdict) for agent, verdict in pending.items()}

    def close(self) -> None:
        """Shut down the executor if the grader made it."""
        if self._make_executor is not None and self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def _new_executor(make_executor: Callable[[], Executor]) -> Executor:
    executor = make_executor()
    if not isinstance(executor, Executor):
        raise TypeError(
            f"executor={callable_name(make_executor)} returned {executor!r:.80}: expected a concurrent.futures.Executor"
        )
    return executor


def _wait_for_verdict(verdict: Future[Verdict] | Verdict) -> Verdict:
    if isinstance(verdict, Verdict):
        return verdict
    try:
        return verdict.result()
    except Exception as fault:  # a fault of a worker is counted, not scored
        return not_graded(fault)


def not_graded(fault: BaseException) -> Verdict:
    """Return the verdict NOT_GRADED with the name and message of an exception."""
    return Verdict.not_graded(f"{type(fault).__name__}: {fault}")
