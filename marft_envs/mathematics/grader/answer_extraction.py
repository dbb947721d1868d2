r"""Extraction of the answer from a reply, in linear time for every input.

Only the last 20,000 characters after the last ``</think>`` are read. The marks of an answer, highest priority first:

1. The last balanced ``\boxed{...}`` or ``\fbox{...}``. Boxes with nothing but a comma, "and" or "or" between them form
   one list, so ``\boxed{42} \boxed{43}`` answers neither 42 nor 43. If no box is balanced, there is no answer.
2. The last ``<answer>...</answer>``.
3. The last of ``#### ...``, "answer is ...", "answer: ..." (or their Chinese forms), up to the end of the sentence or
   line.

A number without one of these marks is no answer, except with ``grade(..., unmarked="whole")``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TAIL_CHARS = 20_000

_BRACE = re.compile(r"\\(?:boxed|fbox)\s{0,4}\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s{1,4}(-?\d[\d.,]*)")
_BOX_WORD = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
_CONNECTOR = re.compile(
    r"(?:[\s$]|\\q?quad\b|\\[,;: ])*+"
    r"(?:(?:,|;|,?\s*(?:and|or)\b|,?\s*\\text\{\s*(?:and|or)\s*\})[\s$]*+(?:[A-Za-z]\s*=)?)?"
    r"(?:[\s$]|\\q?quad\b|\\[,;: ])*+(?:[A-Za-z]\s*=[\s$]*)?",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"####(?:[ \t]*(?:the )?(?:final )?answer\b)?"
    r"|\banswer(?:\*\*)?[ \t]{0,4}(?:\bis\b|:|=)"
    r"|答案(?:是|为|：|:)",
    re.IGNORECASE,
)
_LEAD = re.compile(r"(?:[\s$*:：]|\\\[|\\\()*")
_END = re.compile(r"[.!?](?=[\s*$)]|\Z)|[。\n]|\\\]|\\\)|,(?=\s+[A-Za-z])|(?<=\s)(?:because|since|so|as)\b")
_BOLD_END = re.compile(r"[^\s*]\*\*\Z")


def final_part(reply: str) -> str:
    """Return the part of a reply that is read: the last TAIL_CHARS characters after the last ``</think>``."""
    return reply.rpartition("</think>")[2][-TAIL_CHARS:]


def extract(reply: str) -> tuple[str, str]:
    """Return (answer, "") or ("", the reason why the reply has no answer).

    Raises:
        TypeError: ``reply`` is not a string.
    """
    if not isinstance(reply, str):
        raise TypeError(f"reply: got {type(reply).__name__}, expected str")
    text = final_part(reply)
    if _BOX_WORD.search(text):
        boxed = last_box(text)
        # A truncated box is a truncated answer: falling back to a weaker mark would grade an intermediate result.
        return (boxed, "") if boxed else ("", "the answer box is empty or its braces are not balanced")
    tagged = _last_tag(text)
    marked = _last_mark(text) if tagged is None else tagged.strip()
    if marked is None:
        return "", "the reply marks no answer"
    return (marked, "") if marked else ("", "nothing follows the answer mark")


def last_box(text: str) -> str | None:
    r"""Return the content of the last balanced outermost box, joined with adjacent boxes; None if there is no box.

    ``\boxed 42``, without braces, counts only if no box has balanced braces.
    """
    boxes = _boxes(text)
    if not boxes:
        bare = _BARE_BOX.findall(text)
        return bare[-1].rstrip(".,") if bare else None
    parts = [text[boxes[-1].content : boxes[-1].end - 1]]
    # Walk backwards from the last box for as long as only a connector separates a box from the next one.
    for left, right in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        if not _CONNECTOR.fullmatch(text, left.end, right.start):
            break
        parts.append(text[left.content : left.end - 1])
    distinct = dict.fromkeys(_BOX_WORD.sub("", part).strip() for part in reversed(parts))
    return ", ".join(distinct)


class _Box(NamedTuple):
    """The position of a box in a string.

    Attributes:
        start: The index of the backslash.
        content: The index of the content's first character.
        end: The index after the closing brace.
    """

    start: int
    content: int
    end: int


def _boxes(text: str) -> list[_Box]:
    """Return the outermost balanced boxes, found in one pass with a stack of open braces."""
    open_braces: list[tuple[int, int]] = []  # (start of the box or -1, start of the content)
    boxes: list[_Box] = []
    for token in _BRACE.finditer(text):
        word = token.group()
        if word.endswith("{") and word != r"\{":
            open_braces.append((token.start() if len(word) > 1 else -1, token.end()))
        elif word == "}" and open_braces:
            start, content = open_braces.pop()
            if start >= 0:
                while boxes and boxes[-1].start > start:  # boxes inside this one
                    boxes.pop()
                boxes.append(_Box(start, content, token.end()))
    return boxes


def _last_tag(text: str) -> str | None:
    """Return the content of the last ``<answer>...</answer>``, or None."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end] if end >= 0 and start >= 0 else None


def _last_mark(text: str) -> str | None:
    """Return what follows the last textual mark, up to the end of its sentence or line; None without a mark."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    lead = _LEAD.match(text, marks[-1].end())
    assert lead is not None  # the pattern matches the empty string
    stop = _END.search(text, lead.end())
    candidate = text[lead.end() : stop.start() if stop else len(text)].strip()
    # Remove the closing ** of Markdown bold, but keep the ** of 2**5.
    return candidate.rstrip("*") if "*" in lead.group() or _BOLD_END.search(candidate) else candidate
