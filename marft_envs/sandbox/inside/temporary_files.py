"""Removal of the files that a program has left in its folder for temporary files."""

from __future__ import annotations

import os
from pathlib import Path


def empty(folder: Path) -> None:
    """Delete everything below the folder. No process may write to it at the same time."""
    if not os.listdir(folder):  # noqa: PTH208 - one system call less, before every run
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _empty(descriptor)
    finally:
        os.close(descriptor)


def _empty(folder: int) -> None:
    """Delete by descriptor: the path of a deeply nested folder can be longer than the kernel accepts."""
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            try:
                _empty(inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)
