"""What goes into the sandbox and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SandboxUnavailable(RuntimeError):
    """Programs cannot be run here with the wall that was asked for; the message says what is missing."""


class UnsafeSandbox(UserWarning):
    """A program runs with nothing but resource limits around it."""


class Ending(StrEnum):
    """How one run ended. Whether its output is right is not the sandbox's to say."""

    DONE = "done"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    WRONG = "wrong"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each run, never summed over the tests of a program.

    cpu_s: CPU time; it decides. memory_mib: address space beyond the interpreter's own. output_mib: of each of stdout,
    stderr and the returned value.
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
                raise ValueError(f"{name}={value!r}: expected a positive number, a whole one")

    @property
    def wall_s(self) -> float:
        """The backstop: an idle program is stopped after it, a working one gets more."""
        return 2 * self.cpu_s + 1


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Stdin:
    """Run the program as ``__main__`` with this on its standard input."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Run the program, then call ``function`` (of a new ``Solution``, or of the module).

    arguments: a list in the notation of ``inside.values``; plain JSON without large integers is that.
    """

    function: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Asserts:
    """Run ``code`` in a second process, where names that it does not define are the program's, behind proxies.

    function: with it, ``check(function)`` is called at the end, as in HumanEval; "" without. builtins: names of
    builtins that are the program's all the same, because they are what it is to define.
    """

    code: str
    function: str = ""
    builtins: tuple[str, ...] = ()


Test = Stdin | Call | Asserts


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program. value: what a called function returned, in the notation of ``inside.values``; else "".

    detail: one line for people: the end of a traceback, the failed assertion, the fault.
    """

    ending: Ending
    stdout: str = ""
    value: str = ""
    detail: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """A program's runs, one for each test in their order, and the level that held them."""

    runs: tuple[Run, ...]
    isolation: str


class Sandbox(Protocol):
    """What runs programs. Ours is ``LocalSandbox``; yours may send them to another machine, a WASM runtime or a VM."""

    def run(self, program: str, tests: Sequence[Test], limits: Limits, *, prelude: bool = False) -> Result:
        """Every test in a fresh process. prelude: whether the customary imports are there before the program."""
        ...
