"""Semaphores of ``multiprocessing`` for a process that cannot start another one.

``multiprocessing.Lock``, and with it ``ThreadPool``, creates a POSIX semaphore, which is a file below /dev/shm that the
program may not write. Within one process a semaphore of ``threading`` is equivalent.
"""

from __future__ import annotations

import sys
import threading
import types

_RECURSIVE_MUTEX = 0


class SemLock:
    """The semaphore of ``_multiprocessing``, see ``multiprocessing.synchronize``.

    Args:
        kind: 0 for a mutex that its owner may acquire repeatedly, 1 for a semaphore.
        value: Initial value.
        maxvalue: Largest value.
        name: Ignored: no other process can open the semaphore.
        unlink: Ignored.
    """

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, id(self)
        self._value, self._held, self._owner = value, 0, 0
        self._changed = threading.Condition(threading.Lock())

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Decrement the value, waiting until it is positive. Return False if it is not in time."""
        if self.kind == _RECURSIVE_MUTEX and self._is_mine():
            self._held += 1
            return True
        seconds = 0.0 if not block else None if timeout is None else max(0.0, timeout)
        with self._changed:
            if not self._changed.wait_for(lambda: self._value > 0, seconds):
                return False
            self._value -= 1
            self._held, self._owner = self._held + 1, threading.get_ident()
        return True

    def release(self) -> None:
        """Increment the value. Raises AssertionError or ValueError, as the original, if that is not allowed."""
        if self.kind == _RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        with self._changed:
            if self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._value += 1
            self._held -= 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == threading.get_ident()

    def _count(self) -> int:
        return self._held

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return self._value == 0

    def _after_fork(self) -> None:
        self._held = 0


def install() -> None:
    """Make this the module ``_multiprocessing`` of the process."""
    module = types.ModuleType("_multiprocessing")
    module.SemLock, module.sem_unlink, module.flags = SemLock, lambda name: None, {}  # type: ignore[attr-defined]
    sys.modules["_multiprocessing"] = module
