"""Inputs and results of a sandbox: limits, tests, runs, and the interface that every sandbox implements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SandboxUnavailable(RuntimeError):
    """The requested isolation is not available on this host. The message names what is missing."""


class UnsafeSandboxWarning(UserWarning):
    """A program runs without isolation, with resource limits only."""


class RunStatus(StrEnum):
    """How one run of a program ended. The sandbox does not judge whether the output is correct.

    Attributes:
        DONE: It ended with exit code 0; with ``Asserts``, every assertion held.
        RUNTIME_ERROR: It ended with another exit code or by a signal.
        TIMEOUT: It used up its CPU time, or was idle for too long.
        MEMORY: It ended with a MemoryError.
        OUTPUT_LIMIT: It wrote more than the limit.
        WRONG: An assertion of ``Asserts`` failed.
        FAULT: The sandbox failed. This says nothing about the program.
    """

    DONE = "done"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    WRONG = "wrong"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each run. They are not summed over the tests of a program.

    Attributes:
        cpu_s: CPU time in seconds. It decides whether a run is a TIMEOUT.
        memory_mib: Resident memory in MiB, beyond that of the interpreter itself.
        output_mib: Size in MiB of each of stdout, stderr and the returned value.

    Raises:
        ValueError: If a limit is not a positive number.
    """

    cpu_s: float = 5.0
    memory_mib: int = 1024
    output_mib: int = 16

    def __post_init__(self) -> None:
        for name in ("cpu_s", "memory_mib", "output_mib"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
                raise ValueError(f"{name}={value!r}: expected a positive number")
            if name != "cpu_s" and not isinstance(value, int):
                raise ValueError(f"{name}={value!r}: expected a positive integer")

    @property
    def wall_s(self) -> float:
        """Wall time in seconds after which an idle program is stopped. A busy program gets up to ten times as much."""
        return 2 * self.cpu_s + 1


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Stdin:
    """Test that runs the program as ``__main__``.

    Attributes:
        text: Standard input of the program.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Test that runs the program, then calls one of its functions.

    Attributes:
        function: Name of a method of the program's class ``Solution`` or, without one, of a function of the module.
        arguments: JSON list of the positional arguments, in the notation of ``marft_envs.sandbox.inside.values``.
            Plain JSON is valid, except for integers of more than 20 digits.
    """

    function: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Asserts:
    """Test that runs assertions in a second process, which calls the program through proxies.

    A name that ``code`` does not define, and that is not a builtin, refers to the program's object of that name.

    Attributes:
        code: Source of the assertions.
        function: If not empty, ``check(function)`` is called at the end, as in HumanEval.
        builtins: Names of builtins that refer to the program's objects, because the task is to define them.
        classes: Names of the program's classes whose objects the tests compare with their own data, None if that is
            unknown: then the classes that are named like one (CapWords). See docs/grading.md.
    """

    code: str
    function: str = ""
    builtins: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None


Test = Stdin | Call | Asserts


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """Result of one run of a program.

    Attributes:
        status: How the run ended.
        stdout: Standard output of the program.
        value: Value that the function of a ``Call`` returned, in the notation of ``marft_envs.sandbox.inside.values``;
            otherwise empty.
        detail: One line that explains the status: the end of the traceback, the failed assertion, the fault.
        cpu_s: CPU time in seconds.
        wall_s: Wall time in seconds.
    """

    status: RunStatus
    stdout: str = ""
    value: str = ""
    detail: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """Results of one program.

    Attributes:
        runs: One run for each test, in the order of the tests.
        isolation: Level at which the program was isolated.
    """

    runs: tuple[ProgramRun, ...]
    isolation: str


class Sandbox(Protocol):
    """Interface of a sandbox.

    ``LocalSandbox`` and ``ExternalSandbox`` implement it. An implementation of your own may use a VM, a WASM runtime or
    another machine.
    """

    def run(self, program: str, tests: Sequence[Test], limits: Limits, *, prelude: bool = False) -> Result:
        """Run the program once for each test, in a new process each time.

        Args:
            program: Source of a Python program.
            tests: The tests.
            limits: Limits of each run.
            prelude: Whether the imports that are customary in programming contests precede the program.

        Returns:
            One run for each test, and the isolation level.
        """
        ...
