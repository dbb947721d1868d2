"""Run a command where namespaces and mounts are refused, as in a default container: ``python THIS command ...``."""

import ctypes
import errno
import os
import struct
import sys

REFUSED = {"x86_64": (272, 308, 165, 155), "aarch64": (97, 268, 40, 41)}[
    os.uname().machine
]  # unshare setns mount pivot
STEPS = [(0x20, 0, 0, 0)]
for number in REFUSED:
    STEPS += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
STEPS.append((0x06, 0, 0, 0x7FFF0000))

program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in STEPS))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, struct.pack("HxxxxxxP", len(STEPS), ctypes.addressof(program)), 0, 0):
    sys.exit("no filter")
os.execvp(sys.argv[1], sys.argv[1:])
