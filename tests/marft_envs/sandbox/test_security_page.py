"""SECURITY.md names every attack, and no attack that does not exist."""

import re
from pathlib import Path

from tests.marft_envs.sandbox.attacks import GROUPS, RETURNED

PAGE = (Path(__file__).parents[3] / "SECURITY.md").read_text()


def test_the_page_names_exactly_the_attacks_that_are_tested():
    groups = {**GROUPS, "returned": RETURNED}
    tested = {f"{group}/{name}" for group, attacks in groups.items() for name in attacks}
    named = set(re.findall(rf"`((?:{'|'.join(groups)})/\w+)`", PAGE))
    assert named == tested


def test_the_page_names_files_that_exist():
    paths = re.findall(r"`((?:marft_envs|tests)/[\w/]+\.py)`", PAGE)
    assert len(paths) >= 3
    assert [path for path in paths if not (Path(__file__).parents[3] / path).exists()] == []
