"""Checks of turn order and visibility, against an independent computation from D, memory policy and transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marft_envs.testing.checking import NotChecked, expect, fail
from marft_envs.testing.env_case import EnvCase
from marft_envs.testing.episodes import is_dead, marker, play_on, strings_in
from marft_envs.transcript import Turn


class RoundPlan:
    """The agents of one round and those that each of them sees, computed from the schedule, independently of the game.

    Args:
        game: A game at the beginning of a round.

    Attributes:
        round: The number of the round.
        parents: The agents whose messages an agent sees, by agent. An orchestrator's reply may add agents.
    """

    def __init__(self, game: Any) -> None:
        self._schedule, self._public, self.round = game.team.schedule, game.problem.public, game.round
        dependency = self._schedule.begin(self._public, tuple(game.transcript), self.round)
        self.parents: dict[str, tuple[str, ...]] = dict(dependency.parents)

    def extend(self, transcript: list[Turn]) -> None:
        """Update the plan after a turn.

        When all agents of the plan have acted, the schedule may add agents, which see all that acted before.
        """
        acted = [turn.agent for turn in transcript if turn.round == self.round]
        if set(self.parents) <= set(acted):
            extension = self._schedule.extend(self._public, tuple(transcript), self.round)
            if extension is not None and extension.dependency is not None:
                first = tuple(self.parents)
                self.parents |= {a: (*first, *seen) for a, seen in extension.dependency.parents.items()}


def turn_order(case: EnvCase) -> None:
    """In every round, each agent of D acts once, after all agents that it sees."""
    env, game = case.reset()
    plan, acted = RoundPlan(game), list[str]()
    while not is_dead(env, env.agent_selection):
        agent = env.agent_selection
        if game.round != plan.round:
            _expect_all_acted(plan, acted)
            plan, acted = RoundPlan(game), []
        expect(
            agent in plan.parents,
            f"{agent} acts in round {plan.round}; expected one of the agents of D, {list(plan.parents)}",
        )
        expect(agent not in acted, f"{agent} acts twice in round {plan.round}; expected once")
        early = [parent for parent in plan.parents[agent] if parent not in acted]
        expect(
            not early,
            f"{agent} acts before {early} in round {plan.round}; expected it after the agents that D lets it see",
        )
        acted.append(agent)
        env.step(marker(len(game.transcript)))
        plan.extend(game.transcript)
    _expect_all_acted(plan, acted)


def _expect_all_acted(plan: RoundPlan, acted: list[str]) -> None:
    missing = [agent for agent in plan.parents if agent not in acted]
    expect(not missing, f"round {plan.round} ended without {missing}; expected a turn of every agent of D")


def round_count(case: EnvCase) -> None:
    """An episode has ``env.rounds`` rounds, or fewer if a stop rule ends it, and an outcome at its end."""
    env, game = case.reset()
    play_on(env)
    played = len({turn.round for turn in game.transcript})
    enough = played == game.rounds if game.team.stop_rule is None else 1 <= played <= game.rounds
    expect(enough, f"an episode has {played} rounds; expected rounds={game.rounds}")
    numbers = [turn.round for turn in game.transcript]
    expect(numbers == sorted(numbers), f"the rounds of the transcript are {numbers}; expected ascending numbers")
    expect(game.outcome is not None, "env.outcome is None after the last round; expected the team's verdicts")
    expect(game.outcome.rounds == played, f"outcome.rounds is {game.outcome.rounds}; expected {played}")


def visibility(case: EnvCase) -> None:
    """Every message is visible to exactly the agents that D and the memory policy allow.

    Each message is a unique marker. The agent whose turn it is must see exactly the allowed messages, in the order in
    which they were said. The other agents, and all agents after the end, must see no others.
    """
    env, game = case.reset()
    _require_room_for_markers(env)
    plans = {game.round: RoundPlan(game)}
    while True:
        over = is_dead(env, env.agent_selection)
        for agent in env.possible_agents:
            allowed = [i for i, turn in enumerate(game.transcript) if _may_see(agent, turn, game, plans)]
            seen = _seen(env.observe(agent), game.transcript)
            if agent == env.agent_selection and not over:
                _compare(agent, seen, allowed, game)
            else:  # such an agent may see less than it is allowed, and its own messages, but nothing more
                _compare(agent, [i for i in seen if game.transcript[i].agent != agent and i not in allowed], [], game)
        if over:
            return
        env.step(marker(len(game.transcript)))
        plans[game.transcript[-1].round].extend(game.transcript)
        plans.setdefault(game.round, RoundPlan(game))


def _require_room_for_markers(env: Any) -> None:
    """Raise NotChecked if a role's limits would clip the markers."""
    roles, longest = env.unwrapped.team.roles, len(marker(99))
    too_small = [agent for agent, role in roles.items() if min(role.max_chars, role.max_observed_chars) < longest]
    if too_small:
        raise NotChecked(
            f"the limits of {too_small} clip the markers of {longest} characters that this check uses as messages"
        )


def _may_see(agent: str, turn: Turn, game: Any, plans: Mapping[int, RoundPlan]) -> bool:
    """Return whether ``agent`` may see ``turn``: by D in the current round, by the memory policy in earlier ones."""
    parents = plans[turn.round].parents.get(agent, ())
    if turn.round == game.round:
        return turn.agent in parents
    by_memory: dict[str, bool] = {
        "none": False,
        "own": turn.agent == agent,
        "parents": turn.agent == agent or turn.agent in parents,
        "all": True,
    }
    return by_memory[game.memory]


def _seen(observation: Any, transcript: list[Turn]) -> list[int]:
    """Return the numbers of the turns whose marker is in the observation, in the order of their appearance."""
    text = "\n".join(strings_in(observation))
    return sorted((i for i in range(len(transcript)) if marker(i) in text), key=lambda i: text.find(marker(i)))


def _compare(agent: str, seen: list[int], allowed: list[int], game: Any) -> None:
    """Raise ConformanceError unless the agent sees the allowed turns in order."""
    if seen == allowed:
        return

    def name(turns: list[int]) -> str:
        return str([f"{game.transcript[i].agent} in round {game.transcript[i].round}" for i in turns])

    when = f"{agent} in round {game.round}, after {len(game.transcript)} turns,"
    if set(seen) == set(allowed):
        fail(f"{when} sees the messages in the order {name(seen)}; expected the order of the turns, {name(allowed)}")
    extra, missing = [i for i in seen if i not in allowed], [i for i in allowed if i not in seen]
    parts = [f"sees the messages of {name(extra)}"] * bool(extra)
    parts += [f"does not see the messages of {name(missing)}"] * bool(missing)
    fail(f"{when} {' and '.join(parts)}; expected exactly those that D and memory={game.memory!r} allow")
