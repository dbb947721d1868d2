"""Turn order and visibility, worked out from D, the memory policy and the transcript alone, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marft_envs.game.observation import Turn
from marft_envs.testing.checking import NotChecked, expect, fail
from marft_envs.testing.playing import is_dead, marker, play_on, texts


class RoundPlan:
    """Who acts in one round and whom they see: the team's schedule asked once more, apart from the game.

    parents: agent to the agents that it sees; it grows when an orchestrator's reply names more agents.
    """

    def __init__(self, game: Any) -> None:
        self._schedule, self._public, self.round = game.team.schedule, game.problem.public, game.round
        dependency = self._schedule.begin(self._public, tuple(game.transcript), self.round)
        self.parents: dict[str, tuple[str, ...]] = dict(dependency.parents)

    def extend(self, transcript: list[Turn]) -> None:
        """After a turn: once all known agents have spoken, the schedule may name more; these see all who spoke."""
        spoken = [turn.agent for turn in transcript if turn.round == self.round]
        if set(self.parents) <= set(spoken):
            extension = self._schedule.extend(self._public, tuple(transcript), self.round)
            if extension is not None and extension.dependency is not None:
                first = tuple(self.parents)
                self.parents |= {a: (*first, *seen) for a, seen in extension.dependency.parents.items()}


def turn_order(case: Any) -> None:
    """In every round each agent of D acts once, after everybody whom it sees."""
    env, game = case.reset()
    plan, acted = RoundPlan(game), list[str]()
    while not is_dead(env, env.agent_selection):
        agent = env.agent_selection
        if game.round != plan.round:
            _expect_all_acted(plan, acted)
            plan, acted = RoundPlan(game), []
        expect(agent in plan.parents, f"{agent} acts in round {plan.round}; expected one of {list(plan.parents)}, by D")
        expect(agent not in acted, f"{agent} acts twice in round {plan.round}; expected once")
        early = [parent for parent in plan.parents[agent] if parent not in acted]
        expect(not early, f"{agent} acts before {early} in round {plan.round}; expected it after those whom D shows it")
        acted.append(agent)
        env.step(marker(len(game.transcript)))
        plan.extend(game.transcript)
    _expect_all_acted(plan, acted)


def _expect_all_acted(plan: RoundPlan, acted: list[str]) -> None:
    missing = [agent for agent in plan.parents if agent not in acted]
    expect(not missing, f"round {plan.round} ended without {missing}; expected a turn of each agent of D")


def round_count(case: Any) -> None:
    """As many rounds as the environment says, each ended by the last agent; fewer only where a rule ends it."""
    env, game = case.reset()
    play_on(env)
    played = len({turn.round for turn in game.transcript})
    enough = played == game.rounds if game.team.stop_rule is None else 1 <= played <= game.rounds
    expect(enough, f"an episode has {played} rounds; expected rounds={game.rounds}")
    numbers = [turn.round for turn in game.transcript]
    expect(numbers == sorted(numbers), f"the transcript's rounds are {numbers}; expected them in order")
    expect(game.outcome is not None, "there is no outcome after the last round; expected the team's verdicts")
    expect(game.outcome.rounds == played, f"outcome.rounds is {game.outcome.rounds}; expected {played}")


def visibility(case: Any) -> None:
    """Each text is a unique marker; it is seen by exactly those that D and the memory policy let see it.

    Exactly, and in the order of speaking, for the agent whose turn it is. The others, and everybody after the end, see
    no more of another agent's texts than that.
    """
    env, game = case.reset()
    _expect_markers_fit(env)
    plans = {game.round: RoundPlan(game)}
    while True:
        over = is_dead(env, env.agent_selection)
        for agent in env.possible_agents:
            allowed = [i for i, turn in enumerate(game.transcript) if _may_see(agent, turn, game, plans)]
            seen = _seen(env.observe(agent), game.transcript)
            if agent == env.agent_selection and not over:
                _compare(agent, seen, allowed, game)
            else:
                _compare(agent, [i for i in seen if game.transcript[i].agent != agent and i not in allowed], [], game)
        if over:
            return
        env.step(marker(len(game.transcript)))
        plans[game.transcript[-1].round].extend(game.transcript)
        plans.setdefault(game.round, RoundPlan(game))


def _expect_markers_fit(env: Any) -> None:
    roles, longest = env.unwrapped.team.roles, len(marker(99))
    tight = [agent for agent, role in roles.items() if min(role.max_chars, role.max_observed_chars) < longest]
    if tight:
        raise NotChecked(f"the limits of {tight} cut the {longest} characters that mark who said what")


def _may_see(agent: str, turn: Turn, game: Any, plans: Mapping[int, RoundPlan]) -> bool:
    """Whether ``agent`` may read ``turn`` now: D of this round, or the memory policy for an earlier one."""
    parents = plans[turn.round].parents.get(agent, ())
    if turn.round == game.round:
        return turn.agent in parents
    seen: dict[str, bool] = {
        "none": False,
        "own": turn.agent == agent,
        "parents": turn.agent == agent or turn.agent in parents,
        "all": True,
    }
    return seen[game.memory]


def _seen(observation: Any, transcript: list[Turn]) -> list[int]:
    """Numbers of the turns whose marker is in the observation, in the order in which they stand there."""
    everything = "\n".join(texts(observation))
    return sorted(
        (i for i in range(len(transcript)) if marker(i) in everything), key=lambda i: everything.find(marker(i))
    )


def _compare(agent: str, seen: list[int], allowed: list[int], game: Any) -> None:
    if seen == allowed:
        return

    def name(turns: list[int]) -> str:
        return str([f"{game.transcript[i].agent} in round {game.transcript[i].round}" for i in turns])

    when = f"{agent} in round {game.round}, after {len(game.transcript)} turns,"
    if set(seen) == set(allowed):
        fail(f"{when} reads the texts in the order {name(seen)}; expected the order of speaking, {name(allowed)}")
    extra, missing = [i for i in seen if i not in allowed], [i for i in allowed if i not in seen]
    wrong = [f"reads the text of {name(extra)}"] * bool(extra) + [f"does not read that of {name(missing)}"] * bool(
        missing
    )
    fail(f"{when} {' and '.join(wrong)}; expected exactly D and memory={game.memory!r}")
