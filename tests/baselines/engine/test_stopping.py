"""The end of an action: stop strings that several tokens make, and the text before them."""

from __future__ import annotations

import pytest

from baselines.engine.protocol import Sampling
from baselines.engine.stopping import StopStrings, before_stop_strings
from tests.baselines.engine.chat_models import byte_level

TOKENIZER = byte_level(None).tokenizer


def ended_after(text: str, *strings: str) -> str | None:
    """Return the text up to the token that completes a stop string; None if none does."""
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    stop = StopStrings(TOKENIZER, strings)
    for count in range(1, len(ids) + 1):
        if stop.completed(ids[:count]):
            return TOKENIZER.decode(ids[:count])
    return None


@pytest.mark.parametrize(
    ("text", "strings", "expected"),
    [
        ("a b\nc", ("\n",), "a b\n"),
        ("So 22. END and more", (" END",), "So 22. END"),
        ("</answer> x", ("</answer>", "\n"), "</answer>"),
        ("one\ntwo\n\nthree", ("\n\n",), "one\ntwo\n\n"),
        ("costs 5\u20ac, or so", ("\u20ac",), "costs 5\u20ac"),  # three bytes, which are tokens of their own
        ("nothing here", ("\n", "END"), None),
        ("anything", (), None),
    ],
)
def test_the_token_that_completes_a_stop_string_ends_the_action(text, strings, expected):
    found = ended_after(text, *strings)
    if expected is None:
        assert found is None
    else:
        assert (
            found is not None
            and found.startswith(expected)
            and not any(s in found[: -len(strings[0])] for s in strings)
        )


def test_the_text_ends_before_the_first_stop_string():
    assert before_stop_strings("22\n23 END", ("END", "\n")) == "22"
    assert before_stop_strings("22", ("\n",)) == "22" and before_stop_strings("22", ()) == "22"


def test_wrong_stop_strings_are_reported():
    with pytest.raises(ValueError, match=r"Sampling stop_strings=\['a', ''\]: expected strings that are not empty"):
        Sampling(stop_strings=("a", ""))
    with pytest.raises(ValueError, match="Sampling stop_strings='ab': expected a list of strings"):
        Sampling(stop_strings="ab")  # type: ignore[arg-type]
    assert Sampling(stop_strings=["\n"]).stop_strings == ("\n",)  # type: ignore[arg-type]
