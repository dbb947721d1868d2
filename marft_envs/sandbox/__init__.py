"""Untrusted programs, run so that they cannot harm the host; it refuses to run them where it cannot promise that.

>>> from marft_envs.sandbox import Limits, LocalSandbox, Stdin
>>> result = LocalSandbox().run("print(int(input()) + 1)", [Stdin("41")], Limits(cpu_s=2))
>>> result.runs[0].stdout
'42\\n'

| level | what holds a program |
|---|---|
| namespace | all of "landlock", in namespaces: no network, no host process, the interpreter's files only |
| landlock | Landlock, a seccomp allow-list, limits, no_new_privs; user nobody when the trainer is root |
| rlimits | limits only, no wall: ``allow_unsafe=True``, which warns at every run |
| external | what a command of yours promises, see ``ExternalSandbox``: a container, a VM, another machine |

What it does not guard against: faults of the kernel itself; what a program learns from timing; on "landlock", that a
path exists (stat is not mediated).
"""

from __future__ import annotations

from marft_envs.sandbox.external import ExternalSandbox
from marft_envs.sandbox.local import LocalSandbox
from marft_envs.sandbox.pool import LEVELS, STRONG
from marft_envs.sandbox.records import (
    DEFAULT_LIMITS,
    Asserts,
    Call,
    Ending,
    Limits,
    Result,
    Run,
    Sandbox,
    SandboxUnavailable,
    Stdin,
    Test,
    UnsafeSandbox,
)

__all__ = [
    "DEFAULT_LIMITS", "LEVELS", "STRONG", "Asserts", "Call", "Ending", "ExternalSandbox", "Limits", "LocalSandbox",
    "Result", "Run", "Sandbox", "SandboxUnavailable", "Stdin", "Test", "UnsafeSandbox",
]  # fmt: skip
