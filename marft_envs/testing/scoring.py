"""How an episode ends: what is paid, what is a fault, and that nothing tells the label before."""

from __future__ import annotations

from typing import Any

from marft_envs.testing.answers import GARBAGE, other_gold, right_answers, with_broken_grader, with_swapped_gold
from marft_envs.testing.case import Case, says
from marft_envs.testing.checking import expect
from marft_envs.testing.playing import Frame, Speak, frame, frames_differ, is_over, play_to_the_end, say_markers


def terminal_reward(case: Case) -> None:
    """The reward stands in env.rewards right after the last step, and comes with last() on the dead step."""
    env, game = case.reset()
    speak = says(right_answers(game))
    due = dict.fromkeys(env.possible_agents, 0.0)
    while not is_over(env):
        due[env.agent_selection] = 0.0
        env.step(speak(env, env.agent_selection, len(game.transcript)))
        due = {agent: due[agent] + env.rewards[agent] for agent in env.possible_agents}
    paid = {a: r + env.infos[a].get("format_bonus", 0.0) for a, r in game.reward(game.outcome).items()}
    booked = {agent: float(env.rewards[agent]) for agent in env.possible_agents}
    expect(booked == paid, f"env.rewards right after the last step is {booked}; expected {paid}")
    left = []
    while env.agents:
        agent = env.agent_selection
        _, reward, _, _, _ = env.last()
        expect(reward == due[agent], f"last() on the dead step of {agent} pays {reward}; expected {due[agent]}")
        env.step(None)
        left.append(agent)
    expect(sorted(left) == sorted(due), f"the dead steps were of {left}; expected one of each agent")


def wrong_answer_terminates(case: Case) -> None:
    """A graded end is a termination of everybody, however wrong the answer, and nothing says "not graded"."""
    env, _ = case.env()
    play_to_the_end(env, say_markers, seed=case.seed)
    for agent in env.agents:
        ends, fault = (bool(env.terminations[agent]), bool(env.truncations[agent])), env.infos[agent].get("not_graded")
        expect(fault is None, f"a wrong answer is not graded, says infos[{agent!r}]: {fault}; expected a verdict")
        expect(ends == (True, False), f"a wrong answer ends {agent} with {_ends(ends)}; expected a termination")


def broken_grader_truncates(case: Case) -> None:
    """A grader that raises ends the episode truncated, with reward 0 and the reason in every agent's info."""
    env, game = case.env()
    game.task = with_broken_grader(game.task)
    play_to_the_end(env, say_markers, seed=case.seed)
    for agent in env.agents:
        ends = bool(env.terminations[agent]), bool(env.truncations[agent])
        expect(ends == (False, True), f"a broken grader ends {agent} with {_ends(ends)}; expected a truncation")
        expect(env.rewards[agent] == 0, f"a broken grader pays {agent} {env.rewards[agent]}; expected 0")
        reason = env.infos[agent].get("not_graded")
        expect(reason, f"infos[{agent!r}]['not_graded'] is {reason!r} after a broken grader; expected the reason")


def _ends(ends: tuple[bool, bool]) -> str:
    return f"terminated={ends[0]}, truncated={ends[1]}"


def gold_scores_one(case: Case) -> None:
    """The team that gives the gold answer scores 1."""
    for index in case.indices:
        env, game = case.reset(index=index)
        answers = right_answers(game)
        play_to_the_end(env, says(answers), seed=case.seed, options={"index": index})
        score = game.outcome.score
        expect(score == 1.0, f"the right answers {answers!r:.120} to problem {index} score {score}; expected 1")


def garbage_scores_zero(case: Case) -> None:
    """Empty, broken, foreign and far too long replies of everybody score 0; they never raise and never are a fault."""
    env, game = case.env()
    for text in GARBAGE:
        play_to_the_end(env, lambda env, agent, turn, text=text: text, seed=case.seed)  # type: ignore[misc]
        fault = next((info["not_graded"] for info in env.infos.values() if "not_graded" in info), None)
        expect(fault is None, f"the reply {text!r:.60} is not graded ({fault}); expected score 0")
        expect(game.outcome.score == 0, f"the reply {text!r:.60} scores {game.outcome.score}; expected 0")


def no_label_leak(case: Case) -> None:
    """With another gold in its place everything before the end is the same, whatever the answers: right or wrong."""
    env, game = case.reset()
    task, index = game.task, game.problem.index
    right = right_answers(game)
    swapped = with_swapped_gold(task)
    other_gold(task, game.problem)
    for speak in (say_markers, says(right), says(dict.fromkeys(env.possible_agents, next(iter(right.values()))))):
        views = [_before_the_end(case, each, index, speak) for each in (task, swapped)]
        found = frames_differ(*views)
        expect(not found, f"with another gold for problem {index} the episode differs at {found}; expected no trace")


def _before_the_end(case: Case, task: Any, index: int, speak: Speak) -> list[Frame]:
    env, game = case.env(ansi=True)
    game.task = task
    env.reset(seed=case.seed, options={"index": index})
    frames = []
    while not is_over(env):
        frames.append(frame(env))
        env.step(speak(env, env.agent_selection, len(game.transcript)))
    return frames
