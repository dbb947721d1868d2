# ruff: noqa: E501
"""LiveCodeBench's private tests are decoded without unpickling."""

import base64
import json
import os
import pickle
import zlib

import pytest

from marft_envs.coding.datasets.livecodebench_tests import decode_tests
from marft_envs.datasets.dataset_spec import Unusable

TESTS = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (exec, ("import os; os.environ['MARFT_UNPICKLED'] = 'yes'",))


def pickled(value):
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [(pickled(Evil()), "more than a string"), (pickled(["[]"]), "more than a string"), (pickled("{}"), "a dict, expected a list"),
     ("!!!", "neither JSON nor base64"), (pickled("["), "not JSON"), (base64.b64encode(zlib.compress(b"abc")).decode(), "pickle"),
     (base64.b64encode(zlib.compress(b"x" * 999)[:-9]).decode(), "truncated"), ("[", "not JSON")],
)  # fmt: skip
def test_private_tests_are_never_unpickled(text, message):
    with pytest.raises(Unusable, match=message):
        decode_tests(text)
    assert "MARFT_UNPICKLED" not in os.environ


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_private_tests_of_every_protocol(protocol):
    text = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(TESTS), protocol))).decode()
    assert decode_tests(text) == TESTS
