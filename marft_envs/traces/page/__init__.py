"""A trace as a web page: one file that needs no network, in which episodes are searched and read.

The template and its parts are files beside this module; the report of a comparison includes the same parts.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marft_envs.traces.recorder import Trace

FOLDER = Path(__file__).parent
EVERY_ARGUMENT = 200  # characters of the environment's arguments in the heading


def trace_page(trace: Trace, name: str) -> str:
    """Return the page of a trace.

    Args:
        trace: The trace.
        name: Its name, for the heading.
    """
    header = trace.header
    arguments = json.dumps(header["arguments"], ensure_ascii=False)
    shown = arguments if len(arguments) <= EVERY_ARGUMENT else arguments[:EVERY_ARGUMENT] + " ..."
    notes = "".join(f"; {key} {value}" for key, value in header.get("notes", {}).items() if value != "")
    about = f"{len(trace.episodes)} episodes of {header['environment']}, arguments {shown}{notes}"
    group = {"task": header["environment"], "header": header, "episodes": trace.episodes}
    values = {"title": html.escape(f"Episodes of {name}"), "about": html.escape(about), "episodes": packed([group])}
    return filled((FOLDER / "trace.html").read_text(encoding="utf-8"), values)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its parts and values.

    Args:
        template: HTML with ``/* include FILE */`` for a file of this folder and ``<!-- NAME -->`` for a value.
        values: HTML by name.
    """
    whole = re.sub(r"/\* include ([\w.]+) \*/", lambda found: (FOLDER / found[1]).read_text(encoding="utf-8"), template)
    return re.sub(r"<!-- (\w+) -->", lambda found: values[found[1]], whole)


def packed(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return the data of the episode browser as gzip in base64, the same for the same data."""
    return base64.b64encode(gzip.compress(json.dumps(groups).encode(), mtime=0)).decode()
