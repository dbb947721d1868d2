"""End of a process as Python ends: threads, exit functions, streams, the program's modules, the exit code.

``Py_FinalizeEx`` in a forked child would also release the modules that the server has loaded, which takes longer than
the rest of a run. So this module does only the steps that a program can observe: output that is still in a buffer, and
objects with a finalizer.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import io
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable
from itertools import islice
from typing import Any

_exit = os._exit
_libc = ctypes.CDLL(None)
_STREAM = io.IOBase.__base__ or io.IOBase  # the C class, whose instance check calls no Python code
_FLUSH_FAILED = 120  # the exit code of Python when it cannot flush
_sizes: dict[int, int] = {}  # id of a dict that the server shares with the program -> its length in the server


def prepare() -> None:
    """Record what the server has loaded. It is not the program's and is not released."""
    for shared in (sys.modules, vars(builtins), vars(sys)):
        _sizes[id(shared)] = len(shared)


def run_and_exit(work: Callable[[], None]) -> None:
    """Call ``work`` and exit as Python does after the main module has ended. Never returns."""
    code = 0
    try:
        work()
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException:
        code = 1
        _print_traceback()
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        try:
            step()
        except BaseException:
            _print_traceback()
    flushed = _flush_streams()
    with contextlib.suppress(BaseException):
        _release_modules()
    flushed = _flush_streams() and flushed
    _libc.fflush(None)
    _exit(code if flushed else _FLUSH_FAILED)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if -(1 << 63) <= error.code < 1 << 63 else 0xFF
    with contextlib.suppress(BaseException):
        if sys.stderr is not None:  # print(file=None) would write to stdout
            print(error.code, file=sys.stderr)
    return 1


def _print_traceback() -> None:
    """Print the traceback without the frames of this package. To run out of memory here must not hide the exit code."""
    try:
        kind, value, trace = sys.exc_info()
        folder = os.path.dirname(__file__)  # noqa: PTH120 - the program may have exhausted its memory
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(folder):
            trace = trace.tb_next
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
        sys.stderr.flush()
    except BaseException:
        os.write(2, f"\n{kind.__name__ if kind else 'error'}\n".encode())


def _flush_streams() -> bool:
    """Flush stdout and stderr, whatever the program has put there. Return False if that fails."""
    flushed = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not _is_closed(stream):
                stream.flush()
        except BaseException:
            flushed = False
    return flushed


def _is_closed(stream: object) -> bool:
    try:
        return bool(stream.closed)  # type: ignore[attr-defined]
    except BaseException:
        return False


def _release_modules() -> None:
    """Flush the files that are still open, then release the program's modules in the order of CPython.

    Objects with a finalizer are finalized when their last reference goes away. The frozen objects of the server are not
    visited by the collector, so this takes little time.
    """
    _flush_files()
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, getattr(sys, f"__{name}__", None))
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    released = []
    for name in ("__main__", *_added(sys.modules)):
        module = sys.modules.pop(name, None)
        if isinstance(module, types.ModuleType):
            released.append(weakref.ref(module))
        del module
    gc.collect()
    for reference in reversed(released):
        _clear(reference())
    for shared in (builtins, sys):
        for name in _added(vars(shared)):
            delattr(shared, name)
    gc.collect()
    _flush_files()


def _flush_files() -> None:
    """Flush every file object that still exists. The collector may close the descriptor of one in a cycle first."""
    for stream in gc.get_objects():
        if issubclass(type(stream), _STREAM):
            with contextlib.suppress(BaseException):
                stream.flush()


def _added(names: dict[str, Any]) -> list[str]:
    """Return the names that the program has added to a dict of the server, in order.

    They are at its end. To visit the other names would copy the pages of their objects, because it counts references.
    """
    return list(islice(reversed(names), max(0, len(names) - _sizes[id(names)])))[::-1]


def _clear(module: types.ModuleType | None) -> None:
    """Set the module's variables to None, those with a leading underscore first, as CPython does."""
    variables = {} if module is None else vars(module)
    for private in (True, False):
        for name in list(variables):
            if (name[0:1] == "_" and name[1:2] != "_") is private and name != "__builtins__":
                variables[name] = None
