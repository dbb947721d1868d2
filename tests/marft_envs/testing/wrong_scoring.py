"""Environments with wrong rewards or ends, or that reveal the gold."""

from marft_envs import Verdict
from tests.marft_envs.testing.correct_task import ABC, Game, Words, collector

WRONG = []
wrong = collector(WRONG)


class PaysNothingLast(Game):
    def last(self, observe=True):
        observation, _, *rest = super().last(observe)
        return observation, 0.0, *rest


wrong("terminal_reward", "last() on the dead step of a_0 returns the reward 0.0; expected 1.0")(PaysNothingLast)


@wrong("terminal_reward", "env.rewards after the last step is {'a_0': 0.0, 'b_0': 0.0, 'c_0': 0.0}; expected")
class PaysLate(Game):
    def _finish(self):
        super()._finish()
        self.rewards = dict.fromkeys(ABC, 0.0)


@wrong("wrong_answer_terminates", "a wrong answer ends a_0 with terminated=False, truncated=True")
class TruncatesWrong(Game):
    def _assign_rewards(self, outcome, rewards):
        super()._assign_rewards(outcome, rewards)
        self.terminations, self.truncations = self.truncations, self.terminations


@wrong("broken_grader_truncates", "a broken grader ends a_0 with terminated=True, truncated=False")
class CountsFaultsAsWrong(Game):
    def grade(self):
        return {a: v if v.graded else Verdict.wrong("an exception") for a, v in super().grade().items()}


@wrong("broken_grader_truncates", "infos['b_0']['not_graded'] is None after a broken grader; expected the reason")
class TellsOnlyOne(Game):
    def _truncate(self, key, reason):
        super()._truncate(key, reason)
        for agent in ("b_0", "c_0"):
            self.infos[agent].clear()


class WantsFormat(Words):
    def grade(self, answer, problem):
        return super().grade(answer.removeprefix("word: ") if answer.startswith("word: ") else "", problem)


@wrong("gold_scores_one", "no form of the gold")
def wants_format():
    return Game(WantsFormat())


@wrong("gold_scores_one", "to problem 0 score 0.0; expected 1")
class GradesTheFirst(Game):
    def answers(self):
        return {"c_0": (self.transcript[0].text, self.problem)}


class RaisesOnEmpty(Words):
    def grade(self, answer, problem):
        return super().grade(answer.split()[0], problem)


@wrong("garbage_scores_zero", "the reply '' is not graded (c_0: IndexError: list index out of range)")
def raises_on_empty():
    return Game(RaisesOnEmpty())


class PaysLength(Words):
    def grade(self, answer, problem):
        return Verdict.partial(0.5, "long") if len(answer) > 1_000 else super().grade(answer, problem)


@wrong("garbage_scores_zero", "scores 0.5; expected 0")
def pays_length():
    return Game(PaysLength())


@wrong("garbage_scores_zero", "it raised ValueError: c_0 says too much")
class RefusesLong(Game):
    def step(self, action):
        if action and len(action) > 9_000:
            raise ValueError("c_0 says too much")
        super().step(action)


@wrong("no_label_leak", "differs at step 0 ['infos']['a_0']['gold']")
class GoldInInfos(Game):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.infos["a_0"]["gold"] = self.problem.gold


@wrong("no_label_leak", "differs at step 0 ['render']")
class GoldInRender(Game):
    def render(self):
        return f"{super().render()} {self.problem.gold}"


@wrong("no_label_leak", "differs at step 3 ['observation']")
class TellsWhoIsRight(Game):
    """The observation reveals that an agent gave the correct answer."""

    def observe(self, agent):
        seen = super().observe(agent)
        right = any(turn.text == self.problem.gold for turn in self.transcript)
        return {**seen, "reply_prefix": "That was right. "} if right else seen


@wrong("no_label_leak", "the episode differs at 2 steps, but 5")
class StopsWhenRight(Game):
    def _end_of_order(self, rounds):
        right = self.transcript[-1].text == self.problem.gold
        return self._finish() if right else super()._end_of_order(rounds)
