"""Detection of problems whose text contains their gold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from marft_envs.task import Problem
from marft_envs.testing.episodes import strings_in, to_plain

MIN_PROBLEMS = 10
"""Fewer problems give no evidence that their text contains the gold on purpose."""
_CONTEXT_CHARS = 8
"""A gold is in the same position in several strings if this many characters before or after it are equal."""


def gold_in_text(problems: Sequence[Problem]) -> str:
    """Return how the text of the problems contains their gold, as part of a sentence, or "" if it does not.

    The gold counts as leaked if a rule that solves nothing finds it in every problem: in all of them it follows, or
    precedes, the same eight characters, as in "The answer is 42." A gold that occurs by chance, such as a short number
    or one of the choices of a question, is not in the same position everywhere. A gold that consists of several
    strings, such as tests, counts as leaked if all of them occur anywhere in the text of every problem.

    Fewer than ten problems, or problems that all have the same gold, give no evidence: the result is "".
    """
    if len(problems) < MIN_PROBLEMS or len({repr(to_plain(problem.gold)) for problem in problems}) < 2:
        return ""
    first = problems[0].gold
    if isinstance(first, (Mapping, list, tuple)):
        leaked = all(map(_contains_all_strings, problems))
        return f"the text of every problem contains its whole gold, {first!r:.60} in the first" if leaked else ""
    positions = set.intersection(*map(_positions, problems))
    if not positions:
        return ""
    return f"the text of every problem contains its gold {max(positions)}, {str(first)!r:.60} in the first"


def _positions(problem: Problem) -> set[str]:
    """Return the positions of the gold, as a separate word, in the text: following and before which characters."""
    found, gold = set(), str(problem.gold).strip()
    for text in _texts_of_agents(problem) if gold else ():
        for match in re.finditer(rf"(?<!\w){re.escape(gold)}(?!\w)", text):
            before, after = text[: match.start()], text[match.end() :]
            found.add(f"following {before[-_CONTEXT_CHARS:]!r}" if before else "at the beginning")
            found.add(f"before {after[:_CONTEXT_CHARS]!r}" if after else "at the end")
    return found


def _contains_all_strings(problem: Problem) -> bool:
    """Return whether the text contains all strings of the gold that are too long to occur by chance (over 3 chars)."""
    text = "\n".join(_texts_of_agents(problem))
    golds = [gold for gold in strings_in(to_plain(problem.gold)) if len(gold) > 3]
    return bool(golds) and all(gold in text for gold in golds)


def _texts_of_agents(problem: Problem) -> list[str]:
    return strings_in([problem.prompt, dict(problem.private)])
