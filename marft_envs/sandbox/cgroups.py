"""Cgroups (version 2) that limit the memory and the threads of programs, where the host lets this process create them.

Each fork server gets a cgroup of its own, in which its programs run one at a time. The server and this process stay
where they are. ``inside.cgroup`` sets the limits.

A cgroup is created below that of this process, so that the limits of this process hold for its programs as well.
Outside the root of the hierarchy the kernel has no memory limits below a cgroup that itself contains processes ("no
internal processes"), and this module moves no process of its caller. The operator can start the trainer in a cgroup
named ``supervisor``, below one that is delegated to it, as systemd's DelegateSubgroup does. The programs' cgroups are
then created next to ``supervisor``, below the delegated cgroup and its limits.

Each cgroup is locked while its owner lives; the kernel releases the lock however the owner ends. A cgroup without a
lock is what a killed process has left, and is removed when the next one is created.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, https://systemd.io/CGROUP_DELEGATION/
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import secrets
import time
from pathlib import Path, PurePosixPath

SUPERVISOR = "supervisor"
"""Name of a cgroup next to which cgroups are created, instead of below it."""
PREFIX = "marft-sandbox-"
"""Beginning of the name of every cgroup of this module."""
_CONTROLLERS = ("memory", "pids")
_ENABLE = " ".join(f"+{name}" for name in _CONTROLLERS)
_TRIES = 5
_REMOVAL_S, _RETRY_S = 2.0, 0.001
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_log = logging.getLogger(__name__)


class CgroupUnavailable(RuntimeError):
    """This process may not create a cgroup with limits of memory and threads. The message has the reason."""


class Cgroup:
    """A cgroup of this process, empty and without limits.

    Args:
        parent: Folder of the cgroup below which to create it.

    Raises:
        OSError: If that fails.
    """

    def __init__(self, parent: Path) -> None:
        for _ in range(_TRIES):
            self.folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
            self.folder.mkdir()
            try:
                self._lock: int | None = _lock(self.folder)
            except OSError:
                self.folder.rmdir()
                raise
            if self._lock is not None:
                return
        raise OSError(errno.EAGAIN, f"new cgroups below {parent} are removed by another process")

    def exists(self) -> bool:
        """Return whether the cgroup still has a memory limit. The operator may have removed it."""
        return (self.folder / "memory.max").exists()

    def remove(self) -> None:
        """Kill the processes in the cgroup and remove it. Does nothing if it is removed already."""
        if self._lock is not None:
            try:
                _remove(self.folder)
            except OSError as fault:
                _log.warning("the cgroup %s cannot be removed: %s", self.folder, fault)
            self.forget()

    def forget(self) -> None:
        """Close the descriptor, in a forked copy of this process. The cgroup belongs to the original process."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def create() -> Cgroup:
    """Return a new cgroup, and remove those that killed processes have left.

    Raises:
        CgroupUnavailable: If the host does not permit it.
        OSError: If this process has no descriptor or no memory left.
    """
    try:
        parent = _prepared_parent()
        _remove_stale(parent)
        cgroup = Cgroup(parent)
    except OSError as fault:
        if fault.errno in _EXHAUSTED:
            raise
        raise CgroupUnavailable(str(fault)) from fault
    if cgroup.exists():
        return cgroup
    cgroup.remove()
    raise CgroupUnavailable(f"cgroups below {parent} have no memory limit")


def own_folder(membership: str, mounts: str) -> Path:
    """Return the folder of a process's own cgroup in the hierarchy of version 2.

    Args:
        membership: The process's /proc/PID/cgroup.
        mounts: Its /proc/PID/mountinfo.

    Raises:
        CgroupUnavailable: If there is none.
    """
    name = next((line[3:] for line in membership.splitlines() if line.startswith("0::/")), None)
    if name is None or ".." in name.split("/"):
        raise CgroupUnavailable("this process has no cgroup of version 2")
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            root, folder = fields.split()[3:5]
            if PurePosixPath(name).is_relative_to(root):
                return Path(folder, PurePosixPath(name).relative_to(root))
    raise CgroupUnavailable(f"the cgroup {name} is in no mounted hierarchy of version 2")


def _prepared_parent() -> Path:
    """Return the folder below which to create cgroups. Their controllers are enabled."""
    own = own_folder(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    parent = own.parent if own.name == SUPERVISOR else own
    available = (parent / "cgroup.controllers").read_text().split()
    missing = [name for name in _CONTROLLERS if name not in available]
    if missing:
        raise CgroupUnavailable(f"{parent} does not have the controllers {' and '.join(missing)}")
    enabled = (parent / "cgroup.subtree_control").read_text().split()
    if any(name not in enabled for name in _CONTROLLERS):
        try:
            (parent / "cgroup.subtree_control").write_text(_ENABLE)
        except OSError as fault:
            if fault.errno != errno.EBUSY:
                raise
            raise CgroupUnavailable(
                f"{parent} contains processes, so the kernel has no memory limits below it: start this process in a "
                f"cgroup {parent / SUPERVISOR}, and no process in {parent} itself"
            ) from fault
    return parent


def _lock(folder: Path) -> int | None:
    """Return a descriptor that holds the lock, None if another process has the lock or has removed the cgroup."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.exists():
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def _remove_stale(parent: Path) -> None:
    """Remove the cgroups whose owner has ended."""
    for folder in list(parent.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):  # for example another user's
            lock = _lock(folder)
            if lock is not None:
                try:
                    _remove(folder)
                finally:
                    os.close(lock)


def _remove(folder: Path) -> None:
    """Kill the processes in a cgroup and remove it. Raises OSError if that fails."""
    with contextlib.suppress(OSError):  # before Linux 5.14 they end with their server only
        (folder / "cgroup.kill").write_text("1")
    deadline = time.monotonic() + _REMOVAL_S
    while True:
        try:
            return folder.rmdir()
        except FileNotFoundError:
            return None
        except OSError as fault:
            if fault.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)  # a killed process has not ended yet
