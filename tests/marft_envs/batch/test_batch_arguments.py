"""Error messages for wrong arguments of ``BatchRunner`` and wrong replies of a policy."""

import pytest

from marft_envs import FlexMG
from marft_envs.batch import BatchRunner
from tests.marft_envs.batch.sum_task import TEAM, Sum, say_index, three


def test_wrong_values_raise_errors_that_name_them():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    with pytest.raises(
        ValueError, match=r"indices has 3 entries: expected at most size=2; use stream\(policy, indices="
    ):
        runner.play(lambda requests: [], indices=[1, 2, 3])
    with pytest.raises(ValueError, match="policy returned 1 replies for first_0: expected 2"):
        runner.play(lambda requests: ["x"], indices=[1, 2])
    with pytest.raises(TypeError, match="action of first_0: got int"):
        runner.play(lambda requests: [3, 4], indices=[1, 2])
    with pytest.raises(ValueError, match="size=0"):
        BatchRunner(FlexMG(Sum(), TEAM), 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: BatchRunner("math_v0", 2), "env='math_v0': expected an environment"),
        (lambda r: BatchRunner(r.envs[0], "2"), "size='2': got str, expected int"),
        (lambda r: r.play(["x"], indices=[1]), r"policy=\['x'\]: got list, expected a function of \(requests\)"),
        (lambda r: r.play(lambda: ["x"], indices=[1]), r"policy=<lambda>: takes \(\), expected a function of "),
        (
            lambda r: r.stream(dict.fromkeys(r.team.agents, lambda requests, more: [])),
            r"policy of a_0=<lambda>: takes \(requests, more\), expected",
        ),
        (
            lambda r: r.play(say_index, indices=5),
            r"indices=5: got int, expected an iterable of integers, such as range\(8\)",
        ),
        (lambda r: r.play(say_index, indices=[1], groups="2"), "groups='2': got str, expected int"),
        (lambda r: r.play(say_index, seeds=7), "seeds=7: got int, expected an iterable"),
        (lambda r: r.play(say_index, seeds=["a", "b"]), "seeds='a': got str, expected int"),
        (lambda r: r.play(say_index, turns="9"), "turns='9': got str, expected int"),
        (lambda r: r.stream(say_index, indices="12"), "indices='12': got str, expected an iterable"),
        (lambda r: r.stream(say_index, episodes=2.0), r"episodes=2\.0: got float, expected int"),
        (lambda r: r.stream(say_index, seed="one"), "seed='one': got str, expected int"),
    ],
)
def test_arguments_of_the_wrong_type_raise_at_the_call(call, message):
    with pytest.raises(TypeError, match=message):
        call(BatchRunner(FlexMG(Sum(), three("none")), 2))


@pytest.mark.parametrize("replies", ["ab", {"first_0": "a", "second_0": "b"}, None, (text for text in "ab")])
def test_a_policy_that_does_not_return_a_list_is_named(replies):
    with pytest.raises(
        TypeError, match=r"policy returned .* for first_0: expected a list with a str or Reply for each"
    ):
        BatchRunner(FlexMG(Sum(), TEAM), 2).play(lambda requests: replies, indices=[1, 2])
