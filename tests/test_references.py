"""Citations of the reference pages are alive: pages, sections, and the files and names in their tables exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [REFERENCE / name for name in ("algorithms.md", "critic.md", "determinism.md")]
SOURCES = sorted(
    path
    for folder in ("marft_envs", "baselines", "benchmarks", "tests", "examples", "docs")
    for suffix in ("*.py", "*.md")
    for path in (ROOT / folder).rglob(suffix)
)
CITATION = re.compile(r"(docs/[\w/-]+\.md)(?:, sections? (\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*))?")
CODE = re.compile(r"`([\w/]+\.py)`((?:[:,] `[A-Za-z_][\w.]*`)*)")


def text_of(path):
    """The file as one line, so that a citation may be wrapped (also behind a comment sign)."""
    return re.sub(r"\s*\n\s*(?:# )?", " ", path.read_text(encoding="utf-8"))


@cache
def sections(page):
    return set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", (ROOT / page).read_text(encoding="utf-8"), re.M))


def citations():
    for path in SOURCES:
        for page, numbers in CITATION.findall(text_of(path)):
            if path.is_relative_to(ROOT / "tests") and not page.startswith("docs/reference/"):
                continue  # tests write pages of their own
            yield path.relative_to(ROOT).as_posix(), page, re.findall(r"\d+(?:\.\d+)?", numbers)


def test_cited_pages_and_sections_exist():
    found = list(citations())
    assert sum(page == "docs/reference/algorithms.md" for _, page, _ in found) > 20
    for where, page, numbers in found:
        assert (ROOT / page).is_file(), f"{where} cites {page}, which does not exist"
        for number in numbers:
            assert number in sections(page), f"{where} cites section {number} of {page}, which does not exist"


@pytest.mark.parametrize("name", ["algorithms.md", "critic.md", "comparison.md"])
def test_no_page_is_cited_without_its_path(name):
    """``algorithms.md 2.2`` alone does not tell a reader where the page is. Links between the pages are relative."""
    for path in SOURCES:
        if path.parent != REFERENCE and path != Path(__file__):
            bare = re.findall(rf"(?<![\w/]){name}", path.read_text(encoding="utf-8"))
            assert not bare or path.suffix == ".md", f"{path.relative_to(ROOT)} cites {name} without its path"


def test_nothing_outside_the_repository_is_cited():
    for path in SOURCES:
        if path.suffix == ".md" or path.is_relative_to(ROOT / "baselines") or path.is_relative_to(ROOT / "marft_envs"):
            assert "/work/" not in path.read_text(encoding="utf-8"), path.relative_to(ROOT)


@cache
def names_in(path):
    """Functions, classes, methods as ``Class.method``, and names that are assigned at the top of a module."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_and_names_in_the_tables_exist(page):
    found = CODE.findall(page.read_text(encoding="utf-8"))
    assert len(found) > 10
    for path, names in found:
        assert (ROOT / path).is_file(), f"{page.name} names {path}, which does not exist"
        for name in re.findall(r"`([\w.]+)`", names):
            assert name in names_in(path), f"{page.name} names {name} in {path}, which does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_between_the_pages_lead_to_a_heading(page):
    for target, anchor in re.findall(r"\]\((?!http)([\w./]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.is_file(), f"{page.name} links to {target}, which does not exist"
        headings = re.findall(r"^#+ (.*)", linked.read_text(encoding="utf-8"), re.M)
        slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, f"{page.name} links to #{anchor} in {linked.name}, which does not exist"
