"""Landlock: which files may be read. Three system calls through ctypes.

``landlock`` on PyPI has had development versions only (1.0.0.dev5 of 2025-05), without the scopes of ABI 6.
Source: docs.kernel.org/userspace-api/landlock.html. Landlock says nothing of stat, chdir and chmod: the filter of
system calls denies what changes anything, the level "namespace" hides the rest.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # the same on every machine
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""ABI -> every right there is: what is not given by a rule is denied. 14th: refer, 15th: truncate, 16th: ioctl."""
_TCP = 0b11  # ABI 4: bind and connect
_SCOPES = 0b11  # ABI 6: abstract unix sockets and signals stay inside

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version that the kernel speaks, 0 where it has none or it is switched off."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


def make_ruleset(trees: Iterable[Path]) -> int:
    """A ruleset's descriptor: everything is denied but reading the files and folders of ``trees``."""
    version = abi()
    rights = _FILE_RIGHTS[min(version, 5)]
    attributes = struct.pack("QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE, attributes, size, 0)
    for path in trees:
        _allow(ruleset, path)
    return ruleset


def restrict(ruleset: int) -> None:
    """Put the calling process under the ruleset, for good. Needs no_new_privs."""
    _call(_RESTRICT, ruleset, 0)


def _allow(ruleset: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this host: then it cannot be read either
    try:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = struct.pack("=Qi", _READ_FILE | (_READ_DIR if folder else 0), descriptor)
        _call(_ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return result
