"""Spaces of strings: membership, samples, and flattening by Gymnasium."""

import subprocess
import sys

import numpy as np
import pytest
from gymnasium.spaces import utils

from marft_envs.game.spaces import ChoiceText, UnicodeText, message_space


@pytest.mark.parametrize("text", ["", "a b\n\t", "日本語", "\U0001f600" * 10, "x" * 10])
def test_strings_within_the_limit_are_members(text):
    assert UnicodeText(10).contains(text)


@pytest.mark.parametrize("thing", ["x" * 11, "\ud800", b"bytes", 3, None])
def test_long_strings_lone_surrogates_and_other_types_are_not_members(thing):
    assert not UnicodeText(10).contains(thing)


@pytest.mark.parametrize("thing", ["c", b"a", None, ["a"], {"a"}, np.array(["a", "b"])])
def test_only_choices_are_members(thing):
    space = ChoiceText(["a", "b"])
    assert not space.contains(thing) and space.contains("b")


def test_samples_are_short_printable_and_seeded():
    space = UnicodeText(10_000, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert all(space.contains(s) and len(s) <= 40 and s.isascii() for s in samples)
    assert samples[0] == UnicodeText(10_000, seed=3).sample()
    assert len(UnicodeText(100, min_length=60, seed=0).sample()) >= 60
    with pytest.raises(ValueError, match=r"UnicodeText\.sample: got mask=\(3, None\), probability=None, expected None"):
        space.sample(mask=(3, None))


def test_samples_do_not_depend_on_the_hash_seed():
    program = (
        "from marft_envs.game.spaces import UnicodeText; space = UnicodeText(99, seed=1);"
        "print([space.sample() for _ in range(3)])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONHASHSEED": h})
        for h in "01"
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_flattening_is_reversible_and_equality_compares_bounds():
    space = UnicodeText(12)
    for text in ("", "ab\n", "日本 \U0001f600"):
        assert utils.unflatten(space, utils.flatten(space, text)) == text
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6)


def test_samples_of_the_message_space_are_members():
    space = message_space(100)
    space.seed(0)
    assert all(space.contains(space.sample()) for _ in range(10))
