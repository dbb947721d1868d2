"""Episodes for the checks: play one, record everything that is visible after each step, and compare two records.

A *frame* is everything that an environment shows at one time: the observations of all agents, the state, rewards,
terminations, truncations, infos and the rendering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marft_envs.testing.checking import fail

MAX_STEPS = 2_000
Frame = dict[str, Any]
ReplyFunction = Callable[[Any, str, int], str]
"""(environment, agent, number of turns so far) -> the agent's reply."""


def marker(turn: int) -> str:
    """Return a string that no other reply and no problem contains, short enough for any role."""
    return f"⟦{turn}⟧"


def reply_with_marker(env: Any, agent: str, turn: int) -> str:
    """Return the marker of the turn."""
    return marker(turn)


def is_dead(env: Any, agent: str) -> bool:
    """Return whether an agent is terminated or truncated."""
    return bool(env.terminations[agent] or env.truncations[agent])


def is_over(env: Any) -> bool:
    """Return whether no agent may act any more."""
    return all(is_dead(env, agent) for agent in env.agents)


def frame(env: Any) -> Frame:
    """Return everything that the environment shows now, as copies in plain values."""
    return {
        "agent": env.agent_selection if env.agents else None,
        "agents": tuple(env.agents),
        "observation": {agent: to_plain(env.observe(agent)) for agent in env.possible_agents},
        "state": to_plain(_state(env)),
        "rewards": to_plain(env.rewards),
        "terminations": to_plain(env.terminations),
        "truncations": to_plain(env.truncations),
        "infos": to_plain(env.infos),
        "render": env.render() if env.unwrapped.render_mode == "ansi" else None,
    }


def _state(env: Any) -> Any:
    try:
        return env.state()
    except NotImplementedError:  # the default of PettingZoo: there is no global state
        return None


def play(env: Any, reply: ReplyFunction = reply_with_marker, **reset: Any) -> list[Frame]:
    """Reset and play a whole episode with its dead steps. Return the frames after ``reset`` and after every step."""
    env.reset(**reset)
    return [frame(env), *play_on(env, reply)]


def play_on(env: Any, reply: ReplyFunction = reply_with_marker, turn: int = 0) -> list[Frame]:
    """Play an episode from its current state to the end. Return the frame after every step."""
    frames: list[Frame] = []
    while env.agents:
        agent = env.agent_selection
        if is_dead(env, agent):
            env.step(None)
        else:
            env.step(reply(env, agent, turn))
            turn += 1
        frames.append(frame(env))
        if len(frames) > MAX_STEPS:
            fail(f"an episode did not end within {MAX_STEPS} steps; expected an end after its last round")
    return frames


def play_to_the_end(env: Any, reply: ReplyFunction, **reset: Any) -> None:
    """Reset and play until no agent may act, without the dead steps."""
    env.reset(**reset)
    for turn in range(MAX_STEPS):
        if is_over(env):
            return
        env.step(reply(env, env.agent_selection, turn))
    fail(f"an episode did not end within {MAX_STEPS} steps; expected an end after its last round")


def to_plain(value: Any) -> Any:
    """Return a copy of nested mappings, sequences and arrays that can be compared with ``==`` and pickled."""
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(to_plain(item) for item in value)
    if isinstance(value, (str, bytes, bool, int, float, np.generic, type(None))):
        return value
    return repr(value)


def strings_in(value: Any) -> list[str]:
    """Return all strings in a nested value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for item in value for text in strings_in(item)] if isinstance(value, (list, tuple)) else []


def first_difference(one: Any, other: Any, where: str = "") -> str | None:
    """Return the first difference of two plain values as "[key]: one, but other", or None if they are equal."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs = [(f"{where}[{key!r}]", one[key], other[key]) for key in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        same = type(one) is type(other) and one == other
        return None if same else f"{where}: {one!r:.200}, but {other!r:.200}"
    return next((found for path, a, b in pairs if (found := first_difference(a, b, path))), None)


def first_frame_difference(one: list[Frame], other: list[Frame]) -> str | None:
    """Return the first difference of two recorded episodes, with its step, or None if they are equal."""
    if len(one) != len(other):
        return f"{len(one) - 1} steps, but {len(other) - 1}"
    steps = enumerate(zip(one, other, strict=True))
    return next((found for i, (a, b) in steps if (found := first_difference(a, b, f"step {i} "))), None)
