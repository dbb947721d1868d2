"""Checks of an environment's interface: names, metadata, spaces and method calls."""

from __future__ import annotations

import re

from gymnasium import spaces

from marft_envs.task import Task
from marft_envs.testing.checking import expect, fail
from marft_envs.testing.env_case import EnvCase
from marft_envs.testing.episodes import first_difference, frame, is_dead, marker, play, to_plain
from marft_envs.testing.task_variants import last_index, problem_of

_REQUIRED = ("task", "team", "rounds", "memory", "problem", "transcript", "round", "outcome", "render_mode")
_AGENT = re.compile(r"\w*[A-Za-z]_\d+")
_NAME = re.compile(r"[a-z][a-z0-9_]*_v\d+")


def interface(case: EnvCase) -> None:
    """``env.unwrapped`` has the attributes of the game that the other checks read, and its task has problems."""
    _, game = case.env()
    if isinstance(getattr(game, "task", None), Task):
        for index in (*case.indices, last_index(game.task)):
            problem_of(game.task, index)
    _, game = case.reset()
    missing = [name for name in _REQUIRED if not hasattr(game, name)]
    expect(not missing, f"env.unwrapped has no {', '.join(missing)}; expected a marft_envs.FlexMG")


def names_and_metadata(case: EnvCase) -> None:
    """The metadata are correct: the module's name, render modes and ``is_parallelizable``; agent names end in _N."""
    env, game = case.env()
    metadata = env.metadata
    name = metadata.get("name")
    expect(
        isinstance(name, str) and _NAME.fullmatch(name), f"metadata['name'] is {name!r}; expected a name like math_v0"
    )
    expect(str(env) == name, f"str(env) is {str(env)!r}; expected metadata['name'], {name!r}")
    if case.module:
        expect(name == case.module, f"metadata['name'] is {name!r}; expected the module's name, {case.module!r}")
    modes = metadata.get("render_modes")
    expect(modes == ["human", "ansi"], f"metadata['render_modes'] is {modes!r}; expected ['human', 'ansi']")
    parallelizable, static = metadata.get("is_parallelizable"), game.team.schedule.static
    no_edges = static is not None and not static.edges
    expect(
        parallelizable is no_edges,
        f"metadata['is_parallelizable'] is {parallelizable!r}; expected {no_edges}, because D "
        f"{'has no edges' if no_edges else 'has or may have edges'}",
    )
    invalid = [agent for agent in env.possible_agents if not _AGENT.fullmatch(agent)]
    expect(not invalid, f"agent names {invalid} do not end in _N; expected names like actor_0")


def same_spaces(case: EnvCase) -> None:
    """Every call returns the same space object, and no key of a space has a special meaning in PettingZoo."""
    env, _ = case.env()
    before = {agent: (env.observation_space(agent), env.action_space(agent)) for agent in env.possible_agents}
    env.reset(seed=case.seed)
    for agent, (observations, actions) in before.items():
        for method, space, now in (
            ("observation_space", observations, env.observation_space(agent)),
            ("action_space", actions, env.action_space(agent)),
        ):
            expect(
                now is space,
                f"{method}({agent!r}) returns another object on the second call; expected the same object",
            )
        reserved = {"observation", "action_mask"}
        keys = set(observations.spaces) & reserved if isinstance(observations, spaces.Dict) else set()
        expect(not keys, f"observation_space({agent!r}) has the keys {sorted(keys)}; expected other names")


def membership(case: EnvCase) -> None:
    """All observations and states are in their spaces, for all agents and also after the end; last() agrees."""
    env, game = case.reset()
    while True:
        when = f"after {len(game.transcript)} turns" + (", after the end" if not env.agents else "")
        for agent in env.possible_agents:
            inside = env.observation_space(agent).contains(env.observe(agent))
            expect(inside, f"the observation of {agent} {when} is not in its observation space")
        if hasattr(game, "state_space"):
            expect(game.state_space.contains(env.state()), f"the state {when} is not in state_space")
        if not env.agents:
            return
        agent = env.agent_selection
        found = first_difference(to_plain(env.observe(agent)), to_plain(env.last()[0]))
        expect(not found, f"observe({agent!r}) and last() {when} differ at {found}; expected the same observation")
        env.step(None if is_dead(env, agent) else "Grüße\n\U0001f600")


def wrong_type(case: EnvCase) -> None:
    """An action that is not a str raises a TypeError that names the agent, and changes nothing."""
    env, _ = case.reset()
    for turn in range(min(2, len(env.possible_agents))):
        agent, before = env.agent_selection, frame(env)
        for action in (None, 7, b"bytes", ["text"]):
            try:
                env.step(action)
            except TypeError as error:
                expect(
                    agent in str(error),
                    f"the TypeError for {action!r} is {str(error)!r:.120}; expected the agent's name, {agent}",
                )
            else:
                fail(f"step({action!r}) of {agent} is accepted; expected a TypeError that names {agent}")
            found = first_difference(before, frame(env))
            expect(not found, f"the rejected {action!r} of {agent} changed the episode at {found}; expected no change")
        env.step(marker(turn))


def after_the_end(case: EnvCase) -> None:
    """observe, state and render work after all agents have left."""
    env, _ = case.env(ansi=True)
    play(env, seed=case.seed)
    for agent in env.possible_agents:
        env.observe(agent)
    text = env.render()
    expect(
        isinstance(text, str) and text, f"render() after the end returns {text!r:.80}; expected the episode as a string"
    )
