"""The program in a reply: the last complete fenced code block, of Python or of no named language."""

from __future__ import annotations

import re
import textwrap

_MOST_CHARS = 200_000
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+.#-]*)[^\n]*$", re.M)
_PYTHON = ("", "python", "python3", "py", "py3")
_THOUGHT_ENDS = "</think>"


def extract_program(reply: str) -> str | None:
    """The program of a reply, None where there is no complete block.

    What stands before ``</think>`` is no answer. A block in another language is passed over, and so is one that was
    never closed: the reply was cut, and half a program is none. Only the last 200,000 characters are read.
    """
    text = reply[-_MOST_CHARS:].rpartition(_THOUGHT_ENDS)[2].replace("\r\n", "\n")
    found = None
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            if opened[2].lower() in _PYTHON:
                found = text[opened.end() + 1 : fence.start()]
            opened = None
    return None if found is None or not found.strip() else textwrap.dedent(found)


def fenced(program: str) -> str:
    """A reply that holds the program."""
    return f"```python\n{program.rstrip()}\n```"
