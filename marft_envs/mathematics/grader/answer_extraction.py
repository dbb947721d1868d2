r"""Where in a reply the answer stands: linear time, whatever the reply holds.

Only the last 20,000 characters after the last ``</think>`` are read. In this order of rank:

1. the last balanced ``\boxed{...}`` or ``\fbox{...}``; boxes with nothing, a comma, "and" or "or" between are one
   list, so that ``\boxed{42} \boxed{43}`` answers neither 42 nor 43. Boxes of which none is balanced are no answer.
2. the last ``<answer>...</answer>``.
3. the last of ``#### ...``, "answer is ...", "answer: ..." (also in Chinese), up to the end of the sentence or line.

A number without any of these marks is not an answer; ``grade(..., unmarked="whole")`` is the exception.
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
    """What is read of a reply: the last TAIL_CHARS characters after the last ``</think>``."""
    return reply.rpartition("</think>")[2][-TAIL_CHARS:]


def extract(reply: str) -> tuple[str, str]:
    """(candidate, ""), or ("", why there is none). A reply that is not a ``str`` is a TypeError."""
    if not isinstance(reply, str):
        raise TypeError(f"reply: got {type(reply).__name__}, expected str")
    text = final_part(reply)
    if _BOX_WORD.search(text):
        boxed = last_box(text)
        return (boxed, "") if boxed else ("", "a box that is empty or whose braces are not balanced")
    tagged = _last_tag(text)
    marked = _last_mark(text) if tagged is None else tagged.strip()
    if marked is None:
        return "", "no marked answer"
    return (marked, "") if marked else ("", "an answer mark with nothing after it")


def last_box(text: str) -> str | None:
    r"""The content of the last balanced outermost box of ``text``, joined with its neighbours; None without one."""
    boxes = _boxes(text)
    if not boxes:
        bare = _BARE_BOX.findall(text)
        return bare[-1].rstrip(".,") if bare else None
    parts = [text[boxes[-1].content : boxes[-1].end - 1]]
    for left, right in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        if not _CONNECTOR.fullmatch(text, left.end, right.start):
            break
        parts.append(text[left.content : left.end - 1])
    distinct = dict.fromkeys(_BOX_WORD.sub("", part).strip() for part in reversed(parts))
    return ", ".join(distinct)


class _Box(NamedTuple):
    """Positions in the text: of the backslash, of the content, and one past the closing brace."""

    start: int
    content: int
    end: int


def _boxes(text: str) -> list[_Box]:
    """Every balanced box that lies in no other balanced box, in one pass with a stack of open braces."""
    open_braces: list[tuple[int, int]] = []  # (start of the box or -1, start of the content)
    boxes: list[_Box] = []
    for token in _BRACE.finditer(text):
        word = token.group()
        if word.endswith("{") and word != r"\{":
            open_braces.append((token.start() if len(word) > 1 else -1, token.end()))
        elif word == "}" and open_braces:
            start, content = open_braces.pop()
            if start >= 0:
                while boxes and boxes[-1].start > start:
                    boxes.pop()
                boxes.append(_Box(start, content, token.end()))
    return boxes


def _last_tag(text: str) -> str | None:
    """The content of the last ``<answer>...</answer>``."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end] if end >= 0 and start >= 0 else None


def _last_mark(text: str) -> str | None:
    """What follows the last textual mark, up to the end of its sentence or line; "" where nothing follows."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    lead = _LEAD.match(text, marks[-1].end())
    assert lead is not None  # the pattern matches the empty string
    stop = _END.search(text, lead.end())
    candidate = text[lead.end() : stop.start() if stop else len(text)].strip()
    return candidate.rstrip("*") if "*" in lead.group() or _BOLD_END.search(candidate) else candidate
