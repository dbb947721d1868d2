"""Environments with a wrong order of turns or wrong visibility."""

from marft_envs.game.rounds import Rounds
from tests.marft_envs.testing.correct_task import Game, collector

WRONG = []
wrong = collector(WRONG)


class Reordered(Rounds):
    """Rounds in which ``reorder`` changes the execution order."""

    __slots__ = ("reorder",)

    def begin_round(self, number):
        super().begin_round(number)
        self.order = self.reorder(self.order)


class Reorders(Game):
    """Every round is played in the order ``reorder(order)``."""

    def __init__(self):
        super().__init__()
        team = self.team
        self._rounds = Reordered(team.schedule, team.agents, rounds=2, memory="parents", order="stable")
        self._rounds.reorder = self.reorder


@wrong("turn_order", "c_0 acts before ['b_0'] in round 0")
class Backwards(Reorders):
    def reorder(self, order):
        return tuple(reversed(order))


@wrong("turn_order", "a_0 acts twice in round 0")
class Repeats(Reorders):
    def reorder(self, order):
        return ("a_0", *order)


@wrong("turn_order", "round 0 ended without ['c_0']")
class LeavesOut(Reorders):
    def reorder(self, order):
        return order[:2]


@wrong("round_count", "an episode has 1 rounds; expected rounds=2")
class EndsEarly(Game):
    def _end_of_order(self, rounds):
        self._finish()


class Shows(Game):
    """An agent sees the messages of the turns that ``shown(agent)`` returns."""

    def observe(self, agent):
        seen = super().observe(agent)
        head = [m for m in seen["messages"] if m["name"] in (agent, "task") and m["role"] != "assistant"]
        said = [{"role": "user", "name": t.agent, "content": t.text} for t in self.shown(agent)]
        return {"messages": (*head, *said), "reply_prefix": ""}


@wrong(
    "visibility",
    "c_0 in round 0, after 1 turns, sees the messages of ['a_0 in round 0']; expected exactly those that D",
)
class ShowsAll(Shows):
    def __init__(self):
        super().__init__(rounds=1, memory="none")

    def shown(self, agent):
        return self.transcript if agent != "a_0" else []


@wrong("visibility", "b_0 in round 0, after 1 turns, does not see the messages of ['a_0 in round 0']")
class ShowsNobody(Shows):
    def shown(self, agent):
        return []


@wrong(
    "visibility",
    "a_0 in round 1, after 3 turns, sees the messages of ['b_0 in round 0', 'c_0 in round 0']; expected exactly",
)
class RemembersAll(Game):
    def __init__(self):
        super().__init__()
        team = self.team
        self._rounds = Rounds(team.schedule, team.agents, rounds=2, memory="all", order="stable")


@wrong("visibility", "b_0 in round 1, after 4 turns, does not see the messages of ['a_0 in round 0']")
class ForgetsParents(Game):
    def __init__(self):
        super().__init__()
        team = self.team
        self._rounds = Rounds(team.schedule, team.agents, rounds=2, memory="own", order="stable")


@wrong(
    "visibility", "sees the messages in the order ['b_0 in round 0', 'a_0 in round 0']; expected the order of the turns"
)
class WrongOrder(Shows):
    def __init__(self):
        super().__init__(dependency="full", rounds=1, memory="none")

    def shown(self, agent):
        turns = list(self.transcript) if agent == self.agent_selection and not self.over else []
        return reversed(turns)


@wrong("visibility", "a_0 in round 0, after 3 turns, sees the messages of ['c_0 in round 0']")
class ShowsLastToFirst(Shows):
    """After the end, a message leaks to an agent whose turn it is not."""

    def __init__(self):
        super().__init__(rounds=1, memory="none", dependency="none")

    def shown(self, agent):
        return self.transcript[2:] if agent == "a_0" else []
