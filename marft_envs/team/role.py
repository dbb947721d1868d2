"""Role: what one agent of a team is told, may say and may call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marft_envs.arguments import check_integer, did_you_mean, repeated
from marft_envs.team.tools import TOOLS, Tool, describe


@dataclass(frozen=True)
class Role:
    """What makes one agent that agent. Its profile is private: no other agent sees it.

    instructions: the system prompt, "" for none. answers: whether its text is graded. reply_prefix: words that its
    reply begins with; the observation names them, the action continues them, and its message holds both.
    max_chars: a longer reply is clipped and flagged in ``infos``. max_observed_chars: longer messages, the problem too,
    reach it cut to their newest characters; ``infos`` flags a cut problem. choices: the only replies in its action
    space; another one is taken, and flagged in ``infos``. tools: what it may call (see ``tools.py``), at most
    max_tool_calls times in a turn. summary: what an orchestrator is told of it, in a few words: "checks the work".
    """

    instructions: str = ""
    answers: bool = False
    reply_prefix: str = ""
    max_chars: int = 8_000
    max_observed_chars: int = 100_000
    choices: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    max_tool_calls: int = 4
    summary: str = ""

    def __post_init__(self) -> None:
        for name in ("instructions", "summary", "reply_prefix"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected a text")
        if not isinstance(self.answers, bool):
            got = type(self.answers).__name__
            raise TypeError(f"Role answers={self.answers!r:.80}: got {got}, expected True or False")
        for name, least in (("max_chars", 1), ("max_observed_chars", 1), ("max_tool_calls", 0)):
            check_integer(f"Role {name}", getattr(self, name), least)
        for name in ("choices", "tools"):
            if isinstance(getattr(self, name), str) or not isinstance(getattr(self, name), Iterable):
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected several in a list or tuple")
        object.__setattr__(self, "choices", _as_choices(tuple(self.choices), self.max_chars))
        object.__setattr__(self, "tools", tuple(_as_tool(tool) for tool in self.tools))
        names = [tool.name for tool in self.tools]
        if repeated(names):
            raise ValueError(f"Role tools={names}: expected no name twice")

    @property
    def profile(self) -> str:
        """The system prompt that the agent reads: instructions, and how to call its tools."""
        return "\n\n".join(part for part in (self.instructions, describe(self.tools) if self.tools else "") if part)


def _as_choices(choices: tuple[Any, ...], max_chars: int) -> tuple[str, ...]:
    """Replies that can be told apart and said in full."""
    if not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"Role choices={choices!r:.80}: expected texts")
    if twice := repeated(choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected none twice, got {twice}")
    if any(len(choice) > max_chars for choice in choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected at most max_chars={max_chars} characters")
    return choices


def _as_tool(spec: Any) -> Tool:
    if isinstance(spec, Tool):
        return spec
    if not isinstance(spec, str) or spec not in TOOLS:
        known = f"{', '.join(TOOLS)} or a marft_envs.team.tools.Tool{did_you_mean(spec, tuple(TOOLS))}"
        raise ValueError(f"tool {spec!r}: expected one of {known}")
    return TOOLS[spec]
