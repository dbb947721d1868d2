"""All registered environments, in many settings: our own checks, and PettingZoo's tests.

Two of PettingZoo's tests do not apply. max_cycles_test needs ``parallel_env(max_cycles=...)``, but an episode here ends
after its rounds. bombardment_test reads the observation from the return value of ``step``, which is None in PettingZoo
1.27, so that it fails for every environment.
"""

import functools
import inspect
import warnings

import pytest
from pettingzoo.test import api_test, render_test, seed_test, state_test
from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel

import marft_envs
from marft_envs import Task
from marft_envs.dependency.graph import PRESETS
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.mathematics.environment import GENERATORS
from marft_envs.registry.registry import environment_module
from marft_envs.registry.versioned_names import BUILT_IN
from marft_envs.testing import ENV_CHECKS, check_env, check_task, validate
from marft_envs.testing.episodes import first_frame_difference
from marft_envs.testing.processes import in_fresh_process
from marft_envs.testing.reproducibility import marker_episode

variant = functools.partial(functools.partial, marft_envs.make)
"""``variant(name, **arguments)`` returns a function that makes the environment and can be pickled."""

TEAMS = {f"{name}-{team}": variant(name, team=team) for name in BUILT_IN for team in environment_module(name).TEAMS}
"""Every team with its own D."""
DEPENDENCIES = {
    f"{name}-{team}-{dependency}": variant(name, team=team, dependency=dependency)
    for name, team in (*((name, "trio") for name in BUILT_IN), ("math_v0", "octet"))
    for dependency in PRESETS
}
"""Every preset of D in every environment. The shapes of a large team depend on the game alone: one environment."""
ROUNDS = {
    f"{name}-{memory}-{order}": variant(name, team="octet", rounds=3, memory=memory, order=order, reward=reward)
    for name in BUILT_IN
    for memory, order, reward in (
        ("none", "stable", "last"),
        ("own", "random", "answerer"),
        ("parents", "random", "shared"),
        ("all", "stable", "shared"),
    )
}


def star_then_none(problem, transcript, round):
    return "star" if round == 0 else "none"


CHANGING_DEPENDENCIES = {
    f"{name}-{kind}": variant(name, team=team, dependency=dependency, rounds=2, memory="parents")
    for name in BUILT_IN
    for kind, team, dependency in (
        ("d-per-round", "trio", ["full", "none"]),
        ("d-of-a-function", "quartet", star_then_none),
        ("orchestrated", "octet", Orchestrated("planner_0")),
    )
}
DATA_SETS = {f"math_v0-{name}": variant("math_v0", team="duo", dataset=name) for name in GENERATORS}
EVERY = TEAMS | DEPENDENCIES | ROUNDS | CHANGING_DEPENDENCIES | DATA_SETS
every_environment = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)

EXPECTED_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably",
    "Action space for each",
    "State space for each environment probably",
    "State is not NumPy array",
)
"""PettingZoo's warnings about every environment whose observations and actions are text."""


@every_environment
def test_passes_every_check(make):
    """Except other_process, which starts a Python; one process checks all environments below."""
    report = check_env(make, skip=["other_process"])
    assert report.passed == tuple(check for check in ENV_CHECKS if check != "other_process")


def marker_episodes(makers):
    return [marker_episode(make, seed=3) for make in makers]


def test_episodes_are_the_same_in_another_process():
    elsewhere = in_fresh_process(marker_episodes, list(EVERY.values()))
    differences = {
        name: first_frame_difference(marker_episode(make, 3), episode)
        for (name, make), episode in zip(EVERY.items(), elsewhere, strict=True)
    }
    assert {name: difference for name, difference in differences.items() if difference} == {}


def own_task(name):
    """Return the Task class in the file of an environment; None if the environment is a package."""
    module = environment_module(name)
    classes = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Task)]
    return next((task for task in classes if task.__module__ == module.__name__), None)


TASKS = GENERATORS | {f"{name}-task": own_task(name) for name in BUILT_IN if own_task(name)}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_passes_every_check(task):
    """Except the end of an unlimited task, and the seeds of a task without ``seed=``."""
    report = check_task(task)
    assert not set(report.not_checked) - {"index_errors", "seeds_differ"}
    assert "splits_apart" in report.passed


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_name_is_that_of_the_module(name):
    assert check_env(name, only=["names_and_metadata"]).passed


def run_quietly(test, *arguments, **options):
    """Run one of PettingZoo's tests. A warning that is not expected is a failure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test(*arguments, **options)
    assert [str(w.message) for w in caught if not str(w.message).startswith(EXPECTED_WARNINGS)] == []


@every_environment
def test_passes_pettingzoos_tests(make, capsys):
    run_quietly(api_test, make(), num_cycles=20)
    run_quietly(api_test, make().unwrapped, num_cycles=20)
    run_quietly(seed_test, make, num_cycles=20)
    run_quietly(state_test, make(), turn_based_aec_to_parallel(make()))
    render_test(make)


@every_environment
def test_turn_based_conversion_plays_the_same_episode(make):
    """Each step of the parallel environment is one turn, in which only the selected agent's action counts."""
    env, parallel = make(), turn_based_aec_to_parallel(make())
    env.reset(seed=5)
    observations, _ = parallel.reset(seed=5)
    while parallel.agents:
        agent, turn = env.agent_selection, len(env.transcript)
        assert observations == {a: env.observe(a) for a in env.agents}
        actions = {a: f"{a} at {turn}" if a == agent else None for a in parallel.agents}
        observations, rewards, terminations, truncations, _ = parallel.step(actions)
        env.step(f"{agent} at {turn}")
        assert (rewards, terminations, truncations) == (env.rewards, env.terminations, env.truncations)
    assert all(env.terminations.values())


@every_environment
def test_parallel_conversion_is_refused_if_d_has_edges(make):
    """With ``aec_to_parallel``, an agent would act before it has seen the agents that D lets it see."""
    env = make()
    static = env.unwrapped.team.schedule.static
    if static is None or static.edges:
        with pytest.raises(AssertionError, match="is_parallelizable"):
            aec_to_parallel(env)
    else:
        assert aec_to_parallel(env).reset(seed=0)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_environment_is_valid(name):
    report = validate(name, problems=6)
    assert report.failures == ()
    assert len(report.policies) == 8


@pytest.mark.slow
@pytest.mark.parametrize("dataset", GENERATORS)
def test_every_generator_is_valid(dataset):
    assert validate("math_v0", arguments={"dataset": dataset}).failures == ()
