r"""Extraction of the answer from a reply, in linear time for every input.

Only the last 20,000 characters after the last ``</think>`` are read. The marks of an answer, highest priority first:

1. The last balanced ``\boxed{...}`` or ``\fbox{...}``. Boxes with nothing but a comma, "and" or "or" between them form
   one list, so ``\boxed{42} \boxed{43}`` answers neither 42 nor 43. If no box is balanced, there is no answer.
2. The last ``<answer>...</answer>``. If it contains one of the next marks, what follows that mark.
3. The last of ``#### ...``, a heading "Answer", "answer is ...", "answer: ..." (or their Chinese forms), up to the end
   of the sentence or line. A comma ends it only before words that are no further part of the answer.

A number without one of these marks is no answer, except with ``grade(..., unmarked="whole")``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TAIL_CHARS = 20_000

_BRACE = re.compile(r"\\{1,2}(?:boxed|fbox)\s{0,4}\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s{1,4}(-?\d[\d.,]*)")
_BOX_WORD = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
_CONNECTOR = re.compile(
    r"(?:[\s$]|\\q?quad\b|\\[,;: ])*+"
    r"(?:(?:,|;|,?\s*(?:and|or)\b|,?\s*\\{1,2}text\{\s*(?:and|or)\s*\})[\s$]*+(?:[A-Za-z]\s*=)?)?"
    r"(?:[\s$]|\\q?quad\b|\\[,;: ])*+(?:[A-Za-z]\s*=[\s$]*)?",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"^[ \t]{0,3}#{1,6}[ \t]*(?:the )?(?:final )?answer[ \t]*:?[ \t]*$"
    r"|####(?:[ \t]*(?:the )?(?:final )?answer\b)?"
    r"|(?<![A-Za-z])answers?(?:\*\*)?[ \t]{0,4}(?:\b(?:is|are|would be)\b|:|=)"
    r"|(?<![A-Za-z])answer(?P<json>[\"'])\s{0,4}:"
    r"|\bfinal result[ \t]{0,4}(?:\bis\b|:|=)"
    r"|答案(?:是|为|：|:)",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_LEAD = re.compile(r"(?:[\s$*:：]|\\[\[(])*")
_END = re.compile(r"[.!?](?=[\s*$)]|\Z)|[。\n]|\\[\])]|,(?=\s+[A-Za-z])|(?<=\s)(?:because|since|so|as)\b")
_LAST_ITEM = r"(?:and|or)\s+(?:\$[^$\n]{1,80}\$|\\\([^\n]{1,80}?\\\)|[^\s,]{1,40})[.!?]?\s*(?:\n|\Z|(?<=[.!?])\s)"
_LIST_GOES_ON = re.compile(
    rf",\s+(?:{_LAST_ITEM}|[A-Za-z](?:_\{{?\w{{1,3}}\}}?)?\s*(?:=|<|>|\\approx|\\[lg]eq?\b))"
    rf"|\\\),?\s+(?:\\\(|(?:and|or)\s+\\\(|{_LAST_ITEM})|\\\),\s*\\\("
)
_WORDS = re.compile(r"[A-Za-z]{1,20}(?:, [A-Za-z]{1,20}){1,20},? (?:and|or) [A-Za-z]{1,20}(?=[.!?]?\s*(?:\n|\Z))")
_JSON_VALUE = re.compile(r"\s*+(?:\"([^\"\n]*+)\"|([^,}\n]*+))")
_ZERO_WIDTH = re.compile("[\u200b-\u200f\u2060\ufeff]")
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
    if not text.isascii():
        text = _ZERO_WIDTH.sub("", text)
    if _BOX_WORD.search(text):
        boxed = last_box(text)
        # A truncated box is a truncated answer: falling back to a weaker mark would grade an intermediate result.
        return (boxed, "") if boxed else ("", "the answer box is empty or its braces are not balanced")
    tagged = _last_tag(text)
    marked = _last_mark(text) if tagged is None else (_last_mark(tagged) or tagged).strip()
    if marked and tagged is None and _is_cut(text, marked):
        return "", "the reply ends within its last answer"
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
    content, end = None, None
    for tag in reversed(list(_TAG.finditer(text))):
        if tag[1]:
            end = tag.start() if end is None else end
        elif end is not None:
            content = text[tag.end() : end]
            break
    return content


def _last_mark(text: str) -> str | None:
    """Return what follows the last textual mark, up to the end of its sentence or line; None without a mark."""
    marks = list(_MARK.finditer(text))
    return _after_mark(text, marks[-1]) if marks else None


def _after_mark(text: str, mark: re.Match[str]) -> str:
    if mark["json"]:
        value = _JSON_VALUE.match(text, mark.end())
        return (value[1] or value[2] or "").strip() if value else ""
    lead = _LEAD.match(text, mark.end())
    assert lead is not None  # the pattern matches the empty string
    candidate = text[lead.end() : _end_of_answer(text, lead.end(), lead.group().count("$") % 2 == 1)].strip()
    # Remove the closing ** of Markdown bold, but keep the ** of 2**5.
    return candidate.rstrip("*") if "*" in lead.group() or _BOLD_END.search(candidate) else candidate


def _is_cut(text: str, answer: str) -> bool:
    """Return whether a reply ends within its last answer, so that "The answer is 60. The answer is 6" is not 6.

    That is known only if the answer before it begins with the same characters and goes on.
    """
    marks = list(_MARK.finditer(text))
    if len(marks) < 2 or not text.rstrip().endswith(answer) or not answer[-1].isalnum():
        return False
    before = _after_mark(text[: marks[-1].start()], marks[-2])
    return len(before) > len(answer) and before.startswith(answer) and before[len(answer)].isalnum()


def _end_of_answer(text: str, start: int, in_dollars: bool) -> int:
    """Return where the answer that starts at ``start`` ends.

    Args:
        text: The reply.
        start: The index of the answer's first character.
        in_dollars: Whether a $ before it opened mathematics, in which commas and full stops belong to the answer.
    """
    if words := _WORDS.match(text, start):
        return words.end()
    at = start
    for stop in _END.finditer(text, start):
        in_dollars ^= text.count("$", at, stop.start()) % 2 == 1
        at = stop.start()
        if in_dollars and stop.group() in (",", "."):
            continue
        if stop.group() in (",", r"\)") and _LIST_GOES_ON.match(text, stop.start()):
            continue
        return stop.start()
    return len(text)
