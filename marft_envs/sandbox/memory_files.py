"""Files in memory that are handed to a child: sealed ones to read, fresh ones to write."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

_ADD_SEALS, _SEALS = 1033, 0x1 | 0x2 | 0x4 | 0x8  # F_ADD_SEALS; no seals, no shrinking, growing or writing any more


class Files(contextlib.ExitStack):
    """Descriptors that are closed together."""

    def sealed(self, data: bytes) -> int:
        """A file with ``data`` that nobody can change. Its memory is bounded, whatever the child tries."""
        descriptor = self.own(os.memfd_create("in", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, _ADD_SEALS, _SEALS)
        return descriptor

    def empty(self) -> int:
        """A file for output: RLIMIT_FSIZE bounds it, nobody has to read it while the child runs, and it is complete
        when the child is dead."""
        return self.own(os.memfd_create("out", os.MFD_CLOEXEC))

    def own(self, descriptor: int) -> int:
        """Close it with the others."""
        self.callback(os.close, descriptor)
        return descriptor


def read(descriptor: int, most: int, *, tail: bool = False) -> bytes:
    """At most so many bytes of a file, from its beginning or, with tail, its end."""
    size = os.fstat(descriptor).st_size
    at = max(0, size - most) if tail else 0
    return b"".join(_parts(descriptor, at, min(size, at + most)))


def _parts(descriptor: int, at: int, end: int) -> Iterator[bytes]:
    while at < end and (part := os.pread(descriptor, end - at, at)):
        at += len(part)
        yield part
