"""Names, spaces and calls: the form of an environment."""

from __future__ import annotations

import re

from gymnasium import spaces

from marft_envs.testing.case import Case
from marft_envs.testing.checking import expect, fail
from marft_envs.testing.playing import difference, frame, is_dead, marker, plain, play

_NEEDED = ("task", "team", "rounds", "memory", "problem", "transcript", "round", "outcome", "render_mode")
_AGENT = re.compile(r"\w*[A-Za-z]_\d+")
_NAME = re.compile(r"[a-z][a-z0-9_]*_v\d+")


def interface(case: Case) -> None:
    """The game is there under ``unwrapped``, with what the other checks read."""
    _, game = case.reset()
    missing = [name for name in _NEEDED if not hasattr(game, name)]
    expect(not missing, f"env.unwrapped has no {', '.join(missing)}; expected a marft_envs.FlexMG")


def names_and_metadata(case: Case) -> None:
    """Names end as PettingZoo wants, the metadata's name is the module's, and concurrency is told truly."""
    env, game = case.env()
    metadata = env.metadata
    name = metadata.get("name")
    expect(isinstance(name, str) and _NAME.fullmatch(name), f"metadata['name'] is {name!r}; expected a name as math_v0")
    expect(str(env) == name, f"str(env) is {str(env)!r}; expected metadata['name'], {name!r}")
    if case.module:
        expect(name == case.module, f"metadata['name'] is {name!r}; expected the module's name, {case.module!r}")
    modes = metadata.get("render_modes")
    expect(modes == ["human", "ansi"], f"metadata['render_modes'] is {modes!r}; expected ['human', 'ansi']")
    concurrent, static = metadata.get("is_parallelizable"), game.team.schedule.static
    free = static is not None and not static.edges
    expect(
        concurrent is free, f"metadata['is_parallelizable'] is {concurrent!r}; expected {free}, as D has edges or none"
    )
    odd = [agent for agent in env.possible_agents if not _AGENT.fullmatch(agent)]
    expect(not odd, f"agent names {odd} do not end in _N; expected names as actor_0")


def same_spaces(case: Case) -> None:
    """Every call gives the same space object, and no key bears a name that PettingZoo gives a meaning of its own."""
    env, _ = case.env()
    before = {agent: (env.observation_space(agent), env.action_space(agent)) for agent in env.possible_agents}
    env.reset(seed=case.seed)
    for agent, (observed, acted) in before.items():
        for kind, space, now in (
            ("observation_space", observed, env.observation_space(agent)),
            ("action_space", acted, env.action_space(agent)),
        ):
            expect(now is space, f"{kind}({agent!r}) gives another object on the second call; expected the same object")
        keys = set(observed.spaces) & {"observation", "action_mask"} if isinstance(observed, spaces.Dict) else set()
        expect(not keys, f"observation_space({agent!r}) has the keys {sorted(keys)}; expected other names")


def membership(case: Case) -> None:
    """Every observation and state lies in its space: of everybody, also after the end; last() agrees."""
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
        found = difference(plain(env.observe(agent)), plain(env.last()[0]))
        expect(not found, f"observe({agent!r}) and last() {when} differ at {found}; expected the same observation")
        env.step(None if is_dead(env, agent) else "Grüße\n\U0001f600")


def wrong_type(case: Case) -> None:
    """A reply that is no str is a TypeError that names the agent, and nothing has changed."""
    env, _ = case.reset()
    for turn in range(min(2, len(env.possible_agents))):
        agent, before = env.agent_selection, frame(env)
        for reply in (None, 7, b"bytes", ["text"]):
            try:
                env.step(reply)
            except TypeError as error:
                expect(
                    agent in str(error),
                    f"the TypeError for {reply!r} is {str(error)!r:.120}; expected the name {agent}",
                )
            else:
                fail(f"{agent} may reply {reply!r}; expected a TypeError that names {agent}")
            found = difference(before, frame(env))
            expect(not found, f"the refused {reply!r} of {agent} changed the episode at {found}; expected no change")
        env.step(marker(turn))


def after_the_end(case: Case) -> None:
    """observe, state and render work when everybody has left."""
    env, _ = case.env(ansi=True)
    play(env, seed=case.seed)
    for agent in env.possible_agents:
        env.observe(agent)
    text = env.render()
    expect(isinstance(text, str) and text, f"render() after the end gives {text!r:.80}; expected the episode as text")
