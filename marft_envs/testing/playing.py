"""Play an episode and write down everything that anybody can see of it; find the first difference of two records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marft_envs.testing.checking import fail

MAX_STEPS = 2_000
Frame = dict[str, Any]
Speak = Callable[[Any, str, int], str]
"""(environment, agent, turns so far) -> the agent's text."""


def marker(turn: int) -> str:
    """A text that nobody else says and that no problem holds, and that is short enough for any role."""
    return f"⟦{turn}⟧"


def say_markers(env: Any, agent: str, turn: int) -> str:
    return marker(turn)


def is_dead(env: Any, agent: str) -> bool:
    return bool(env.terminations[agent] or env.truncations[agent])


def is_over(env: Any) -> bool:
    """Whether nobody may speak any more."""
    return all(is_dead(env, agent) for agent in env.agents)


def frame(env: Any) -> Frame:
    """What can be seen now: every agent's observation, the state, the books, the rendering. Copies, plain values."""
    return {
        "agent": env.agent_selection if env.agents else None,
        "agents": tuple(env.agents),
        "observation": {agent: plain(env.observe(agent)) for agent in env.possible_agents},
        "state": plain(_state(env)),
        "rewards": plain(env.rewards),
        "terminations": plain(env.terminations),
        "truncations": plain(env.truncations),
        "infos": plain(env.infos),
        "render": env.render() if env.unwrapped.render_mode == "ansi" else None,
    }


def _state(env: Any) -> Any:
    try:
        return env.state()
    except NotImplementedError:  # PettingZoo's default: there is no global state
        return None


def play(env: Any, speak: Speak = say_markers, **reset: Any) -> list[Frame]:
    """A whole episode with its dead steps: the frame after ``reset`` and after every step."""
    env.reset(**reset)
    return [frame(env), *play_on(env, speak)]


def play_on(env: Any, speak: Speak = say_markers, turn: int = 0) -> list[Frame]:
    """The frames from here to the end."""
    frames: list[Frame] = []
    while env.agents:
        agent = env.agent_selection
        if is_dead(env, agent):
            env.step(None)
        else:
            env.step(speak(env, agent, turn))
            turn += 1
        frames.append(frame(env))
        if len(frames) > MAX_STEPS:
            fail(f"an episode did not end within {MAX_STEPS} steps; expected an end after its last round")
    return frames


def play_to_the_end(env: Any, speak: Speak, **reset: Any) -> None:
    """Play until nobody may speak any more; the dead steps are left."""
    env.reset(**reset)
    for turn in range(MAX_STEPS):
        if is_over(env):
            return
        env.step(speak(env, env.agent_selection, turn))
    fail(f"an episode did not end within {MAX_STEPS} steps; expected an end after its last round")


def plain(value: Any) -> Any:
    """A copy of nested mappings, sequences and arrays that ``==`` can compare and pickle can carry."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if isinstance(value, (str, bytes, bool, int, float, np.generic, type(None))):
        return value
    return repr(value)


def texts(value: Any) -> list[str]:
    """All strings within a nested value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for item in value for text in texts(item)] if isinstance(value, (list, tuple)) else []


def difference(one: Any, other: Any, where: str = "") -> str | None:
    """The first place where two plain values differ, as "place: this, but that"; None when they are equal."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs = [(f"{where}[{key!r}]", one[key], other[key]) for key in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        same = type(one) is type(other) and one == other
        return None if same else f"{where}: {one!r:.200}, but {other!r:.200}"
    return next((found for place, a, b in pairs if (found := difference(a, b, place))), None)


def frames_differ(one: list[Frame], other: list[Frame]) -> str | None:
    """``difference`` of two episodes, placed by step."""
    if len(one) != len(other):
        return f"{len(one) - 1} steps, but {len(other) - 1}"
    return next(
        (f for i, (a, b) in enumerate(zip(one, other, strict=True)) if (f := difference(a, b, f"step {i} "))), None
    )
