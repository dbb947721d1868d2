"""Turn: the record of one turn of an episode."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class Turn(NamedTuple):
    """One turn of an episode.

    Attributes:
        round: The number of the round, from 0.
        agent: The agent that acted.
        text: The whole message.
        kind: "say" for an action that other agents may see; "call" for a reply that calls a tool, and "result" for what
            the tool returned, which only the agent itself sees, during its turn; "feedback" for the task's feedback on
            the agent's message after a round, which is in the game's ``feedback`` and not in its transcript.
    """

    round: int
    agent: str
    text: str
    kind: str = "say"


new_turn: Callable[[tuple[int, str, str, str]], Turn] = partial(tuple.__new__, Turn)  # type: ignore[arg-type]
"""``Turn(*values)`` in less than half the time, for the one call that every step makes."""


def has_word(text: str, word: str) -> bool:
    """Return whether ``word`` occurs in ``text`` without a letter, digit or underscore next to it."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
