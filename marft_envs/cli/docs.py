"""Doc pages: the docstring of each versioned module, as docs/environments/<name>.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from marft_envs.registry import environment_module
from marft_envs.registry.versioned_names import without_module

FOLDER = Path("docs") / "environments"


def page(name: str) -> str:
    """The page of an environment as Markdown."""
    return f"# {without_module(name)}\n\n{inspect.cleandoc(environment_module(name).__doc__ or '').strip()}\n"


def summary(name: str) -> str:
    """The first line of an environment's page."""
    return page(name).splitlines()[2]


def write(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Write the pages of ``names`` into ``folder``; -> the files."""
    pages = {folder / f"{without_module(name)}.md": page(name) for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def outdated(names: tuple[str, ...], folder: Path) -> list[str]:
    """What is wrong with the pages in ``folder``, a line each: missing, out of date, or of another one."""
    pages = {without_module(name): page(name) for name in names}
    found = {path.stem: path for path in folder.glob("*_v*.md")}
    faults = [f"{folder / name}.md: missing" for name in pages if name not in found]
    for name, path in sorted(found.items()):
        if name not in pages:
            faults.append(f"{path}: no page of {', '.join(pages)}")
        elif path.read_text(encoding="utf-8") != pages[name]:
            faults.append(f"{path}: not the docstring of {name}")
    return faults
