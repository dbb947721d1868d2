"""What an episode pays and how it ends: grading, settling, faults and limits, the dead steps.

A wrong answer *terminates*. A fault of the grader or of a tool *truncates*, with reward 0 and the reason in
``infos[agent]["not_graded"]``, so that runners can drop and count it; so does an outside limit, with the reason in
``infos[agent]["truncated"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from pettingzoo import AECEnv

from marft_envs import rendering
from marft_envs.given import name_of, some_word
from marft_envs.reward import Reward, TeamOutcome
from marft_envs.task import Problem, Task
from marft_envs.team import Team
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome, Verdict


class Ending(AECEnv[str, dict[str, Any], str]):
    """The books of an episode, as PettingZoo wants them, and all ways in which it ends.

    outcome: the team's, once graded. over: whether nobody may speak any more. cut: why the episode was truncated, ""
    where it was not; it stays when the agents and their infos have left.
    """

    task: Task
    team: Team
    reward: Reward
    format_bonus: float
    max_turns: int | None
    defer_grading: bool
    render_mode: str | None
    problem: Problem
    transcript: list[Turn]
    round: int
    agent_selection: str

    def _open_books(self) -> None:
        """For a new episode: everybody is there, nothing is paid."""
        agents = self.possible_agents
        self.agents = list(agents)
        self.rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        self.outcome: TeamOutcome | None = None
        self.over = False
        self.cut = ""
        self.cut_before: str | None = None

    # ---- graded

    def answers(self) -> dict[str, tuple[str, Problem]]:
        """What is to be graded: for each answering agent that spoke, its last text and the problem with its gold."""
        last_text = {turn.agent: turn.text for turn in self.transcript if turn.kind == "say"}
        p, answering = self.problem, self.team.answering
        each = isinstance(p.gold, Mapping) and set(answering) <= set(p.gold)
        return {
            agent: (last_text[agent], Problem(p.index, p.prompt, p.gold[agent], p.private, p.notes) if each else p)
            for agent in answering
            if agent in last_text
        }

    def grade(self) -> dict[str, Verdict]:
        """The verdict on each answering agent's text; an exception of the grader is NOT_GRADED, never a zero."""
        return {agent: grade_one(self.task, *answer) for agent, answer in self.answers().items()}

    def _finish(self) -> None:
        self.over = True
        self.agent_selection = self.agents[0]
        if self.defer_grading:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.settle(self.grade())

    def settle(self, verdicts: Mapping[str, Verdict]) -> None:
        """Book the verdicts of the answering agents: rewards and infos, and the end as termination, or as truncation
        after a fault. An answering agent that never spoke gave no answer. Without effect on a truncated episode; agents
        that have left are not paid any more. RuntimeError before the end, ValueError for other agents' verdicts."""
        if self.outcome is not None or self.cut:
            return
        if not self.over:
            raise RuntimeError("settle() before the end of the episode: expected the last turn first")
        strangers = [agent for agent in verdicts if agent not in self.team.answering]
        if strangers:
            raise ValueError(f"settle() names {strangers}: expected some of {list(self.team.answering)}")
        silent = {a: Verdict.no_answer("never spoke") for a in self.team.answering if a not in verdicts}
        verdicts = {**verdicts, **silent}
        faults = "; ".join(f"{agent}: {v.reason}" for agent, v in verdicts.items() if not v.graded)
        score, fault = (0.0, faults) if faults else team_score(self.task, verdicts)
        self.outcome = TeamOutcome(
            agents=self.team.agents,
            answering=self.team.answering,
            verdicts=verdicts,
            score=score,
            last_agent=self.transcript[-1].agent,
            rounds=self.round + 1,
        )
        for agent in set(verdicts) & set(self.agents):
            self.infos[agent]["verdict"] = str(verdicts[agent].outcome)
        if fault:
            self._fail(fault)
        else:
            self._pay(self.outcome)
            self._show_end()

    def _pay(self, outcome: TeamOutcome) -> None:
        paid = self._reward(outcome)
        self.terminations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            info, reward = self.infos[agent], paid[agent]
            info["score"] = outcome.score
            verdict = outcome.verdicts.get(agent)
            if self.format_bonus and verdict is not None and verdict.outcome is not Outcome.NO_ANSWER:
                info["format_bonus"] = self.format_bonus
                reward += self.format_bonus
            self.rewards[agent] = reward
            self._cumulative_rewards[agent] += reward

    def _reward(self, outcome: TeamOutcome) -> Mapping[str, float]:
        """What the reward function pays each agent; TypeError where that is not a number for each."""
        paid = self.reward(outcome)
        if not isinstance(paid, Mapping) or not all(isinstance(paid.get(agent), Real) for agent in outcome.agents):
            raise TypeError(
                f"reward={name_of(self.reward)} returned {paid!r:.200}: expected a number for each of "
                f"{list(outcome.agents)}"
            )
        return paid

    # ---- cut

    def truncate(self, reason: str) -> None:
        """End the episode by an outside limit (a budget of turns or tokens): truncated, reward 0, not graded.

        ``cut_before`` is then the agent whose turn it was; ``observe`` gives what each agent would have read next.
        Without effect after the end. ValueError for a blank reason.
        """
        some_word("truncate reason", reason)
        if not self.over:
            self.cut_before = self.agent_selection
            self._cut("truncated", reason)

    def _fail(self, fault: str) -> None:
        """End the episode by a fault that is no agent's: truncated, reward 0, not graded."""
        self._cut("not_graded", fault)

    def _cut(self, key: str, reason: str) -> None:
        self.over = True
        self.cut = reason
        if self.agents:  # a verdict may come when all have left
            self.agent_selection = self.agents[0]
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            self.infos[agent][key] = reason
        self._show_end()

    def _show_end(self) -> None:
        if self.render_mode == "human":
            print("\n".join(rendering.tail(self)))

    def _check_turn_limit(self) -> None:
        if self.max_turns is not None and len(self.transcript) >= self.max_turns:
            self.truncate(f"max_turns={self.max_turns}")

    # ---- gone

    def _dead_step(self, agent: str, action: Any) -> None:
        """``agent`` leaves."""
        if action is not None:
            raise ValueError(f"action of {agent}: got {action!r:.80} after its end, expected None")
        agents = self.agents
        if len(agents) == len(self.possible_agents):  # rewards are those of the last live step, for one dead step
            self.rewards = dict.fromkeys(agents, 0.0)
        for table in (self.terminations, self.truncations, self.rewards, self._cumulative_rewards, self.infos):
            del table[agent]
        agents.remove(agent)
        if agents:
            self.agent_selection = agents[0]


def grade_one(task: Task, answer: str, problem: Problem) -> Verdict:
    """``task.grade`` behind the boundary of faults: whatever it raises becomes NOT_GRADED with the exception's name."""
    try:
        verdict = task.grade(answer, problem)
    except Exception as fault:  # the boundary: a grader's fault is counted, not scored
        return Verdict.not_graded(f"{type(fault).__name__}: {fault}")
    if not isinstance(verdict, Verdict):
        return Verdict.not_graded(f"{type(task).__name__}.grade returned {verdict!r:.80}, expected a Verdict")
    return verdict


def team_score(task: Task, verdicts: Mapping[str, Verdict]) -> tuple[float, str]:
    """``task.team_score`` behind the same boundary: (score, ""), or (0, the fault) for what is no score in [0, 1]."""
    try:
        score = task.team_score(verdicts)
    except Exception as fault:
        return 0.0, f"team_score: {type(fault).__name__}: {fault}"
    if not isinstance(score, Real) or not 0 <= score <= 1 + 1e-9:  # nine ninths are a little more than 1
        return 0.0, f"{type(task).__name__}.team_score returned {score!r:.80}, expected a number from 0 to 1"
    return min(1.0, float(score)), ""
