"""Checks of how an episode ends: rewards, terminations, faults of the grader, and that nothing reveals the gold."""

from __future__ import annotations

from typing import Any

from marft_envs.testing.checking import expect
from marft_envs.testing.env_case import EnvCase, reply_from
from marft_envs.testing.episodes import (
    Frame,
    ReplyFunction,
    first_frame_difference,
    frame,
    is_over,
    play_to_the_end,
    reply_with_marker,
)
from marft_envs.testing.task_variants import (
    GARBAGE,
    correct_replies,
    other_gold,
    with_broken_grader,
    with_swapped_gold,
)


def terminal_reward(case: EnvCase) -> None:
    """The reward is in env.rewards after the last step, and in last() on each agent's dead step."""
    env, game = case.reset()
    reply = reply_from(correct_replies(game))
    cumulative = dict.fromkeys(env.possible_agents, 0.0)
    while not is_over(env):
        cumulative[env.agent_selection] = 0.0  # as in PettingZoo, an agent's sum restarts when it acts
        env.step(reply(env, env.agent_selection, len(game.transcript)))
        cumulative = {agent: cumulative[agent] + env.rewards[agent] for agent in env.possible_agents}
    expected = {a: r + env.infos[a].get("format_bonus", 0.0) for a, r in game.reward(game.outcome).items()}
    actual = {agent: float(env.rewards[agent]) for agent in env.possible_agents}
    expect(actual == expected, f"env.rewards after the last step is {actual}; expected {expected}")
    left = []
    while env.agents:
        agent = env.agent_selection
        _, reward, _, _, _ = env.last()
        expect(
            reward == cumulative[agent],
            f"last() on the dead step of {agent} returns the reward {reward}; expected {cumulative[agent]}",
        )
        env.step(None)
        left.append(agent)
    expect(sorted(left) == sorted(cumulative), f"the dead steps were those of {left}; expected one of each agent")


def wrong_answer_terminates(case: EnvCase) -> None:
    """A wrong answer is graded and terminates all agents."""
    env, _ = case.env()
    play_to_the_end(env, reply_with_marker, seed=case.seed)
    for agent in env.agents:
        ends, reason = (bool(env.terminations[agent]), bool(env.truncations[agent])), env.infos[agent].get("not_graded")
        expect(
            reason is None,
            f"infos[{agent!r}]['not_graded'] of a wrong answer is {reason!r:.300}; expected a graded answer",
        )
        expect(ends == (True, False), f"a wrong answer ends {agent} with {_ends(ends)}; expected a termination")


def broken_grader_truncates(case: EnvCase) -> None:
    """A grader that raises truncates all agents, with reward 0 and the reason in every info."""
    env, game = case.env()
    game.task = with_broken_grader(game.task)
    play_to_the_end(env, reply_with_marker, seed=case.seed)
    for agent in env.agents:
        ends = bool(env.terminations[agent]), bool(env.truncations[agent])
        expect(ends == (False, True), f"a broken grader ends {agent} with {_ends(ends)}; expected a truncation")
        expect(env.rewards[agent] == 0, f"a broken grader gives {agent} the reward {env.rewards[agent]}; expected 0")
        reason = env.infos[agent].get("not_graded")
        expect(reason, f"infos[{agent!r}]['not_graded'] is {reason!r} after a broken grader; expected the reason")


def _ends(ends: tuple[bool, bool]) -> str:
    return f"terminated={ends[0]}, truncated={ends[1]}"


def gold_scores_one(case: EnvCase) -> None:
    """A team that answers with the gold has score 1."""
    for index in case.indices:
        env, game = case.reset(index=index)
        replies = correct_replies(game)
        play_to_the_end(env, reply_from(replies), seed=case.seed, options={"index": index})
        score = game.outcome.score
        expect(score == 1.0, f"the correct replies {replies!r:.120} to problem {index} score {score}; expected 1")


def garbage_scores_zero(case: EnvCase) -> None:
    """Empty, broken, foreign-language and very long replies of all agents score 0, and are never a fault."""
    env, game = case.env()
    for text in GARBAGE:
        play_to_the_end(env, lambda env, agent, turn, text=text: text, seed=case.seed)  # type: ignore[misc]
        reason = next((info["not_graded"] for info in env.infos.values() if "not_graded" in info), None)
        expect(reason is None, f"the reply {text!r:.60} is not graded ({reason}); expected score 0")
        expect(game.outcome.score == 0, f"the reply {text!r:.60} scores {game.outcome.score}; expected 0")


def no_label_leak(case: EnvCase) -> None:
    """With another gold, everything before the end is the same, whether the replies are correct or not."""
    env, game = case.reset()
    task, index = game.task, game.problem.index
    correct = correct_replies(game)
    swapped = with_swapped_gold(task)
    other_gold(task, game.problem)  # raises NotChecked before anything is played if there is no other gold
    all_agents = dict.fromkeys(env.possible_agents, next(iter(correct.values())))
    for reply in (reply_with_marker, reply_from(correct), reply_from(all_agents)):
        episodes = [_frames_before_the_end(case, variant, index, reply) for variant in (task, swapped)]
        found = first_frame_difference(*episodes)
        expect(
            not found, f"with another gold for problem {index} the episode differs at {found}; expected no difference"
        )


def _frames_before_the_end(case: EnvCase, task: Any, index: int, reply: ReplyFunction) -> list[Frame]:
    env, game = case.env(ansi=True)
    game.task = task
    env.reset(seed=case.seed, options={"index": index})
    frames = []
    while not is_over(env):
        frames.append(frame(env))
        env.step(reply(env, env.agent_selection, len(game.transcript)))
    return frames
