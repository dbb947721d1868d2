"""Sandbox for untrusted programs. It refuses to run a program where it cannot protect the host.

>>> from marft_envs.sandbox import Limits, LocalSandbox, Stdin
>>> result = LocalSandbox().run("print(int(input()) + 1)", [Stdin("41")], Limits(cpu_s=2))
>>> result.runs[0].stdout
'42\\n'

| isolation level | how a program is isolated |
|---|---|
| namespace | as "landlock", inside namespaces: no network, no host process, only the interpreter's files |
| landlock | Landlock, a seccomp allow-list, resource limits, no_new_privs; a user id of its own if the caller is root |
| external | as the user's command does it: a container, a VM, another machine; see ``ExternalSandbox`` |
| rlimits | resource limits only; not isolated. Requires ``allow_unsafe=True`` and warns at every run |

Not guarded against: faults of the kernel; what a program learns from timing; at the level "landlock", that a program
finds out whether a path exists. SECURITY.md describes the threat model.
"""

from __future__ import annotations

from marft_envs.sandbox.external import ExternalSandbox
from marft_envs.sandbox.local import LocalSandbox
from marft_envs.sandbox.records import (
    DEFAULT_LIMITS,
    Asserts,
    Call,
    Limits,
    ProgramRun,
    Result,
    RunStatus,
    Sandbox,
    SandboxUnavailable,
    Stdin,
    Test,
    UnsafeSandboxWarning,
)
from marft_envs.sandbox.server_pool import LEVELS, STRONG

__all__ = [
    "DEFAULT_LIMITS", "LEVELS", "STRONG", "Asserts", "Call", "ExternalSandbox", "Limits", "LocalSandbox", "Result",
    "ProgramRun", "RunStatus", "Sandbox", "SandboxUnavailable", "Stdin", "Test", "UnsafeSandboxWarning",
]  # fmt: skip
