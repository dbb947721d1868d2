"""FlexMG: the Flexible Markov Game as a PettingZoo AEC environment.

The Flexible Markov Game is the tuple <V, N, S, A, T, R, gamma, D> (MARFT, arXiv 2504.16129, section 3;
docs/reference/algorithms.md, section 1). Here an action is a string, the state is the problem and the transcript, T
appends the action to the transcript, R is the team's graded score, and D decides order and visibility.

In each round of an episode the agents of D act once, in an execution order of D (``rounds.py``); after the last
round, or earlier by the team's stop rule, the messages of the answering agents are graded (``scoring.py``) and every
agent gets its reward. What an agent reads is in ``observation.py``, what becomes of its action in ``actions.py``, and
what PettingZoo requires of every AEC environment in ``aec_bookkeeping.py``.

A graded episode *terminates*, also after a wrong answer. A fault of the grader or a tool *truncates* it, with reward
0 and the reason in ``infos[agent]["not_graded"]``, so that runners can exclude and count it. An external limit also
truncates it, with the reason in ``infos[agent]["truncated"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marft_envs.arguments import check_integer, check_nonempty
from marft_envs.dependency.graph import Dependency
from marft_envs.game import actions, rendering, scoring
from marft_envs.game.aec_bookkeeping import AECBookkeeping
from marft_envs.game.observation import Observer, global_state, spoken_prefix
from marft_envs.game.reward import Reward, TeamOutcome, as_reward
from marft_envs.game.rounds import Rounds, stops_early
from marft_envs.game.settings import RENDER_MODES, Memory, Order, check_settings
from marft_envs.game.spaces import is_utf8, message_space
from marft_envs.task import UNLIMITED, Problem, Task, check_index
from marft_envs.team.role import Role
from marft_envs.team.team import Team
from marft_envs.transcript import Turn, new_turn
from marft_envs.verdict import Verdict

_STATE_CHARS = 10_000_000


class FlexMG(AECBookkeeping):
    """An environment in which a team works on the problems of a task, one string action per turn.

    It does not check the order of calls: ``env()`` of a versioned module wraps it in ``OrderEnforcing``.

    Args:
        task: The problems and their grader.
        team: The roles, D and the stop rule.
        name: The name of the versioned module, such as "math_v0"; by default made from the task's name and version.
        rounds: The largest number of rounds (at least 1); in each of them an agent acts at most once.
        memory: The messages of *earlier* rounds that an agent reads: "none", "own" (its own), "parents" (its own and
            those of its parents under D), or "all". Within a round D alone decides what an agent reads.
        order: The order of the agents in a round: "stable"; "reversed", with agents that may act at the same time (a
            generation of D) in reversed order; or "random", drawn for each round from the orders that D allows.
        reward: Which agents the team's score rewards: "shared", every agent gets it; "last", the agent that acted last
            gets it and the others get 0; "answerer", each answering agent gets the score of its own message and the
            others get 0; or a function of the outcome (``marft_envs/game/reward.py``).
        format_bonus: Added to the reward of an answering agent whose message contains an answer, correct or not. It is
            reported in ``infos[agent]["format_bonus"]`` and is not part of the score.
        max_turns: The number of turns after which an episode is truncated; None for no limit.
        render_mode: "human" prints every turn, "ansi" makes ``render`` return a string, None does neither.
        defer_grading: Whether the caller grades the episode and passes the verdicts to ``settle``, as the batch runner
            does; False grades an episode when it ends.

    Attributes:
        problem: The problem of the episode.
        transcript: Every turn so far.
        feedback: The task's feedback on finished rounds.
        over: Whether the episode has ended.
        outcome: The team's outcome once the episode is graded, else None.
        truncation_reason: Why the episode was truncated; "" if it was not.
        truncated_before: The agent whose turn it was when an external limit truncated the episode, else None.

    Raises:
        TypeError, ValueError: An argument is wrong; the message names it.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        task: Task,
        team: Team,
        *,
        name: str | None = None,
        rounds: int = 1,
        memory: Memory = "all",
        order: Order = "stable",
        reward: str | Reward = "shared",
        format_bonus: float = 0.0,
        max_turns: int | None = None,
        render_mode: str | None = None,
        defer_grading: bool = False,
    ) -> None:
        super().__init__()
        rounds, max_turns = check_settings(
            task, team, rounds=rounds, memory=memory, order=order, format_bonus=format_bonus, max_turns=max_turns,
            render_mode=render_mode, defer_grading=defer_grading,
        )  # fmt: skip
        self.task, self.team = task, team
        self.rounds, self.memory, self.order = rounds, memory, order
        self.reward, self.format_bonus = as_reward(reward), format_bonus
        self.max_turns = max_turns
        self.render_mode = render_mode
        self.defer_grading = defer_grading
        static = team.schedule.static
        self.metadata = {
            "name": name or f"{task.name}_v{task.version}",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": static is not None and not static.edges,
        }
        self.possible_agents = list(team.agents)
        briefing = team.schedule.briefing({a: r.summary for a, r in team.roles.items()}, team.answering, rounds)
        self._observer = Observer(team.roles, briefing)
        self.observation_spaces = self._observer.spaces
        self.action_spaces = {agent: actions.action_space(role) for agent, role in team.roles.items()}
        self.state_space = message_space(max(_STATE_CHARS, *(role.max_chars for role in team.roles.values())))
        self._limits = {agent: role.max_chars for agent, role in team.roles.items()}
        # Most roles have no choices, prefix or tools: for their actions ``step`` skips those checks.
        self._special = {a for a, role in team.roles.items() if role.choices or role.reply_prefix or role.tools}
        self._rounds = Rounds(team.schedule, team.agents, rounds=rounds, memory=memory, order=order)
        self._rng = np.random.default_rng()

    def sibling(self, *, defer_grading: bool) -> FlexMG:
        """Return a new game with the same task object, team and settings, for playing several episodes at a time."""
        return FlexMG(
            self.task, self.team, name=self.metadata["name"], rounds=self.rounds, memory=self.memory, order=self.order,
            reward=self.reward, format_bonus=self.format_bonus, max_turns=self.max_turns, render_mode=self.render_mode,
            defer_grading=defer_grading,
        )  # fmt: skip

    # ---- PettingZoo's interface

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode.

        The same arguments give the same episode in every process. A seed together with the index that it selected gives
        the same episode as the seed alone.

        Args:
            seed: Seeds the random generator; None continues the present one.
            options: ``{"index": i}`` selects the problem; otherwise the generator does. Unknown keys are ignored,
                because wrappers of other libraries add their own.

        Raises:
            TypeError, ValueError: The seed or the options are wrong; the present episode is unchanged.
            IndexError: The task has no such problem; the present episode is unchanged.
        """
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options={options!r:.80}: got {type(options).__name__}, expected {{'index': 3}} or None")
        if seed is not None:
            self._rng = np.random.default_rng(check_integer("seed", seed, 0))
        index = options.get("index") if options else None
        if index is not None:
            index = check_index(self.task, index)
        # Always draw, so that the rest of the stream does not depend on whether an index was passed.
        drawn = int(self._rng.integers(UNLIMITED if self.task.size is None else self.task.size))
        self.problem: Problem = self.task.problem(drawn if index is None else index)
        self._public = self.problem.public
        self._begin_agents()
        self.outcome: TeamOutcome | None = None
        self.over = False
        self.truncation_reason = ""
        self.truncated_before: str | None = None
        for agent, length in self._observer.begin_episode(self._public).items():
            self.infos[agent]["problem_clipped"] = length
        self.transcript: list[Turn] = []
        self.feedback: list[Turn] = []
        self._rounds.begin_episode(self._public, self.transcript, self._rng)
        self.agent_selection = self._rounds.selected
        if self.render_mode == "human":
            print(rendering.problem_text(str(self), self._public))

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what ``agent`` reads if it acts now: profile, problem, memory, and its parents' messages.

        It also works for agents whose turn it is not, and after the end. ValueError for an unknown agent.
        """
        return self._observer.observe(agent, self._rounds)

    def step(self, action: str | None) -> None:
        """Execute the action of the selected agent.

        Args:
            action: A string, or None for an agent that is terminated or truncated. A string that is too long is
                truncated, and lone surrogates are replaced by "?"; ``infos`` flags both.

        Raises:
            TypeError: The action of a live agent is not a string; the episode is unchanged.
            ValueError: The action of a terminated or truncated agent is not None; the episode is unchanged.
        """
        agent = self.agent_selection
        if self.over:
            self._dead_step(agent, action)
            return
        if not isinstance(action, str):
            raise TypeError(f"action of {agent}: got {type(action).__name__} ({action!r:.80}), expected str")
        if len(action) > self._limits[agent] or not (action.isascii() or is_utf8(action)):
            action, flags = actions.repair(action, self._limits[agent])
            self.infos[agent].update(flags)
        if agent in self._special:
            role = self.team.roles[agent]
            if role.choices and action not in role.choices:
                self.infos[agent]["outside_space"] = action[:80]
            action = spoken_prefix(role.reply_prefix) + action
            if role.tools and self._called_tool(agent, role, action):
                return
        rounds = self._rounds
        turn = rounds.turns[agent] = new_turn((rounds.number, agent, action, "say"))
        self.transcript.append(turn)
        if self.render_mode == "human":
            print(rendering.turn_text(turn, self.rounds))
        rounds.position = position = rounds.position + 1
        if position < len(rounds.order):
            self.agent_selection = rounds.order[position]
        else:
            self._end_of_order(rounds)
        if self.max_turns is not None:
            self._check_turn_limit()

    def state(self) -> dict[str, Any]:
        """Return the global state without the gold: the prompt, all private parts and all messages so far."""
        return global_state(self._public, self.transcript)

    def render(self) -> str | None:
        """Return the episode so far as a string ("ansi") or print it ("human"); ValueError without a render mode."""
        if self.render_mode is None:
            raise ValueError(f"render_mode=None: expected one of {RENDER_MODES} when the environment is made")
        problem = rendering.problem_text(str(self), self._public)
        ending = rendering.outcome_lines(self.outcome, self.truncation_reason)
        text = rendering.episode_text(problem, [*self.transcript, *self.feedback], self.rounds, ending)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    # ---- the round being played

    @property
    def round(self) -> int:
        """The number of the round being played, from 0."""
        return self._rounds.number

    @property
    def generation(self) -> tuple[str, ...]:
        """The agents that may act now: the selected one, then the others of this round whose parents have acted.

        None of them sees another's message of this round, so they can be sampled at the same time. Empty after the end.
        """
        return () if self.over else self._rounds.generation

    @property
    def dependency(self) -> Dependency:
        """D of the round being played, over the agents that act in it; after the end, D of the last round.

        With an orchestrator, its reply adds the agents that act after it.
        """
        return self._rounds.dependency

    def _end_of_order(self, rounds: Rounds) -> None:
        """Continue after all known agents of a round: with a plan's agents, with the next round, or with the end."""
        if self.team.schedule.static is None and self._extend_round(rounds):
            self.agent_selection = rounds.selected
            return
        stops, fault = rounds.is_last or rounds.stop_requested, ""
        if not stops and self.team.stop_rule is not None:
            stops, fault = stops_early(self.team.stop_rule, tuple(rounds.turns.values()), self.task)
        if stops:
            self._finish()
            return
        if not fault:
            answers = scoring.answers_of(self.team, self.problem, rounds.turns.values())
            feedback, fault = scoring.feedback_turns(self.task, answers, rounds.number)
        if fault:
            self._truncate("not_graded", fault)
            return
        self.feedback += feedback
        if self.render_mode == "human" and feedback:
            print(*(rendering.turn_text(turn, self.rounds) for turn in feedback), sep="\n")
        rounds.remember(feedback)
        rounds.begin_round(rounds.number + 1)
        self.agent_selection = rounds.selected

    def _extend_round(self, rounds: Rounds) -> bool:
        """Apply an orchestrator's reply, and return whether further agents act in this round."""
        orchestrator = rounds.order[-1]
        extension = rounds.extend()
        if extension is None:
            return False
        if extension.malformed:
            self.infos[orchestrator]["plan_malformed"] = extension.malformed
        if extension.unknown:
            self.infos[orchestrator]["plan_unknown"] = extension.unknown
        return extension.dependency is not None

    # ---- the end of an episode

    def _finish(self) -> None:
        """End the episode after its last turn, and grade it unless the caller does."""
        self.over = True
        self.agent_selection = self.agents[0]
        if self.defer_grading:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.settle(self.grade())

    def answers(self) -> scoring.Answers:
        """Return, for each answering agent that acted, its last message and the problem with its gold."""
        return scoring.answers_of(self.team, self.problem, self.transcript)

    def grade(self) -> dict[str, Verdict]:
        """Return the verdict on each answering agent's message; an exception in the grader gives NOT_GRADED."""
        return scoring.grade_answers(self.task, self.answers())

    def settle(self, verdicts: Mapping[str, Verdict]) -> None:
        """Set the rewards and infos from the verdicts, and terminate the episode (truncate it after a fault).

        Agents that have already been removed are not rewarded. A settled or truncated episode is left unchanged.

        Args:
            verdicts: The verdict on each answering agent. An agent without one counts as NO_ANSWER.

        Raises:
            RuntimeError: The episode is not over.
            ValueError: A verdict belongs to an agent that does not answer.
        """
        if self.outcome is not None or self.truncation_reason:
            return
        if not self.over:
            raise RuntimeError("settle() before the end of the episode: expected all turns to be played first")
        self.outcome, fault = scoring.score(self.task, self.team, self.transcript, verdicts)
        for agent in set(self.outcome.verdicts) & set(self.agents):
            self.infos[agent]["verdict"] = str(self.outcome.verdicts[agent].outcome)
        if fault:
            self._truncate("not_graded", fault)
            return
        self._assign_rewards(self.outcome, scoring.agent_rewards(self.reward, self.outcome))
        self._show_end()

    def _assign_rewards(self, outcome: TeamOutcome, rewards: Mapping[str, float]) -> None:
        """Terminate the episode and give each remaining agent its reward, with the format bonus if it earns it."""
        self.terminations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            info, reward = self.infos[agent], rewards[agent]
            info["score"] = outcome.score
            if self.format_bonus and scoring.earns_format_bonus(outcome, agent):
                info["format_bonus"] = self.format_bonus
                reward += self.format_bonus
            self.rewards[agent] = reward
            self._cumulative_rewards[agent] += reward

    def truncate(self, reason: str, *, fault: bool = False) -> None:
        """Truncate the episode because of an external limit, such as a budget of turns, or of a fault.

        Rewards are 0 and nothing is graded. After a limit ``truncated_before`` names the agent whose turn it was, and
        ``observe`` returns what each agent would have read next. After the end this does nothing.

        Args:
            reason: Not blank, because a reason distinguishes truncated episodes from graded ones.
            fault: Whether it is a fault outside the team, such as of an endpoint; it is "not_graded" in ``infos``.
        """
        check_nonempty("truncate reason", reason)
        if not self.over:
            self.truncated_before = None if fault else self.agent_selection
            self._truncate("not_graded" if fault else "truncated", reason)

    def _truncate(self, key: str, reason: str) -> None:
        """End the episode without a score; the reason is in ``infos`` under ``key``, "truncated" or "not_graded"."""
        self.over = True
        self.truncation_reason = reason
        self._truncate_agents(key, reason)
        self._show_end()

    def _check_turn_limit(self) -> None:
        if self.max_turns is not None and len(self.transcript) >= self.max_turns:
            self.truncate(f"max_turns={self.max_turns}")

    def _show_end(self) -> None:
        if self.render_mode == "human":
            print("\n".join(rendering.outcome_lines(self.outcome, self.truncation_reason)))

    # ---- tool calls

    def _called_tool(self, agent: str, role: Role, text: str) -> bool:
        """Run the reply's tool call and return True; False if it has none, or the role has no calls left."""
        rounds = self._rounds
        turns, fault = actions.tool_turns(agent, role, text, rounds, self._public)
        if not turns:
            rounds.tool_turns = []
            return False
        self.transcript += turns
        if fault:
            self._truncate("not_graded", fault)
            return True
        rounds.tool_turns += turns
        if self.render_mode == "human":
            print(*(rendering.turn_text(turn, self.rounds) for turn in turns), sep="\n")
        self._check_turn_limit()
        return True
