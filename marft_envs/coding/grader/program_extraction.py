"""Extraction of the program from a reply: the last complete fenced code block of Python, or else without a language."""

from __future__ import annotations

import re
import textwrap

_MAX_CHARS = 200_000
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+.#-]*)[^\n]*$", re.M)
_PYTHON = ("python", "python3", "py", "py3")
_END_OF_THOUGHT = "</think>"


def extract_program(reply: str) -> str | None:
    """Return the program of a reply.

    Text before ``</think>`` is ignored, and so are blocks in another language. A block without a language counts only
    if no block is labelled as Python: behind a program it is a sample of the output, or a summary. A block that is
    never closed is ignored too: the reply was truncated, and half a program is not an answer.

    Args:
        reply: The whole reply; only its last 200,000 characters are read.

    Returns:
        The source, with common indentation removed, or None if there is no complete block.
    """
    text = reply[-_MAX_CHARS:].rpartition(_END_OF_THOUGHT)[2].replace("\r\n", "\n")
    last: dict[bool, str] = {}  # by whether the block is labelled as Python
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        # A fence closes a block if it is at least as long as the opening one and names no language (CommonMark).
        elif fence[1].startswith(opening[1]) and not fence[2]:
            if not opening[2] or opening[2].lower() in _PYTHON:
                last[bool(opening[2])] = text[opening.end() + 1 : fence.start()]
            opening = None
    program = last.get(True, last.get(False))
    return None if program is None or not program.strip() else textwrap.dedent(program)


def fenced(program: str) -> str:
    """Return a reply that contains the program in a fenced code block."""
    return f"```python\n{program.rstrip()}\n```"
