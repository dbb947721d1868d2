"""Errors that end a run for a reason other than its settings."""

from __future__ import annotations

import errno


class RunError(RuntimeError):
    """A run that cannot continue although its settings are valid: a full disk or memory, a missing tracker, a problem
    that is longer than a prompt may be, a non-finite loss.

    The commands print the message and exit with code 1. Wrong settings raise ValueError, TypeError or
    FileNotFoundError instead, and exit with code 2 (``baselines.command_line``).
    """


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's quota on it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
