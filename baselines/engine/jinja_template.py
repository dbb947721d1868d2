"""Compilation of a chat template: Jinja in a sandbox, with a pinned clock.

transformers gives templates a clock (``strftime_now``) that reads today's date, and replaces functions among a
template's arguments by strings, so that its clock cannot be pinned. The environment here has the same settings,
filters and functions otherwise.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Generation(Extension):
    """Render the body of ``{% generation %}``, with which some templates mark the tokens to train on."""

    tags = {"generation"}  # noqa: RUF012 - the base class declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=64)
def compile_template(source: str, date: str) -> Callable[..., str]:
    """Return the function that renders a chat template.

    Args:
        source: The template.
        date: The date that the template takes for today's, YYYY-MM-DD.

    Returns:
        A function of ``messages``, ``add_generation_prompt`` and the template's other arguments.

    Raises:
        TemplateError: The template is no valid Jinja.
    """
    today = datetime.datetime.fromisoformat(date)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": today.strftime,
        # The name of the month does not depend on the locale.
        "date_string": f"{today.day:02d} {_MONTHS[today.month - 1]} {today.year}",
    }
    return environment.from_string(source).render


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, sort_keys: bool = False) -> str:
    """Return JSON; Jinja's own filter escapes HTML characters."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, sort_keys=sort_keys)
