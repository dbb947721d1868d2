"""Every registered environment x ready-made team x dependency: the conformance checks, and PettingZoo's own tests.

Of PettingZoo's tests two are left out. max_cycles_test wants ``parallel_env(max_cycles=...)``: episodes here end after
their rounds. bombardment_test looks for the observation in what ``step`` returns, which is None in PettingZoo 1.27: it
fails for every environment.
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
from marft_envs.testing import ENV_CHECKS, check_env, check_task
from marft_envs.testing.playing import frames_differ
from marft_envs.testing.processes import in_fresh_process
from marft_envs.testing.repeating import episode

OWN = "own"
"""The team's own D, in place of a preset."""


def variant(name, team, dependency, **arguments):
    """What makes the environment ``name``; it pickles."""
    given = {} if dependency == OWN else {"dependency": dependency}
    return functools.partial(marft_envs.make, name, team=team, **given, **arguments)


VARIANTS = {
    f"{name}-{team}-{dependency}": variant(name, team, dependency)
    for name in BUILT_IN
    for team in environment_module(name).TEAMS
    for dependency in (OWN, *PRESETS)
}
ROUNDS = {
    f"{name}-{memory}-{order}": variant(name, "octet", OWN, rounds=3, memory=memory, order=order, reward=reward)
    for name in BUILT_IN
    for memory, order, reward in (
        ("none", "stable", "last"),
        ("own", "random", "answerer"),
        ("parents", "random", "shared"),
        ("all", "stable", "shared"),
    )
}


def first_speaks_to_all(problem, transcript, round):
    return "star" if round == 0 else "none"


CHANGING = {
    f"{name}-{kind}": variant(name, team, dependency, rounds=2, memory="parents")
    for name in BUILT_IN
    for kind, team, dependency in (
        ("one-d-a-round", "trio", ["full", "none"]),
        ("called", "quartet", first_speaks_to_all),
        ("orchestrated", "octet", Orchestrated("planner_0")),
    )
}
DATA_SETS = {f"math_v0-{name}": variant("math_v0", "duo", OWN, dataset=name) for name in GENERATORS}
EVERY = VARIANTS | ROUNDS | CHANGING | DATA_SETS

IN_ONE_PROCESS = [check for check in ENV_CHECKS if check != "other_process"]
"""other_process starts a Python: here one process plays the episodes of all environments."""

EXPECTED_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably",
    "Action space for each",
    "State space for each environment probably",
    "State is not NumPy array",
)
"""What PettingZoo says of any text: it is no array and no Box."""


@pytest.mark.parametrize("check", IN_ONE_PROCESS)
@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_conforms(make, check):
    assert check_env(make, only=[check]).passed == (check,)


def episodes(makers):
    return [episode(make, seed=3) for make in makers]


def test_episodes_are_the_same_in_another_process():
    theirs = in_fresh_process(episodes, list(EVERY.values()))
    found = {
        name: frames_differ(episode(make, 3), other) for (name, make), other in zip(EVERY.items(), theirs, strict=True)
    }
    assert {name: difference for name, difference in found.items() if difference} == {}


def own_task(name):
    """The Task class in the file of an environment that is one file; None where the door leads to a folder."""
    module = environment_module(name)
    classes = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Task)]
    return next((task for task in classes if task.__module__ == module.__name__), None)


TASKS = GENERATORS | {f"{name}-task": own_task(name) for name in BUILT_IN if own_task(name)}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_is_right(task):
    """What cannot be checked of a task: its end where it has none, its seeds where it takes none."""
    assert not set(check_task(task).not_checked) - {"index_errors", "seeds_differ"}
    assert "splits_apart" in check_task(task, only=["splits_apart"]).passed


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_name_is_the_modules(name):
    assert check_env(name, only=["names_and_metadata"]).passed


def quietly(test, *arguments, **options):
    """Run one of PettingZoo's tests; any warning but the expected ones is a failure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test(*arguments, **options)
    assert [str(w.message) for w in caught if not str(w.message).startswith(EXPECTED_WARNINGS)] == []


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_pettingzoos_api_test(make, capsys):
    quietly(api_test, make(), num_cycles=20)
    quietly(api_test, make().unwrapped, num_cycles=20)


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_pettingzoos_seed_test(make):
    quietly(seed_test, make, num_cycles=20)


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_pettingzoos_state_test(make):
    quietly(state_test, make(), turn_based_aec_to_parallel(make()))


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_pettingzoos_render_test(make, capsys):
    render_test(make)


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_turn_based_conversion_plays_the_same_episode(make):
    """Each step of the parallel form is one turn: only the selected agent's action counts."""
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


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_the_parallel_conversion_is_refused_where_d_has_an_edge(make):
    """``aec_to_parallel`` would let the actor commit before it has read the reasoner."""
    env = make()
    static = env.unwrapped.team.schedule.static
    if static is None or static.edges:
        with pytest.raises(AssertionError, match="is_parallelizable"):
            aec_to_parallel(env)
    else:
        assert aec_to_parallel(env).reset(seed=0)
