"""Environments with a wrong interface."""

from marft_envs.game.spaces import UnicodeText
from tests.marft_envs.testing.correct_task import Game, collector

WRONG = []
wrong = collector(WRONG)


@wrong("interface", "env.unwrapped has no problem; expected a marft_envs.FlexMG")
class HidesProblem(Game):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        del self.problem


@wrong("names_and_metadata", "metadata['name'] is 'Words'; expected a name like math_v0")
def bad_name():
    return Game(name="Words")


@wrong("names_and_metadata", "is_parallelizable'] is True; expected False, because D has or may have edges")
class SaysParallel(Game):
    def __init__(self):
        super().__init__()
        self.metadata["is_parallelizable"] = True


@wrong("names_and_metadata", "agent names ['boss'] do not end in _N")
class OddAgent(Game):
    def __init__(self):
        super().__init__()
        self.possible_agents = ["boss"]


@wrong("same_spaces", "action_space('a_0') returns another object on the second call")
class NewSpaces(Game):
    def action_space(self, agent):
        return UnicodeText(100)


@wrong("membership", "observation of a_0 after 6 turns, after the end is not in its observation space")
class NothingAfterTheEnd(Game):
    def observe(self, agent):
        return super().observe(agent) if self.agents else None


@wrong("membership", "the observation of b_0 after 0 turns is not in its observation space")
class NothingForOthers(Game):
    def observe(self, agent):
        return super().observe(agent) if agent == self.agent_selection else {}


@wrong("membership", "the state after 1 turns is not in state_space")
class StateWithTuples(Game):
    def state(self):
        return super().state() if not self.transcript else tuple(self.transcript)


@wrong("membership", "observe('a_0') and last() after 0 turns differ at ['reply_prefix']")
class LastSaysMore(Game):
    def last(self, observe=True):
        observation, *rest = super().last(observe)
        return {**observation, "reply_prefix": "Well,"}, *rest


@wrong("wrong_type", "step(None) of a_0 is accepted; expected a TypeError that names a_0")
class TakesAnything(Game):
    def step(self, action):
        super().step(action if self.over else str(action))


@wrong("wrong_type", "the TypeError for None is 'not a string'; expected the agent's name, a_0")
class NamesNobody(Game):
    def step(self, action):
        if not self.over and not isinstance(action, str):
            raise TypeError("not a string")
        super().step(action)


@wrong("wrong_type", "the rejected None of a_0 changed the episode at ['infos']['a_0']")
class RemembersRefused(Game):
    def step(self, action):
        if not isinstance(action, str):
            self.infos[self.agent_selection]["refused"] = repr(action)
        super().step(action)


@wrong("after_the_end", "it raised KeyError: 'a_0'")
class ForgetsTheDead(Game):
    def observe(self, agent):
        if not self.agents:
            raise KeyError(agent)
        return super().observe(agent)
