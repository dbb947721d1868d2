"""The symbolic layer of the grader: math-verify and mpmath in separate processes, which can be killed at any time.

| process | file | task |
|---|---|---|
| parent, any thread | worker_pool.py | starts and stops workers; lends a worker to one comparison at a time |
| worker, a new interpreter | worker.py | measures time; forks a child, and kills it at the time limit |
| child of the worker | child_process.py | confined; parses and compares, with limited memory and CPU time |

``Verdict.isolation`` names the confinement of the child. "landlock" is that of ``marft_envs.sandbox``: Landlock, a
filter of system calls, resource limits, and another user in place of root. The child can read the standard library
and the packages that it compares with, and has no network, no other processes and no file to write. "rlimits" is the
fallback on kernels without Landlock: limits on address space, CPU time, open and written files and new processes
(except for root), no new privileges, and "no network" if a network namespace is allowed; files can be read. In both
cases the environment is empty and the working directory has been deleted. No string is evaluated as code: math-verify's
grammar parses LaTeX, and ``tree_value`` evaluates trees.
"""

from marft_envs.mathematics.grader.symbolic.worker_pool import Comparison, WorkerFault, WorkerPool, shared_pool

__all__ = ["Comparison", "WorkerPool", "WorkerFault", "shared_pool"]
