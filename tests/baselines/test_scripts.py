"""What a script returns is checked where it is called, by its agent's and its own name."""

import sys

import pytest

from baselines.run_config import RunConfig
from baselines.team import Team
from marft_envs.batch import Request

HERE = "tests.baselines.test_scripts"


def nothing(requests):
    return None


def too_few(requests):
    return ["7"] * (len(requests) - 1)


def a_number(requests):
    return [7] * len(requests)


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("nothing", TypeError, "returned NoneType: expected a list"),
        ("too_few", ValueError, "returned 1 replies: expected a list"),
        ("a_number", TypeError, "returned a int among its replies: expected a list"),
    ],
)
def test_a_script_that_does_not_reply_with_texts_is_named(name, kind, told, monkeypatch):
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])
    config = RunConfig(arm="ippo", scripted={"a_0": f"{HERE}:{name}"})
    cast = Team(config, ("a_0", "b_0"), config.decoding).cast(None)
    requests = [Request(i, i, "a_0", 0, 0, {}) for i in range(2)]
    with pytest.raises(kind, match=rf"scripted\.a_0='{HERE}:{name}' {told}"):
        cast(requests)
