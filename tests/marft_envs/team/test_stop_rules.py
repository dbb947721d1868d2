"""Stop rules: validation, and the round after which they end an episode."""

import pytest

import marft_envs
from marft_envs import Role
from marft_envs.game.reward import StepDiscounted
from marft_envs.mathematics.teams import TEAMS
from marft_envs.team.stop_rules import Agreement, Word
from tests.marft_envs.team.say_yes import game


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Word("a_0", ""), ValueError, "Word word='': expected a non-empty string"),
        (lambda: Word("a_0", "\t"), ValueError, r"Word word='\\t': expected a non-empty string"),
        # YAML reads an unquoted yes as True.
        (lambda: Word("a_0", True), TypeError, "Word word=True: got bool, expected a non-empty string"),
        (lambda: Word("", "DONE"), ValueError, "Word agent='': expected a non-empty string"),
        (lambda: Agreement(("a_0", "a_0")), ValueError, r"agreement of \['a_0', 'a_0'\]: expected .* no name twice"),
        (lambda: Agreement(("a_0",)), ValueError, "at least two agents"),
        (lambda: Agreement("a_0"), TypeError, "Agreement agents='a_0': expected a list or tuple of agents"),
    ],
)
def test_invalid_rules_are_named_in_the_error(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_agreement_accepts_a_list():
    assert Agreement(["a_0", "b_0"]) == Agreement(("a_0", "b_0"))


def test_agreement_ends_the_episode():
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5, reward=StepDiscounted(0.5))
    for text in ("no", "yes", "yes", " yes "):
        g.step(text)
    assert g.over and g.round == 1
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5)
    for text in ("", "", "", ""):  # empty messages do not agree
        g.step(text)
    assert not g.over


def test_agreement_compares_answers_and_not_messages():
    env = marft_envs.math_v0.env(team=TEAMS["duo"]().with_stop(Agreement(("reasoner_0", "actor_0"))), rounds=4)
    env.reset(seed=0)
    env.step("I find \\boxed{0.5}")
    env.step("Yes: the answer is \\boxed{0.5}.")
    assert env.unwrapped.over and env.unwrapped.round == 0


def test_agreement_does_not_depend_on_the_gold():
    """Agents that agree on a wrong answer also end the episode."""
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, "none", Agreement(("a_0", "b_0")), rounds=5)
    g.step("wrong")
    g.step("wrong")
    assert g.over and g.outcome.score == 0.0


def test_a_word_ends_the_episode_after_its_round():
    roles = {"a_0": Role(), "b_0": Role(answers=True)}
    g = game(roles, stop=Word("a_0", "DONE"), rounds=5, reward=StepDiscounted(0.5))
    for text in ("DONEX", "DONE does not count from b_0", "I am DONE.", "yes"):
        assert not g.over
        g.step(text)
    assert g.over and g.outcome.rounds == 2
    assert set(g.rewards.values()) == {0.5}
    with pytest.raises(ValueError, match=r"gamma=2: expected a number in \[0, 1\]"):
        StepDiscounted(2)
