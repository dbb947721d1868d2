"""The symbolic layer: math-verify and mpmath in processes of their own, which may be killed at any moment.

    process                  file         what it does
    parent (any thread)      pool.py      lends a worker to one comparison at a time, starts and closes workers
    worker, exec'ed fresh    worker.py    keeps the time; forks a child and kills it when its time is up
    child of the worker      compare.py   locked; reads and compares; memory and CPU limited

A verdict's ``isolation`` says what is locked. "landlock": the lock of ``marft_envs.sandbox`` (Landlock, a filter of
system calls, limits, an ordinary user in place of root): a child may read the standard library and the packages that it
compares with, and has no network, no other process and no file to write. "rlimits", where the kernel has no such lock:
address space, CPU time, nothing written to files, few open files, no new processes (which does not bind root), no new
privileges, and "no network" where a network namespace is allowed; files may be read. Always: MEMORY_BYTES, an empty
environment, a working directory that no longer exists. The child evaluates no text as code: LaTeX is read by
math-verify's grammar, trees by ``evaluate``.
"""

from marft_envs.mathematics.grader.symbolic.pool import Answer, Symbolic, WorkerFault, shared_pool

__all__ = ["Answer", "Symbolic", "WorkerFault", "shared_pool"]
