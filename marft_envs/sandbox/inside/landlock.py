"""Landlock rules: which files a process may read, and where it may write. Uses three system calls through ctypes.

The package ``landlock`` on PyPI has development versions only (1.0.0.dev5 of 2025-05) and lacks the scopes of ABI 6.
Landlock does not restrict stat, chdir and chmod. The seccomp filter refuses chmod and every other call that changes the
attributes of a file, and the level "namespace" hides the host's files from stat.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # the system call numbers, the same on every machine
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_CHANGE_FOLDER = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 13 | 1 << 14
"""Remove folders and files, make folders and regular files, move between folders, truncate."""
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""ABI -> all file rights of that ABI. A right that no rule grants is denied. Bit 13: refer, 14: truncate, 15: ioctl."""
_TCP = 0b11  # since ABI 4: bind and connect
_SCOPES = 0b11  # since ABI 6: no abstract unix socket and no signal outside the process's own domain

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the Landlock ABI version of the kernel, 0 if it has no Landlock or has it disabled."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


def make_ruleset(trees: Iterable[Path], writable: Iterable[Path] = ()) -> int:
    """Return the descriptor of a ruleset.

    Args:
        trees: Files and folders that may be read.
        writable: Devices that may be written, and folders in which regular files and folders may also be created and
            deleted.
    """
    version = abi()
    rights = _FILE_RIGHTS[min(version, 5)]
    attributes = struct.pack("QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    # An older kernel rejects a struct that is longer than the one it knows.
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE, attributes, size, 0)
    for path in trees:
        _allow(ruleset, path, _READ_FILE | _READ_DIR)
    for path in writable:
        _allow(ruleset, path, (_READ_FILE | _READ_DIR | _WRITE_FILE | _CHANGE_FOLDER) & rights)
    return ruleset


def restrict(ruleset: int) -> None:
    """Restrict the calling process to the ruleset, permanently. Requires no_new_privs."""
    _call(_RESTRICT, ruleset, 0)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # the path does not exist on this host
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _READ_FILE | _WRITE_FILE
        rule = struct.pack("=Qi", rights, descriptor)
        _call(_ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return result
