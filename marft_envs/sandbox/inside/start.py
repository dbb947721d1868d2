"""Entry point of the fork server: ``python -P -s -S start.py LEVEL CONTROL_FD PACKAGES CALLER_FD CGROUP``.

1. Raise the stack limit and execute this file again, because the kernel sets the size of the stack at exec.
2. Load this folder as the package ``marft_inside``.
3. Import the modules that programs usually import, so that the children have them already.
4. Enter the namespaces and create the Landlock ruleset, as the level requires.
5. Send "ready", or the error that prevents it, over the control socket. Then serve.
"""

from __future__ import annotations

import ctypes
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
_THREAD_STACK = 8 << 20  # as usual; otherwise each thread would get a stack of the main thread's size
_ARENA_MAX = -8  # mallopt
_DESCRIPTORS = 1024


def main() -> None:
    """Prepare the server, report the result, and serve."""
    level, control_fd, packages, caller, cgroup = sys.argv[1:6]
    _raise_descriptor_limit()
    if resource.getrlimit(resource.RLIMIT_STACK)[0] != _STACK and "again" not in sys.argv:
        _start_again()
    control = socket.socket(fileno=int(control_fd))
    try:
        confinement, serve, scratch = _prepare(level, *(Path(path) if path else None for path in (packages, cgroup)))
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode()[:2000])
        return
    os.environ.clear()  # not before: the libraries of numpy read there that they must not start threads
    control.send(b"ready")
    serve(control, int(caller), confinement, scratch)


def _raise_descriptor_limit() -> None:
    """Raise a small limit of open files, which the caller may have; the server keeps descriptors above 100."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, hard) if hard >= 0 else _DESCRIPTORS, hard))


def _start_again() -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    for descriptor in (sys.argv[2], sys.argv[4]):
        os.set_inheritable(int(descriptor), True)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"], dict(os.environ))


def _prepare(level: str, packages: Path | None, cgroup_folder: Path | None):  # type: ignore[no-untyped-def]
    _limit_thread_memory()
    _import_without_fork_hooks(WARM.split())
    inside = load_package()
    inside["semaphores"].install()
    site.setquit()
    site.setcopyright()
    site.sethelper()
    readable = inside["readable_paths"].find(packages)
    if packages:
        sys.path.append(str(packages))
        importlib.import_module("numpy")
    scratch, cgroup = None, None
    if cgroup_folder:  # a folder that the namespaces hide
        cgroup = inside["cgroup"].Cgroup(cgroup_folder, inside["confinement"].MAX_THREADS)
    if level == "namespace":
        scratch = inside["namespaces"].enter(readable.bound, readable.hidden, inside["readable_paths"].DEVICES)
    elif level == "landlock":
        inside["namespaces"].hide_host_name()
    ruleset = None if level == "rlimits" else make_ruleset(inside, readable, scratch)
    inside["program"].new_streams()  # these are /dev/null; a child puts its own files on the same descriptors
    confinement = inside["confinement"].Confinement.prepare(ruleset, [readable.stdlib], cgroup)
    return confinement, inside["server"].serve, scratch


def _limit_thread_memory() -> None:
    """Give threads stacks of the usual size, and one heap for all of them, so that many fit into the address space."""
    libc = ctypes.CDLL(None)
    libc.mallopt(_ARENA_MAX, 1)
    attributes = ctypes.create_string_buffer(256)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_THREAD_STACK))
    libc.pthread_setattr_default_np(attributes)


def _import_without_fork_hooks(names):  # type: ignore[no-untyped-def]
    """Import the modules without the fork hooks of ``threading`` and ``random``.

    The hooks take a tenth of a run's time in every child. That of ``threading`` cleans up a list of threads, of which
    the server has one. That of ``random`` draws a new seed; a fixed seed is used instead, because a program must get
    the same verdict in every run.
    """
    register = os.register_at_fork
    os.register_at_fork = lambda **_: None  # type: ignore[assignment]
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        os.register_at_fork = register  # type: ignore[assignment]
    sys.modules["random"].seed(0)


def make_ruleset(inside, readable, scratch=None):  # type: ignore[no-untyped-def]
    """Return the descriptor of the Landlock ruleset.

    Args:
        inside: The modules of this folder by name.
        readable: Paths that may be read.
        scratch: Folder for temporary files, None if there is none.

    Raises:
        OSError: If the kernel or the machine is not supported.
    """
    if inside["landlock"].abi() == 0:
        raise OSError("the kernel has no Landlock (available since Linux 5.13), or it is disabled")
    if not inside["seccomp"].supported():
        raise OSError(f"the system call filter does not support the machine {os.uname().machine!r}")
    writable = (Path(os.devnull), scratch) if scratch else (Path(os.devnull),)
    ruleset = inside["landlock"].make_ruleset(readable.trees, writable)
    return fcntl.fcntl(ruleset, fcntl.F_DUPFD_CLOEXEC, 100)  # above the descriptors that children use


def load_package():  # type: ignore[no-untyped-def]
    """Return the modules of this folder by name. The worker of ``mathematics.grader.symbolic`` uses them as well."""
    folder = Path(__file__).parent
    spec = importlib.util.spec_from_file_location(
        "marft_inside", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["marft_inside"] = module
    spec.loader.exec_module(module)
    names = ["cgroup", "confinement", "landlock", "namespaces", "program", "readable_paths"]
    names += ["seccomp", "semaphores", "server"]
    return {name: importlib.import_module(f"marft_inside.{name}") for name in names}


if __name__ == "__main__":
    main()
