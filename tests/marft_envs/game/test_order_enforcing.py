"""OrderEnforcing: calls in the wrong order are errors that name the call."""

import pytest

import marft_envs
from marft_envs.game.order_enforcing import ResetNeeded
from tests.marft_envs.game.echo import play


@pytest.mark.parametrize(
    "use",
    [
        lambda e: e.step("x"),
        lambda e: e.last(),
        lambda e: e.observe("actor_0"),
        lambda e: e.state(),
        lambda e: e.render(),
        lambda e: next(iter(e.agent_iter())),
    ],
)
def test_every_use_before_reset_is_an_error(use):
    with pytest.raises(ResetNeeded, match=r"before reset\(\): expected env.reset"):
        use(marft_envs.math_v0.env())


def test_iterations_without_a_step_and_calls_after_the_end_are_errors():
    env = marft_envs.math_v0.env()
    env.reset(seed=0)
    turns = env.agent_iter()
    next(turns)
    with pytest.raises(RuntimeError, match="without a step"):
        next(turns)
    play(env, {"reasoner_0": "x", "actor_0": "y"})
    with pytest.raises(ResetNeeded, match="after the end of the episode"):
        env.step("x")
    with pytest.raises(ResetNeeded, match=r"last\(\) after the end of the episode"):
        env.last()


@pytest.mark.parametrize(
    "name", ["rewards", "dependency", "generation", "feedback", "truncate", "settle", "over", "truncation_reason"]
)
def test_attributes_that_exist_after_reset_name_reset_in_the_error(name):
    with pytest.raises(AttributeError, match=rf"{name} before reset\(\): expected env.reset"):
        getattr(marft_envs.math_v0.env(), name)
