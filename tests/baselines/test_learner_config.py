"""Learner settings and arms: every field is used, and an invalid value is reported."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import baselines
from baselines.ladder import ARMS, arm, arm_environment
from baselines.learner_config import LearnerConfig

FOLDER = Path(baselines.__file__).parent


def test_every_field_is_used():
    """Some module reads an attribute of that name from an object called ``config`` or ``c``, or one of the record's own
    public methods reads it from ``self``. The checks in ``__post_init__`` do not count."""
    read = set()
    for path in FOLDER.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = ("config", "c")
        if path.name == "learner_config.py":
            owners = ("self",)
            tree.body = [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body if _is_public_method(n)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name in owners:
                    read.add(node.attr)
    assert {f.name for f in fields(LearnerConfig)} - read == set()


def _is_public_method(node):
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip": -1}, "clip=-1: expected a positive number"),
        ({"factor": "on"}, "factor='on': expected 'off' unless update='sequential'"),
        ({"bootstrap": "successor"}, "bootstrap='successor': expected 'own' unless critic='central'"),
        ({"lam_in": 2}, r"lam_in=2: expected a number in \[0, 1\]"),
        (
            {"leaning_rate": 1},
            r"no field 'leaning_rate' \(did you mean 'learning_rate'\?\): expected one of critic, bootstrap",
        ),
        ({"critic": "none"}, "critic='none': expected 'none' if bootstrap='group', else 'own' or 'central'"),
        ({"bootstrap": "group"}, "critic='own': expected 'none' if bootstrap='group', else 'own' or 'central'"),
        (
            {"kl_target": 0.1, "kl_coefficient": 0},
            "kl_coefficient=0: expected a number above 0, because kl_target is set",
        ),
        ({"credit": "word"}, "credit='word': expected one of action, token"),
    ],
)
def test_invalid_settings_are_reported(settings, message):
    with pytest.raises(ValueError, match=message):
        arm("ippo").with_settings(settings)


def test_an_unknown_arm_is_reported_with_the_known_ones():
    with pytest.raises(ValueError, match="arm='marfft': expected one of ippo, mappo"):
        arm("marfft")
    assert set(ARMS) >= {"ippo", "marft", "marft_token", "magrpo", "single", "untrained"}


def test_arms_outside_the_ladder_differ_by_the_field_of_their_name():
    def changed(name, base):
        names = [f.name for f in fields(LearnerConfig)]
        return {n: getattr(arm(name), n) for n in names if getattr(arm(name), n) != getattr(arm(base), n)}

    assert changed("marft_token", "marft") == {"credit": "token"}
    assert changed("untrained", "ippo") == {"update": "none"}
    assert changed("magrpo", "ippo") == {"critic": "none", "bootstrap": "group"}
    assert changed("single", "ippo") == {}


def test_the_arm_single_has_one_agent_with_the_token_budget_of_the_team():
    arguments = {"dataset": "svamp", "team": "quartet"}
    assert arm_environment("marft", arguments, 4, 64) == (arguments, 64)
    assert arm_environment("single", arguments, 4, 64) == ({"dataset": "svamp", "team": "solo"}, 256)
    with pytest.raises(ValueError, match="agents=0: expected at least 1"):
        arm_environment("single", {}, 0, 64)


def test_a_group_repeats_its_problem():
    assert arm("ippo").problems_per_batch(12) == 12
    assert arm("magrpo").with_settings({"group_size": 4}).problems_per_batch(12) == 3
    with pytest.raises(ValueError, match="episodes=12: expected a multiple of group_size=8"):
        arm("magrpo").problems_per_batch(12)
