"""check_env and check_task: what is right passes, and each check catches what is wrong on purpose."""

import copy
import functools
import itertools
import time
from typing import Literal

import gymnasium
import numpy as np
import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict, registry
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.game.rounds import Rounds
from marft_envs.game.spaces import UnicodeText
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.report import Report
from marft_envs.team.stop_rules import Agreement
from marft_envs.testing import ENV_CHECKS, TASK_CHECKS, ConformanceError, check_env, check_task, task_checks
from marft_envs.verdict import Outcome

ABC = ("a_0", "b_0", "c_0")


class Words(Task):
    """Say the word of the problem. Everything is right here."""

    name, size = "words", 40

    def __init__(self, seed=0, split="train"):
        self.seed, self.split = seed, split

    def problem(self, index):
        if not 0 <= index < self.size:
            raise IndexError(f"index={index}: expected 0 to {self.size - 1}")
        word = "".join(np.random.default_rng([self.seed, index, self.split == "test"]).permutation(list("abcdefgh")))
        return Problem(int(index), f"Say the word number {index}.", word, {a: f"secret of {a}" for a in ABC}, {"n": 1})

    def grade(self, answer, problem):
        return Verdict.correct() if answer.strip() == problem.gold else Verdict.wrong("another word")


class Game(FlexMG):
    """Three agents, a_0 -> b_0 -> c_0, two rounds; subclasses break one thing each."""

    def __init__(self, task=None, dependency="chain", **arguments):
        team = Team({a: Role(f"You are {a}.") for a in ABC}, dependency)
        super().__init__(task or Words(), team, **{"rounds": 2, "memory": "parents", **arguments})


# ---- right environments


@pytest.mark.parametrize(
    "make",
    [
        Game,
        functools.partial(Game, dependency="none", memory="none"),
        functools.partial(Game, dependency="full", memory="own", order="random", rounds=3),
        functools.partial(Game, dependency=["chain", "none"], memory="parents"),
        functools.partial(Game, dependency=Orchestrated("b_0"), memory="parents"),
        functools.partial(Game, dependency=Orchestrated("a_0"), memory="all", order="random"),
        functools.partial(Game, reward="last", format_bonus=0.25),
        "math_v0",
        "marft_envs.math_v0:raw_env",
    ],
)
def test_right_environments_pass_every_check(make):
    report = check_env(make)
    assert report.passed == tuple(ENV_CHECKS)
    assert not report.not_checked


def test_a_team_that_stops_by_agreement_passes():
    roles = {a: Role(f"You are {a}.") for a in ABC}
    team = Team(roles, "chain", stop=Agreement(("a_0", "b_0")))
    assert "no_label_leak" in check_env(lambda: FlexMG(Words(), team, rounds=3)).passed


def test_what_cannot_be_checked_is_said():
    report = check_env(lambda: Game(), skip=["fork"])
    assert set(report.not_checked) == {"fork", "other_process"}
    assert "does not pickle" in report.not_checked["other_process"]
    assert "other_process was not checked: another process cannot make it" in str(report)
    tight = Team({"a_0": Role(max_chars=3), "b_0": Role()})
    report = check_env(lambda: FlexMG(Words(), tight), only=["visibility"])
    assert "the limits of ['a_0'] cut" in report.not_checked["visibility"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_env(7), TypeError, "env_fn=7: expected a function"),
        (lambda: check_env("maths_v0"), ValueError, "environment 'maths_v0': expected one of"),
        (lambda: check_env(Game, only=["forks"]), ValueError, r"only=\['forks'\]: expected some of interface"),
        (
            lambda: check_env(lambda: Game(defer_grading=True)),
            ValueError,
            "defer_grading=True: expected an environment",
        ),
        (lambda: check_env(lambda: Game(max_turns=3)), ValueError, "max_turns=3: expected an environment"),
        (lambda: check_task(dict), TypeError, "got dict, expected a Task"),
        (lambda: check_task(Words, skip=["colour"]), ValueError, r"skip=\['colour'\]: expected some of attributes"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- wrong environments: check, message, environment

WRONG = []


def wrong(check, message):
    """Keep the decorated class (or function) as one that ``check`` must refuse with ``message``."""

    def keep(make):
        WRONG.append(pytest.param(check, message, make, id=f"{check}-{make.__name__}"))
        return make

    return keep


@wrong("interface", "env.unwrapped has no problem; expected a marft_envs.FlexMG")
class HidesProblem(Game):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        del self.problem


@wrong("names_and_metadata", "metadata['name'] is 'Words'; expected a name as math_v0")
def bad_name():
    return Game(name="Words")


@wrong("names_and_metadata", "is_parallelizable'] is True; expected False, as D has edges")
class SaysParallel(Game):
    def __init__(self):
        super().__init__()
        self.metadata["is_parallelizable"] = True


@wrong("names_and_metadata", "agent names ['boss'] do not end in _N")
class OddAgent(Game):
    def __init__(self):
        super().__init__()
        self.possible_agents = ["boss"]


@wrong("same_spaces", "action_space('a_0') gives another object on the second call")
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


@wrong("wrong_type", "a_0 may reply None; expected a TypeError that names a_0")
class TakesAnything(Game):
    def step(self, action):
        super().step(action if self.over else str(action))


@wrong("wrong_type", "the TypeError for None is 'not a text'; expected the name a_0")
class NamesNobody(Game):
    def step(self, action):
        if not self.over and not isinstance(action, str):
            raise TypeError("not a text")
        super().step(action)


@wrong("wrong_type", "the refused None of a_0 changed the episode at ['infos']['a_0']")
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


class Reordered(Rounds):
    """Rounds whose execution order ``reorder`` changes."""

    __slots__ = ("reorder",)

    def begin_round(self, number):
        super().begin_round(number)
        self.order = self.reorder(self.order)


class Reorders(Game):
    """The order of each round is ``reorder(order)``."""

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
    """Reads the texts of ``shown(agent)``'s turns."""

    def observe(self, agent):
        seen = super().observe(agent)
        head = [m for m in seen["messages"] if m["name"] in (agent, "task") and m["role"] != "assistant"]
        said = [{"role": "user", "name": t.agent, "content": t.text} for t in self.shown(agent)]
        return {"messages": (*head, *said), "reply_prefix": ""}


@wrong("visibility", "c_0 in round 0, after 1 turns, reads the text of ['a_0 in round 0']; expected exactly D")
class ShowsAll(Shows):
    def __init__(self):
        super().__init__(rounds=1, memory="none")

    def shown(self, agent):
        return self.transcript if agent != "a_0" else []


@wrong("visibility", "b_0 in round 0, after 1 turns, does not read that of ['a_0 in round 0']")
class ShowsNobody(Shows):
    def shown(self, agent):
        return []


@wrong(
    "visibility",
    "a_0 in round 1, after 3 turns, reads the text of ['b_0 in round 0', 'c_0 in round 0']; expected exactly",
)
class RemembersAll(Game):
    def __init__(self):
        super().__init__()
        team = self.team
        self._rounds = Rounds(team.schedule, team.agents, rounds=2, memory="all", order="stable")


@wrong("visibility", "b_0 in round 1, after 4 turns, does not read that of ['a_0 in round 0']")
class ForgetsParents(Game):
    def __init__(self):
        super().__init__()
        team = self.team
        self._rounds = Rounds(team.schedule, team.agents, rounds=2, memory="own", order="stable")


@wrong(
    "visibility", "reads the texts in the order ['b_0 in round 0', 'a_0 in round 0']; expected the order of speaking"
)
class WrongOrder(Shows):
    def __init__(self):
        super().__init__(dependency="full", rounds=1, memory="none")

    def shown(self, agent):
        turns = list(self.transcript) if agent == self.agent_selection and not self.over else []
        return reversed(turns)


@wrong("visibility", "a_0 in round 0, after 3 turns, reads the text of ['c_0 in round 0']")
class ShowsLastToFirst(Shows):
    """A leak to an agent whose turn it is not, after the end."""

    def __init__(self):
        super().__init__(rounds=1, memory="none", dependency="none")

    def shown(self, agent):
        return self.transcript[2:] if agent == "a_0" else []


@wrong(
    "same_seed_same_episode", "two episodes after reset(seed=0) differ at step 0 ['infos']['a_0']['episode']: 1, but 2"
)
class CountsEpisodes(Game):
    episodes = 0

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.episodes += 1
        self.infos["a_0"]["episode"] = self.episodes


_instances = itertools.count()


@wrong("same_seed_same_episode", "episodes of two instances after reset(seed=0) differ at step 0 ['state']")
class KnowsItsNumber(Game):
    def __init__(self):
        super().__init__()
        self.number = next(_instances)

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
        return Problem(p.index, f"{p.prompt} ({next(_instances)})", p.gold)


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
    """What EzPickle does: the copy is made from the arguments, and the episode is lost."""

    def __deepcopy__(self, memo):
        twin = type(self)()
        twin.reset(seed=0)
        return twin


@wrong("fork", "playing on a copy made by copy.deepcopy changed the original at")
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


class PaysNothingLast(Game):
    def last(self, observe=True):
        observation, _, *rest = super().last(observe)
        return observation, 0.0, *rest


wrong("terminal_reward", "last() on the dead step of a_0 pays 0.0; expected 1.0")(PaysNothingLast)


@wrong("terminal_reward", "env.rewards right after the last step is {'a_0': 0.0, 'b_0': 0.0, 'c_0': 0.0}; expected")
class PaysLate(Game):
    def _finish(self):
        super()._finish()
        self.rewards = dict.fromkeys(ABC, 0.0)


@wrong("wrong_answer_terminates", "a wrong answer ends a_0 with terminated=False, truncated=True")
class TruncatesWrong(Game):
    def _book(self, outcome, rewards):
        super()._book(outcome, rewards)
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


@wrong("gold_scores_one", "no way of writing the gold")
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
    """Feedback on a right answer, which shows only when somebody gives one."""

    def observe(self, agent):
        seen = super().observe(agent)
        right = any(turn.text == self.problem.gold for turn in self.transcript)
        return {**seen, "reply_prefix": "That was right. "} if right else seen


@wrong("no_label_leak", "the episode differs at 2 steps, but 5")
class StopsWhenRight(Game):
    def _end_of_order(self, rounds):
        right = self.transcript[-1].text == self.problem.gold
        return self._finish() if right else super()._end_of_order(rounds)


@pytest.mark.parametrize(("check", "message", "make"), WRONG)
def test_each_check_catches_what_is_wrong(check, message, make):
    with pytest.raises(ConformanceError) as caught:
        check_env(make, only=[check])
    assert message in str(caught.value)
    assert f"fails the check '{check}': " in str(caught.value)


def test_every_check_of_environments_has_been_seen_to_fail():
    assert {parameters.values[0] for parameters in WRONG} == set(ENV_CHECKS)


def test_the_module_s_name_is_known_from_a_text(monkeypatch):
    monkeypatch.setattr(marft_envs.math_v0, "env", lambda: Game(name="maths_v1"))
    with pytest.raises(
        ConformanceError, match=r"metadata\['name'\] is 'maths_v1'; expected the module's name, 'math_v0'"
    ):
        check_env("marft_envs.math_v0:env", only=["names_and_metadata"])


# ---- wrong tasks


class Unnamed(Words):
    name = None


class Empty(Words):
    size = 0

    def problem(self, index):
        return Words().problem(index)


class WrongIndex(Words):
    def problem(self, index):
        return Problem(super().problem(index).index + 1, "?", "x")


class BytesPrompt(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, b"?", "x")


class SurrogatePrompt(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "\ud800", "x")


class PrivateList(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "?", "x", ["secret"])


class Nothing(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "", "x")


class OneGenerator(Words):
    """Problems from one stream: what index 0 is depends on what was asked before."""

    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def problem(self, index):
        return Problem(super().problem(index).index, str(self.rng.random()), "x")


class HashSeed(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, str(hash(f"word {index}")), "x")


class NoEnd(Words):
    def problem(self, index):
        return Problem(int(index), "?", "x")


class GoldIsPartial(Words):
    def grade(self, answer, problem):
        good = answer == problem.gold
        return Verdict.partial(0.9, "nearly") if good else super().grade("", problem)


class LikesEmpty(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer.strip() else Verdict.partial(0.1, "brevity")


class ReturnsBool(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer == problem.gold else False


class ReturnsFloat(Words):
    def grade(self, answer, problem):
        return float(answer == problem.gold)


class ReturnsNone(Words):
    def grade(self, answer, problem):
        super().grade(answer, problem)


class FaultsOnUnicode(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer.isascii() else Verdict.not_graded("what is this?")


class RaisesOnSurrogates(Words):
    def grade(self, answer, problem):
        return super().grade(answer.encode().decode(), problem)


class CorrectOnGarbage(Words):
    def grade(self, answer, problem):
        return Verdict.correct() if "boxed" in answer else super().grade(answer, problem)


class Moody(Words):
    mood = itertools.count()

    def grade(self, answer, problem):
        right = super().grade(answer, problem)
        return right if right.outcome is Outcome.CORRECT else Verdict.wrong(f"mood {next(self.mood)}")


class Slow(Words):
    def grade(self, answer, problem):
        if len(answer) > 1_000_000:
            time.sleep(0.3)
        return super().grade(answer, problem)


class AddedSeed(Words):
    size = None

    def problem(self, index):
        word = "".join(np.random.default_rng(self.seed + index).permutation(list("abcdefgh")))
        return Problem(int(index), f"Say {word[::-1]} the other way round.", word)


class OneForBoth(Words):
    """The argument is there, and nothing reads it."""

    def problem(self, index):
        self.split = "train"
        return super().problem(index)


class Overlapping(Task):
    """Splits of its own names, which overlap where the prompt, the private parts and the gold agree."""

    name = "overlapping"

    def __init__(self, *, split: Literal["train", "dev"] = "train") -> None:
        self.size, self.split = (6 if split == "train" else 4), split

    def problem(self, index):
        if self.split == "train":
            return Problem(index, f"b {index - 1}" if index == 5 else f"a {index}", "yes", {"a_0": "x"})
        return Problem(index, f"b {index + 1}", "yes", {"a_0": "x" if index == 3 else "y"})

    def grade(self, answer, problem):
        return Verdict.correct() if answer == "yes" else Verdict.wrong("no")


class TellsGold(Words):
    def problem(self, index):
        p = super().problem(index)
        return Problem(p.index, f"{p.prompt} It is {p.gold}.", p.gold)


class Numbers(Task):
    """Count the letters: golds of one or two characters, some of them in the text by chance."""

    name, size = "numbers", 30

    def text(self, index, gold):
        return f"How many letters has {'x' * gold}, of {gold - 1} to {gold + index % 2} words?"

    def problem(self, index):
        return Problem(index, self.text(index, index % 12), index % 12)

    def grade(self, answer, problem):
        return Verdict.correct() if answer == str(problem.gold) else Verdict.wrong("another number")


class TellsNumber(Numbers):
    def text(self, index, gold):
        return f"{super().text(index, gold)} The answer is {gold}."


class EndsWithNumber(Numbers):
    def text(self, index, gold):
        return f"{super().text(index, gold)}{' ' * (1 + index)}{gold}"


class YesOrNo(Numbers):
    def problem(self, index):
        return Problem(index, f"Is {index} odd, yes or no?", ("no", "yes")[index % 2], {"a_0": "Say yes or no."})


class TellsOneAgent(YesOrNo):
    def problem(self, index):
        p = super().problem(index)
        return Problem(index, p.prompt, p.gold, {"b_0": f"I think {'so: ' * index}{p.gold} is right."})


class Choices(Numbers):
    """The gold is one of those that stand in the text."""

    def problem(self, index):
        words = np.random.default_rng(index).permutation(["pears", "apples", "plums", "oranges"])
        return Problem(index, f"What does the shop {index} not have: {', '.join(words)}?", str(words[index % 4]))


class TellsTests(Words):
    def problem(self, index):
        p = super().problem(index)
        tests = {"tests": [p.gold, p.gold[::-1]]}
        return Problem(p.index, f"{p.prompt} {index * '?'} {tests['tests']}", tests)


class KnowsNothing(Words):
    def progress(self, problem, turns):
        return []


class KnowsFloats(Words):
    def progress(self, problem, turns):
        return [0.5] * len(turns)


class KnowsItsText(Words):
    def progress(self, problem, turns):
        return [int(turn.text == problem.gold) for turn in turns]


class KnowsTheEnd(Words):
    def progress(self, problem, turns):
        return [len(turns)] * len(turns)


@pytest.mark.parametrize(
    ("check", "message", "task"),
    [
        ("attributes", "name is None; expected a word", Unnamed),
        ("attributes", "size is 0; expected None or an int of at least 1", Empty),
        ("problem_types", "problem(0).index is 1; expected 0", WrongIndex),
        ("problem_types", "problem(0).prompt is a bytes; expected str", BytesPrompt),
        ("problem_types", "problem(0).prompt holds lone surrogates", SurrogatePrompt),
        ("problem_types", "problem(0).private is no mapping but ['secret']", PrivateList),
        ("problem_types", "problem(0) has neither a prompt nor a private part", Nothing),
        ("pure_problem", "again differs at ['prompt']", OneGenerator),
        ("other_process", "the problems differ in another process at [0]['prompt']", HashSeed),
        ("index_errors", "problem(40) of a task of size 40 is Problem(index=40", NoEnd),
        ("gold_is_correct", "no way of writing the gold", GoldIsPartial),
        ("garbage_is_not_correct", "an empty reply scores 0.1; expected 0", LikesEmpty),
        (
            "garbage_is_not_correct",
            "ReturnsBool.grade returned False for the reply ''; expected a Verdict",
            ReturnsBool,
        ),
        (
            "gold_is_correct",
            "ReturnsFloat.grade returned 1.0 for the reply 'cedgfabh'; expected a Verdict",
            ReturnsFloat,
        ),
        (
            "gold_is_correct",
            "ReturnsNone.grade returned None for the reply 'cedgfabh'; expected a Verdict",
            ReturnsNone,
        ),
        ("garbage_is_not_correct", "expected wrong, no answer or partial", FaultsOnUnicode),
        ("garbage_is_not_correct", "raises UnicodeEncodeError", RaisesOnSurrogates),
        ("garbage_is_not_correct", "expected wrong, no answer or partial", CorrectOnGarbage),
        ("garbage_is_not_correct", "expected the same", Moody),
        ("huge_replies", "s; expected under 0.2 s, in linear time", Slow),
        ("seeds_differ", "seeds 0 and 1 share 198 of 200 items, unrelated seeds at most 2", AddedSeed),
        (
            "splits_apart",
            "problem 0 of split='test' is problem 0 of split='train', 'Say the word number 0.'; expected no problem in "
            "two splits",
            OneForBoth,
        ),
        ("splits_apart", "problem 3 of split='dev' is problem 5 of split='train', 'b 4'", Overlapping),
        (
            "no_gold_in_public",
            "every problem's text holds its gold behind '. It is ', 'cedgfabh' in the first",
            TellsGold,
        ),
        ("no_gold_in_public", "holds its gold behind 'swer is ', '0' in the first; expected it hidden", TellsNumber),
        ("no_gold_in_public", "every problem's text holds its gold at the end, '0' in the first", EndsWithNumber),
        ("no_gold_in_public", "holds its gold before ' is righ', 'no' in the first", TellsOneAgent),
        ("no_gold_in_public", "every problem's text holds all of its gold, {'tests': ['cedgfabh', '", TellsTests),
        ("progress_before_turns", "turns on problem 0 is []; expected one whole number each", KnowsNothing),
        ("progress_before_turns", "is [0.5, 0.5, 0.5", KnowsFloats),
        ("progress_before_turns", "turn 0 is the last and has another text; expected what is known", KnowsItsText),
        ("progress_before_turns", "but is [1] when turn 0 is the last", KnowsTheEnd),
    ],
)
def test_each_check_catches_a_wrong_task(monkeypatch, check, message, task):
    monkeypatch.setattr(task_checks, "HUGE_SECONDS", 0.2)
    with pytest.raises(ConformanceError) as caught:
        check_task(task, only=[check])
    assert message in str(caught.value)
    assert f"fails the check '{check}': " in str(caught.value)


def test_what_is_no_verdict_is_told_by_check_env_too():
    with pytest.raises(
        ConformanceError, match=r"ReturnsFloat\.grade returned 1\.0 for the reply .*; expected a Verdict"
    ):
        check_env(lambda: Game(ReturnsFloat()), only=["gold_scores_one"])
    with pytest.raises(ConformanceError, match=r"ReturnsFloat\.grade returned 0\.0, expected a Verdict"):
        check_env(lambda: Game(ReturnsFloat()), only=["wrong_answer_terminates"])


def test_every_check_of_tasks_has_been_seen_to_fail():
    (parameters,) = (m.args[1] for m in test_each_check_catches_a_wrong_task.pytestmark if m.name == "parametrize")
    assert {check for check, *_ in parameters} == set(TASK_CHECKS)


def test_right_tasks_pass_every_check():
    assert check_task(Words).passed == tuple(TASK_CHECKS)
    report = check_task(Words())
    assert set(report.not_checked) == {"seeds_differ", "splits_apart"}


class Seedless(Words):
    def __init__(self):
        super().__init__()


def test_a_class_without_a_seed_is_told_so():
    reason = check_task(Seedless, only=["seeds_differ"]).not_checked["seeds_differ"]
    assert reason == "Seedless takes no seed="


def test_a_name_that_only_this_process_knows_is_told_so(monkeypatch):
    monkeypatch.setattr(registry.registry, "_REGISTERED", dict(registry.registry._REGISTERED))
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    marft_envs.register("known_here")(Words)
    with pytest.raises(ConformanceError, match=r"UnknownEnvironment.*expected a name that a new process can import"):
        check_env(functools.partial(marft_envs.make, "known_here_v0"), only=["other_process"])


@pytest.mark.parametrize("task", [Numbers, YesOrNo, Choices])
def test_a_gold_that_stands_in_the_text_by_chance_or_among_others_is_hidden(task):
    assert check_task(task, only=["no_gold_in_public"]).passed == ("no_gold_in_public",)


class Knows(Words):
    """Whether the word has been said before, by turn."""

    def progress(self, problem, turns):
        return [int(any(t.text == problem.gold for t in turns[:k])) for k in range(len(turns))]


@pytest.mark.parametrize("task", [Knows, Words, Relay, functools.partial(Report, agents=("a_0", "b_0", "c_0"))])
def test_what_is_known_before_each_turn_is_right_progress(task):
    assert check_task(task, only=["progress_before_turns"]).passed == ("progress_before_turns",)


class Formatted(WantsFormat):
    """As WantsFormat, but it says how a gold is answered."""

    def reference_answer(self, problem):
        return f"word: {problem.gold}"


class Several(Words):
    """A gold for each of two answering agents."""

    def problem(self, index):
        p = super().problem(index)
        return Problem(p.index, p.prompt, {"a_0": p.gold, "b_0": p.gold[::-1]}, p.private)


def test_a_task_can_say_how_its_gold_is_answered():
    assert "gold_is_correct" in check_task(Formatted).passed
    assert "gold_scores_one" in check_env(lambda: Game(Formatted())).passed


def test_several_golds():
    assert "gold_is_correct" in check_task(Several).passed
    team = Team({"a_0": Role(answers=True), "b_0": Role(answers=True, reply_prefix=" "), "c_0": Role()}, "none")
    report = check_env(lambda: FlexMG(Several(), team, rounds=2))
    assert set(report.passed) == set(ENV_CHECKS) - {"other_process"}
