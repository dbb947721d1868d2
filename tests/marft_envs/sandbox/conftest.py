"""Programs that try to cheat run in the sandbox under test, and this whole process in a private mount namespace."""

import ctypes
import os

import pytest

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


@pytest.fixture(scope="session", autouse=True)
def private_mount_namespace():
    """As root leave the machine's mounts for good; an ordinary user cannot harm them anyway."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        pytest.skip(f"no private mount namespace for programs that cheat: {os.strerror(ctypes.get_errno())}")
