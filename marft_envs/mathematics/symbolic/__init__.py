"""The symbolic layer: math-verify and mpmath in processes of their own, which may be killed at any moment.

    process                  file         what it does
    parent (any thread)      pool.py      lends a worker to one comparison at a time, starts and closes workers
    worker, exec'ed fresh    worker.py    locked; keeps the time; forks a child and kills it when its time is up
    child of the worker      compare.py   reads and compares; memory and CPU limited

What is locked: address space (MEMORY_BYTES), CPU time, nothing written to files (RLIMIT_FSIZE 0), few open files, no
new processes in the child (RLIMIT_NPROC, which does not bind root), no new privileges, an empty environment, a working
directory that no longer exists, and, where the kernel allows an unprivileged network namespace, no network; a verdict's
``isolation`` says whether it does. What is not locked: reading files that the user may read, and system calls. The
child evaluates no text as code: LaTeX is read by math-verify's grammar, trees by ``evaluate``.
"""

from marft_envs.mathematics.symbolic.pool import Answer, Symbolic, WorkerFault, shared_pool

__all__ = ["Answer", "Symbolic", "WorkerFault", "shared_pool"]
