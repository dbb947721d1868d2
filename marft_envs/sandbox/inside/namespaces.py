"""Linux namespaces of the server: a network without interfaces, and its own processes and file tree.

Root enters them without a user namespace, so that children can still become another user. Other users need a user
namespace, in which only that user exists. The new root folder is a tmpfs that holds the interpreter's folders, a small
folder for temporary files, and nothing else. Calls that Landlock does not restrict (stat) therefore find no host file,
and an interpreter below a home of mode 0700 stays reachable.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

_MOUNT, _UTS, _IPC, _USER, _PID, _NETWORK = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE, _NOSUID, _NODEV, _NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
_DETACH = 2
_PR_SET_PDEATHSIG = 1
_HOST_NAME = b"sandbox"
_ROOT = Path("/proc")  # the new root is mounted over this folder, which exists everywhere and holds none of ``paths``
_SCRATCH = (Path("/tmp"), Path("/scratch"))  # the second where the interpreter or its packages are below the first

_libc = ctypes.CDLL(None, use_errno=True)


def scratch_folder(paths: Iterable[Path]) -> Path:
    """Return the folder for temporary files: /tmp, unless it holds one of the paths that the new root contains."""
    listed = list(paths)
    return next(folder for folder in _SCRATCH if not any(path.is_relative_to(folder) for path in listed))


def enter(paths: Iterable[Path], hidden: Iterable[Path], devices: Iterable[Path]) -> Path:
    """Move the server into new namespaces, where it continues as process 1 in its folder for temporary files.

    The calling process itself stays outside, waits for the server and then exits.

    Args:
        paths: Files and folders that the new root contains.
        hidden: Folders within ``paths`` that appear empty.
        devices: Devices that the new root contains.

    Returns:
        The folder for temporary files.

    Raises:
        OSError: If the host does not permit it.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = _MOUNT | _UTS | _IPC | _PID | _NETWORK
    if _libc.unshare(flags) != 0:
        _check("unshare", _libc.unshare(flags | _USER))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    _check("sethostname", _libc.sethostname(_HOST_NAME, len(_HOST_NAME)))
    _become_first_process()
    paths = list(paths)
    scratch = scratch_folder(paths)
    _build_root(paths, hidden, devices, scratch)
    return scratch


def _become_first_process() -> None:
    """Fork, because only a child enters the new process namespace; the parent waits for it."""
    child = os.fork()
    if child == 0:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    os.closerange(0, 1 << 16)  # otherwise the control socket would stay open after the server has ended
    os.waitpid(child, 0)
    os._exit(0)


def hide_host_name() -> None:
    """Give this process a host name of its own where that is permitted; otherwise programs see that of the host."""
    if _libc.unshare(_UTS) == 0:
        _libc.sethostname(_HOST_NAME, len(_HOST_NAME))


def _build_root(paths: Iterable[Path], hidden: Iterable[Path], devices: Iterable[Path], scratch: Path) -> None:
    root = _ROOT
    _mount("tmpfs", str(root), "tmpfs", _NOSUID | _NODEV, "mode=0755,size=4m")
    for path in paths:
        if path.exists():
            _bind(path, root)
    for path in hidden:
        if path.is_dir():
            _mount("tmpfs", f"{root}{path}", "tmpfs", _NOSUID | _NODEV, "mode=0755,size=4k")
    for device in devices:
        _bind(device, root)
    Path(f"{root}{scratch}").mkdir()
    # A program's files are few and small, because their memory does not count as the program's.
    _mount("tmpfs", f"{root}{scratch}", "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=1777,size=16m,nr_inodes=256")
    for name, link in (
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("shm", scratch),
    ):
        (root / "dev" / name).symlink_to(link)
    (root / "proc").mkdir()
    _mount("proc", f"{root}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    (root / "old").mkdir()
    _check("pivot_root", _libc.pivot_root(os.fsencode(root), os.fsencode(root / "old")))
    os.chdir(scratch)
    _check("umount", _libc.umount2(b"/old", _DETACH))
    Path("/old").rmdir()


def _bind(path: Path, root: Path) -> None:
    target = Path(f"{root}{path}")
    if path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(str(path.resolve()), str(target), "", _BIND | _RECURSIVE)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = [os.fsencode(name) if name else None for name in (source, target, kind)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) if data else None)
    _check(f"mount {target}", result)


def _check(operation: str, result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{operation}: {os.strerror(ctypes.get_errno())}")
