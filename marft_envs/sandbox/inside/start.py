"""The server's first file: ``python -P -s -S start.py LEVEL CONTROL_FD PACKAGES NEW_ROOT``.

It raises the stack limit and starts itself again, because the kernel lays out the stack at exec; loads the folder it is
in as the package ``marft_inside``; imports what programs usually import, so that children have it; enters the level.
It answers "ready" or says why not, and then serves.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import resource
import site
import socket
import sys
from pathlib import Path

WARM = """
    array bisect builtins cmath collections contextlib copy csv ctypes dataclasses datetime decimal enum fractions
    functools heapq io itertools json math operator os random re statistics string struct sys textwrap threading time
    traceback types typing
"""
_STACK = 256 << 20


def main() -> None:
    """Prepare, answer, serve."""
    level, control_fd, packages, new_root = sys.argv[1:5]
    if resource.getrlimit(resource.RLIMIT_STACK)[0] != _STACK and "again" not in sys.argv:
        _start_again()
    control = socket.socket(fileno=int(control_fd))
    os.environ.clear()
    try:
        lock, serve = _prepare(level, Path(packages) if packages else None, Path(new_root))
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode()[:2000])
        return
    control.send(b"ready")
    serve(control, lock)


def _start_again() -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    os.set_inheritable(int(sys.argv[2]), True)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"], dict(os.environ))


def _prepare(level: str, packages: Path | None, new_root: Path):  # type: ignore[no-untyped-def]
    _import_without_fork_hooks(WARM.split())
    inside = load_package()
    site.setquit()
    site.setcopyright()
    readable = inside["reading"].find(packages)
    if packages:
        sys.path.append(str(packages))
        importlib.import_module("numpy")
    if level == "namespace":
        inside["namespaces"].enter(readable.bound, readable.hidden, new_root)
    ruleset = None if level == "rlimits" else make_ruleset(inside, readable)
    inside["program"].new_streams()  # /dev/null here; a child puts its own files under the same numbers
    return inside["lock"].Lock.prepare(ruleset, [readable.stdlib]), inside["server"].serve


def _import_without_fork_hooks(names):  # type: ignore[no-untyped-def]
    """Without what ``threading`` and ``random`` would do in every child, a tenth of a run's time: put in order a list
    of threads, of which the server has one, and draw a new seed. The module ``random`` starts from one seed instead, as
    sets have one order: the same verdict twice."""
    register = os.register_at_fork
    os.register_at_fork = lambda **_: None  # type: ignore[assignment]
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        os.register_at_fork = register  # type: ignore[assignment]
    sys.modules["random"].seed(0)


def make_ruleset(inside, readable):  # type: ignore[no-untyped-def]
    """A descriptor of what may be read, for the lock. OSError where this kernel or machine has no lock."""
    if inside["landlock"].abi() == 0:
        raise OSError("the kernel has no Landlock (it came with 5.13), or it is switched off")
    if not inside["seccomp"].supported():
        raise OSError(f"no table of system calls for the machine {os.uname().machine!r}")
    ruleset = inside["landlock"].make_ruleset(readable.trees)
    return fcntl.fcntl(ruleset, fcntl.F_DUPFD_CLOEXEC, 100)  # above what children fill


def load_package():  # type: ignore[no-untyped-def]
    """The modules of this folder by name; also for the worker of ``mathematics.symbolic``, which has the same lock."""
    folder = Path(__file__).parent
    spec = importlib.util.spec_from_file_location(
        "marft_inside", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["marft_inside"] = module
    spec.loader.exec_module(module)
    names = ("lock", "landlock", "namespaces", "program", "reading", "seccomp", "server")
    return {name: importlib.import_module(f"marft_inside.{name}") for name in names}


if __name__ == "__main__":
    main()
