"""Environments whose episodes cannot be reproduced."""

import copy

import numpy as np

from marft_envs import Problem
from tests.marft_envs.testing.correct_task import INSTANCES, Game, Words, collector

WRONG = []
wrong = collector(WRONG)


@wrong(
    "same_seed_same_episode", "two episodes after reset(seed=0) differ at step 0 ['infos']['a_0']['episode']: 1, but 2"
)
class CountsEpisodes(Game):
    episodes = 0

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.episodes += 1
        self.infos["a_0"]["episode"] = self.episodes


@wrong("same_seed_same_episode", "episodes of two environments after reset(seed=0) differ at step 0 ['state']")
class KnowsItsNumber(Game):
    def __init__(self):
        super().__init__()
        self.number = next(INSTANCES)

    def state(self):
        name = {"role": "user", "name": "task", "content": str(self.number)}
        return {"messages": (name,), "reply_prefix": ""}


@wrong("no_seed_continues", "the second time")
class FreshEntropy(Game):
    def reset(self, seed=None, options=None):
        super().reset(np.random.default_rng().integers(2**31) if seed is None else seed, options)


@wrong("no_seed_continues", "6 resets, the first with a seed, all drew problem")
class SeedsAgain(Game):
    def reset(self, seed=None, options=None):
        super().reset(0, options)


@wrong("pinned_problem", 'reset(seed=0, options={"index": 0}) gave problem')
class IgnoresIndex(Game):
    def reset(self, seed=None, options=None):
        super().reset(seed)


@wrong("pinned_problem", "it raised KeyError")
class RefusesOptions(Game):
    def reset(self, seed=None, options=None):
        for key in options or {}:
            {"index": 1}[key]
        super().reset(seed, options)


class OtherPromptEachTime(Words):
    def problem(self, index):
        p = super().problem(index)
        return Problem(p.index, f"{p.prompt} ({next(INSTANCES)})", p.gold)


@wrong("pinned_problem", "problem 0 differs from reset to reset at [0]")
def other_prompt_each_time():
    return Game(OtherPromptEachTime())


@wrong("pinned_problem", 'reset(options={"index": -1}) begins an episode; expected an IndexError')
class CountsFromTheEnd(Game):
    def reset(self, seed=None, options=None):
        index = (options or {}).get("index")
        super().reset(seed, options if index is None else {**options, "index": index % self.task.size})


@wrong("fork", "it raised TypeError")
class CannotBeCopied(Game):
    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")


@wrong("fork", "copy.deepcopy after 3 turns changes the episode at")
class CopiesTheBeginning(Game):
    """Like EzPickle: the copy is made from the arguments of the constructor, without the episode."""

    def __deepcopy__(self, memo):
        twin = type(self)()
        twin.reset(seed=0)
        return twin


@wrong("fork", "playing a copy made by copy.deepcopy changed the original at")
class SharesTheEpisode(Game):
    def __deepcopy__(self, memo):
        twin = type(self)()
        vars(twin).update(vars(self))
        return twin


@wrong("fork", "after copy.deepcopy reset() draws problem")
class NewStream(Game):
    def __deepcopy__(self, memo):
        twin = type(self)()
        vars(twin).update({k: v.copy() if isinstance(v, (dict, list)) else v for k, v in vars(self).items()})
        twin._rounds = copy.deepcopy(self._rounds)
        twin.infos = {a: dict(i) for a, i in self.infos.items()}
        twin._rng = np.random.default_rng(99)
        return twin


@wrong("other_process", "differs in another process at step 0 ['infos']['a_0']['key']")
class KnowsTheProcess(Game):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.infos["a_0"]["key"] = hash("a text")
