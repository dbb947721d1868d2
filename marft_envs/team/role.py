"""Role: the instructions, limits and tools of one agent of a team."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marft_envs.arguments import check_integer, did_you_mean, repeated
from marft_envs.team.tools import TOOLS, Tool, describe


@dataclass(frozen=True)
class Role:
    """The instructions, limits and tools of one agent. No other agent sees them, except ``summary``.

    Attributes:
        instructions: The system message, "" for none.
        answers: Whether the agent's message is graded.
        reply_prefix: Words that every message of the agent begins with. The observation contains them, the action
            continues them, and the message consists of both. From an open ``<think>`` on, the words are left out of it.
        max_chars: The largest number of characters of an action. A longer one is truncated, and flagged in ``infos``.
        max_observed_chars: The largest number of characters of a message, or of the problem, that the agent reads. Of
            a longer one it reads the last characters; ``infos`` flags a truncated problem.
        choices: The only strings in the action space. The agent does not read them, so its instructions must name
            them. Another reply is accepted, and flagged in ``infos``.
        tools: The tools that the agent may call, each a ``Tool`` or the name of a ready-made one (``tools.py``).
        max_tool_calls: The largest number of tool calls in one turn.
        summary: The role in a few words for an orchestrator, such as "checks the work".

    Raises:
        TypeError, ValueError: A field is wrong; the message names it.
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
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected a string")
        if not isinstance(self.answers, bool):
            got = type(self.answers).__name__
            raise TypeError(f"Role answers={self.answers!r:.80}: got {got}, expected True or False")
        for name, least in (("max_chars", 1), ("max_observed_chars", 1), ("max_tool_calls", 0)):
            check_integer(f"Role {name}", getattr(self, name), least)
        for name in ("choices", "tools"):
            if isinstance(getattr(self, name), str) or not isinstance(getattr(self, name), Iterable):
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected a list or tuple")
        object.__setattr__(self, "choices", _as_choices(tuple(self.choices), self.max_chars))
        object.__setattr__(self, "tools", tuple(_as_tool(tool) for tool in self.tools))
        names = [tool.name for tool in self.tools]
        if repeated(names):
            raise ValueError(f"Role tools={names}: expected no name twice")

    @property
    def profile(self) -> str:
        """The system message: the instructions, and a description of the tools."""
        return "\n\n".join(part for part in (self.instructions, describe(self.tools) if self.tools else "") if part)


def _as_choices(choices: tuple[Any, ...], max_chars: int) -> tuple[str, ...]:
    """Return ``choices``; an error unless they are different strings of at most ``max_chars`` characters."""
    if not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"Role choices={choices!r:.80}: expected strings")
    if twice := repeated(choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected no choice twice, got {twice}")
    if any(len(choice) > max_chars for choice in choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected at most max_chars={max_chars} characters")
    return choices


def _as_tool(spec: Any) -> Tool:
    """Return a Tool from itself or from the name of a ready-made one."""
    if isinstance(spec, Tool):
        return spec
    if not isinstance(spec, str) or spec not in TOOLS:
        known = f"{', '.join(TOOLS)} or a marft_envs.team.tools.Tool{did_you_mean(spec, tuple(TOOLS))}"
        raise ValueError(f"tool {spec!r}: expected one of {known}")
    return TOOLS[spec]
