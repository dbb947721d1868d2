"""In-memory files that are passed to a child: sealed files for its input, empty files for its output."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

# F_ADD_SEALS with F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE
_ADD_SEALS, _SEALS = 1033, 0x1 | 0x2 | 0x4 | 0x8


class MemoryFiles(contextlib.ExitStack):
    """In-memory files whose descriptors are closed together at the end of the ``with`` block."""

    def sealed(self, data: bytes) -> int:
        """Return the descriptor of a file that contains ``data`` and that no process can modify or enlarge."""
        descriptor = self._close_at_exit(os.memfd_create("in", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, _ADD_SEALS, _SEALS)
        return descriptor

    def empty(self) -> int:
        """Return the descriptor of an empty file for output.

        Unlike a pipe it needs no reader while the child runs, and it is complete when the child has ended.
        RLIMIT_FSIZE limits its size.
        """
        return self._close_at_exit(os.memfd_create("out", os.MFD_CLOEXEC))

    def _close_at_exit(self, descriptor: int) -> int:
        self.callback(os.close, descriptor)
        return descriptor


def read_file(descriptor: int, max_bytes: int, *, tail: bool = False) -> bytes:
    """Return at most ``max_bytes`` of a file, from its beginning or, with ``tail``, from its end."""
    size = os.fstat(descriptor).st_size
    start = max(0, size - max_bytes) if tail else 0
    return b"".join(_blocks(descriptor, start, min(size, start + max_bytes)))


def _blocks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (block := os.pread(descriptor, end - start, start)):
        start += len(block)
        yield block
