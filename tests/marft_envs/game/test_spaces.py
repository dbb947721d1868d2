"""The text space: what it holds, what it samples, and that Gymnasium can flatten it."""

import subprocess
import sys

import numpy as np
import pytest
from gymnasium.spaces import utils

from marft_envs.game.spaces import ChoiceText, UnicodeText, message_space


@pytest.mark.parametrize("text", ["", "a b\n\t", "日本語", "\U0001f600" * 10, "x" * 10])
def test_contains(text):
    assert UnicodeText(10).contains(text)


@pytest.mark.parametrize("thing", ["x" * 11, "\ud800", b"bytes", 3, None])
def test_contains_not(thing):
    assert not UnicodeText(10).contains(thing)


@pytest.mark.parametrize("thing", ["c", b"a", None, ["a"], {"a"}, np.array(["a", "b"])])
def test_choices_contain_nothing_else(thing):
    space = ChoiceText(["a", "b"])
    assert not space.contains(thing) and space.contains("b")


def test_samples_are_short_printable_members_and_seeded():
    space = UnicodeText(10_000, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert all(space.contains(s) and len(s) <= 40 and s.isascii() for s in samples)
    assert samples == [UnicodeText(10_000, seed=3).sample() for _ in range(1)] + samples[1:]
    assert UnicodeText(100, min_length=60, seed=0).sample().__len__() >= 60
    with pytest.raises(ValueError, match="takes no mask"):
        space.sample(mask=(3, None))


def test_samples_do_not_depend_on_the_hash_seed():
    program = "from marft_envs.game.spaces import UnicodeText; s = UnicodeText(99, seed=1); print([s.sample() for _ in 'abc'])"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONHASHSEED": h})
        for h in "01"
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_flatten_round_trip_and_equality():
    space = UnicodeText(12)
    for text in ("", "ab\n", "日本 \U0001f600"):
        assert utils.unflatten(space, utils.flatten(space, text)) == text
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6)


def test_message_space_samples_are_members():
    space = message_space(100)
    space.seed(0)
    assert all(space.contains(space.sample()) for _ in range(10))
