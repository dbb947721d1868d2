"""``python -m marft_envs docs`` and ``list``: write, check and summarize the doc pages of environments.

The page of an environment, docs/environments/<name>.md, is the docstring of its versioned module, a list of the game's
arguments, and the stored reports of ``validate``.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from marft_envs.cli import validate
from marft_envs.registry import environment_module, names
from marft_envs.registry.doc_pages import game_arguments_section
from marft_envs.registry.versioned_names import without_module

FOLDER = Path("docs") / "environments"


def page(name: str, folder: Path = FOLDER) -> str:
    """Return the page of an environment as Markdown.

    Args:
        name: The name of the environment.
        folder: The folder whose stored validation (``<name>.validation.json``) is shown, if there is one.
    """
    validation = validate.section(folder / f"{without_module(name)}.validation.json")
    docstring = inspect.cleandoc(environment_module(name).__doc__ or "").strip()
    return f"# {without_module(name)}\n\n{docstring}\n\n{game_arguments_section()}\n{validation}"


def environment_list() -> list[str]:
    """Return one line for each environment: its name and the first line of its page."""
    return [f"{name:<12} {page(name).splitlines()[2]}" for name in names()]


def write(environments: tuple[str, ...], folder: Path) -> list[Path]:
    """Write the pages of ``environments`` into ``folder``. Return the paths of the files."""
    pages = {folder / f"{without_module(name)}.md": page(name, folder) for name in environments}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def outdated(environments: tuple[str, ...], folder: Path) -> list[str]:
    """Return one line for each page in ``folder`` that is missing, outdated, or of no environment."""
    pages = {without_module(name): page(name, folder) for name in environments}
    files = {path.stem: path for path in folder.glob("*_v*.md")}
    problems = [f"{folder / name}.md: missing" for name in pages if name not in files]
    for name, path in sorted(files.items()):
        if name not in pages:
            problems.append(f"{path}: not a page of {', '.join(pages)}")
        elif path.read_text(encoding="utf-8") != pages[name]:
            problems.append(f"{path}: differs from the page that the docstrings make")
    return problems


def write_or_check(environments: tuple[str, ...], into: Path | None, *, check: bool) -> int:
    """Write the pages, or with ``check`` compare them. Return the exit code, 1 if a page is outdated.

    Args:
        environments: The names of the environments.
        into: The folder of the pages. None for ``FOLDER``, or to print the pages where that folder does not exist.
        check: Write and print no page, and list those that are outdated.
    """
    folder = FOLDER if into is None else into
    if into is None and not check and not FOLDER.is_dir():
        print("\n".join(map(page, environments)), end="")
        return 0
    if not check:
        print("\n".join(map(str, write(environments, folder))))
        return 0
    problems = outdated(environments, folder)
    if problems:
        print("\n".join([*problems, "To update the pages, run: python -m marft_envs docs"]))
        return 1
    print(f"{len(environments)} pages are up to date")
    return 0
