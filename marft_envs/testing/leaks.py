"""Whether the texts of problems give their golds away."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from marft_envs.task import Problem
from marft_envs.testing.playing import plain, texts

_ITEMS, _CHARS = 10, 8
"""How many problems must agree on the place of the gold, and how many characters beside it are that place."""


def gold_in_text(problems: Sequence[Problem]) -> str:
    """How the texts that agents read give the gold away, as a half sentence; "" where they do not.

    They do where a rule that solves nothing finds every gold: the gold stands behind, or before, the same eight
    characters in all problems, as in "The answer is 42." By chance a short gold stands in many texts, and the choices
    of a question hold its gold, but at no such place. Of a gold of several texts (tests, say) all are looked for
    anywhere. Fewer than ten problems, or one gold for all of them, tell nothing.
    """
    if len(problems) < _ITEMS or len({repr(plain(problem.gold)) for problem in problems}) < 2:
        return ""
    first = problems[0].gold
    if isinstance(first, (Mapping, list, tuple)):
        return f"every problem's text holds all of its gold, {first!r:.60} in the first" * all(
            map(_is_written, problems)
        )
    places = set.intersection(*map(_places, problems))
    return f"every problem's text holds its gold {max(places)}, {str(first)!r:.60} in the first" if places else ""


def _places(problem: Problem) -> set[str]:
    """Where the gold stands, as a word of its own, in what agents read: behind and before which characters."""
    found, gold = set(), str(problem.gold).strip()
    for text in _read_by_agents(problem) if gold else ():
        for match in re.finditer(rf"(?<!\w){re.escape(gold)}(?!\w)", text):
            before, after = text[: match.start()], text[match.end() :]
            found.add(f"behind {before[-_CHARS:]!r}" if before else "at the beginning")
            found.add(f"before {after[:_CHARS]!r}" if after else "at the end")
    return found


def _is_written(problem: Problem) -> bool:
    """Whether all texts of a gold that cannot be there by chance (over three characters) stand in what agents read."""
    shown = "\n".join(_read_by_agents(problem))
    golds = [gold for gold in texts(plain(problem.gold)) if len(gold) > 3]
    return bool(golds) and all(gold in shown for gold in golds)


def _read_by_agents(problem: Problem) -> list[str]:
    return texts([problem.prompt, dict(problem.private)])
