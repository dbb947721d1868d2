"""FlexMG: the Flexible Markov Game as a PettingZoo AEC environment.

The tuple <V, N, S, A, T, R, gamma, D> is MARFT's (arXiv 2504.16129, section 3; docs/reference/algorithms.md, section 1).
In its terms every action is a string, the state is the problem and the transcript, T appends the action to the
transcript, R is the team's graded score, and D decides order and visibility.

One episode: in each round the agents that D names act once, in an execution order of D (``rounds.py``); after the last
round, or earlier by the team's stop rule, the messages of the answering agents are graded (``scoring.py``) and every
agent gets its reward. This module keeps PettingZoo's books, and decides what becomes of a reply.

A wrong answer *terminates* an episode. A fault of the grader or of a tool *truncates* it, with reward 0 and the reason
in ``infos[agent]["not_graded"]``, so that runners can drop and count it; so does an outside limit, with the reason in
``infos[agent]["truncated"]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import numpy as np
from gymnasium import Space
from pettingzoo import AECEnv

from marft_envs.arguments import check_integer, check_nonempty, expected_one_of
from marft_envs.dependency.graph import Dependency
from marft_envs.game import rendering, scoring
from marft_envs.game.observation import Message, as_message, opening_messages
from marft_envs.game.reward import Reward, TeamOutcome, as_reward
from marft_envs.game.rounds import Memory, Order, Rounds, stops_early
from marft_envs.game.spaces import ChoiceText, UnicodeText, as_utf8, is_utf8, message_space
from marft_envs.task import UNLIMITED, Problem, PublicProblem, Task, check_index
from marft_envs.team.role import Role
from marft_envs.team.team import Team
from marft_envs.team.tools import ToolFault, answer_call, find_call
from marft_envs.transcript import Turn, new_turn
from marft_envs.verdict import Verdict

MEMORIES = get_args(Memory)
ORDERS = get_args(Order)
RENDER_MODES = ("human", "ansi")
_STATE_CHARS = 10_000_000
_NO_PARENTS: tuple[str, ...] = ()


def _check_type(name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected {wanted}")


class FlexMG(AECEnv[str, dict[str, Any], str]):
    """A team on a task, one string action per turn.

    ``env()`` of a task's module wraps it in ``OrderEnforcing``.

    Args:
        task: Problems and grader.
        team: Roles, D and stop rule.
        name: The name of the versioned module, "math_v0"; by default the task's.
        rounds: How often each agent acts at most (>= 1).
        memory: What an agent reads of *earlier* rounds: "none", its "own" messages, its own and those of its "parents"
            under D, or "all". Within a round visibility is exactly D.
        order: "stable", or a "random" linear extension of D for each round.
        reward: "shared", "last", "answerer" or a function of the outcome (``reward.py``).
        format_bonus: Added to the reward of an answering agent whose reply held an answer at all, right or wrong. It is
            reported in ``infos[agent]["format_bonus"]`` and is part of no score.
        max_turns: Truncate an episode after so many turns.
        render_mode: "human" prints, "ansi" returns a string, None does neither.
        defer_grading: Leave the verdicts to a later ``settle``, as the batch runner does.

    Attributes:
        problem: The problem being played.
        transcript: Every turn so far.
        feedback: The task's feedback turns on finished rounds.
        over: Whether no agent may act any more.
        outcome: The team's outcome once it is graded, else None.
        truncation_reason: Why the episode was truncated, "" where it was not.
        truncated_before: The agent whose turn it was when an outside limit truncated the episode, else None.

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
        choices = (("memory", memory, MEMORIES), ("order", order, ORDERS))
        for argument, value, allowed in (*choices, ("render_mode", render_mode, (None, *RENDER_MODES))):
            if value not in allowed:
                raise ValueError(expected_one_of(argument, value, allowed))
        _check_type("task", task, Task)
        _check_type("team", team, Team)
        rounds = check_integer("rounds", rounds, 1)
        if max_turns is not None:
            max_turns = check_integer("max_turns", max_turns, 1)
        _check_type("format_bonus", format_bonus, (int, float))
        if not math.isfinite(format_bonus):
            raise ValueError(f"format_bonus={format_bonus!r}: expected a finite number")
        _check_type("defer_grading", defer_grading, bool)
        team.schedule.check_rounds(rounds)
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
        self._briefing = {agent: briefing.get(agent, "") for agent in team.agents}
        self.observation_spaces: dict[str, Space[Any]] = {
            agent: message_space(self._longest(agent, role)) for agent, role in team.roles.items()
        }
        self.action_spaces: dict[str, Space[Any]] = {
            agent: ChoiceText(role.choices) if role.choices else UnicodeText(role.max_chars)
            for agent, role in team.roles.items()
        }
        self.state_space = message_space(max(_STATE_CHARS, *(role.max_chars for role in team.roles.values())))
        self._roles = dict(team.roles)
        self._limits = {agent: role.max_chars for agent, role in team.roles.items()}
        self._special = {a for a, role in team.roles.items() if role.choices or role.reply_prefix or role.tools}
        self._rounds = Rounds(team.schedule, team.agents, rounds=rounds, memory=memory, order=order)
        self._rng = np.random.default_rng()

    def sibling(self, *, defer_grading: bool) -> FlexMG:
        """Return another game with the same task object, team and settings; batches have many."""
        return FlexMG(
            self.task,
            self.team,
            name=self.metadata["name"],
            rounds=self.rounds,
            memory=self.memory,
            order=self.order,
            reward=self.reward,
            format_bonus=self.format_bonus,
            max_turns=self.max_turns,
            render_mode=self.render_mode,
            defer_grading=defer_grading,
        )

    # ---- PettingZoo's interface

    def observation_space(self, agent: str) -> Any:
        """Return the agent's space, ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix"}``.

        It is the same object every time. ValueError for an unknown agent.
        """
        return self._space(agent, self.observation_spaces)

    def action_space(self, agent: str) -> Any:
        """Return the agent's space: any UTF-8 string up to the role's ``max_chars``, or the role's choices.

        It is the same object every time. ValueError for an unknown agent.
        """
        return self._space(agent, self.action_spaces)

    def _space(self, agent: str, spaces: Mapping[str, Any]) -> Any:
        if agent not in spaces:
            raise ValueError(expected_one_of("agent", agent, self.possible_agents))
        return spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode.

        The same arguments give the same episode in every process, and a seed together with the index that it drew gives
        that episode again.

        Args:
            seed: Re-creates the generator; None continues its stream.
            options: ``{"index": i}`` selects the problem, whatever the seed; without it the generator draws one.
                Unknown keys are ignored, because wrappers of other libraries add their own.

        Raises:
            TypeError, ValueError: The seed or the options are of another kind.
            IndexError: The task has no such problem.
        """
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options={options!r:.80}: got {type(options).__name__}, expected {{'index': 3}} or None")
        if seed is not None:
            self._rng = np.random.default_rng(check_integer("seed", seed, 0))
        index = options.get("index") if options else None
        if index is not None:
            index = check_index(self.task, index)
        drawn = int(self._rng.integers(UNLIMITED if self.task.size is None else self.task.size))
        self.problem: Problem = self.task.problem(drawn if index is None else index)
        self._public = self.problem.public
        agents = self.possible_agents
        self.agents = list(agents)
        self.rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        self.outcome: TeamOutcome | None = None
        self.over = False
        self.truncation_reason = ""
        self.truncated_before: str | None = None
        self._openings = {agent: self._opening(agent, role) for agent, role in self._roles.items()}
        self.transcript: list[Turn] = []
        self.feedback: list[Turn] = []
        self._rounds.begin_episode(self._public, self.transcript, self._rng)
        self.agent_selection = self._rounds.selected
        if self.render_mode == "human":
            print(rendering.problem_text(str(self), self._public))

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:  # type: ignore[override]
        """Yield the selected agent while agents are left; each needs its ``step``."""
        while self.agents and max_iter > 0:
            max_iter -= 1
            yield self.agent_selection

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        """Return observation, accumulated reward, terminated, truncated and info of the selected agent."""
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what ``agent`` would read if it were its turn now: profile, problem, memory, this round's parents.

        It also works for agents that do not act now, and after the end. ValueError for an unknown agent.
        """
        try:
            role = self._roles[agent]
        except KeyError:
            raise ValueError(expected_one_of("agent", agent, self.possible_agents)) from None
        rounds, limit = self._rounds, role.max_observed_chars
        messages = []
        for message in self._openings[agent]:
            messages.append({**message})  # a loop: a comprehension is a function call before Python 3.12
        memory = rounds.memories[agent]
        if memory:
            messages += [as_message(agent, limit, turn) for turn in memory]
        said = rounds.said
        if said:
            for parent in rounds.parents.get(agent, _NO_PARENTS):
                if parent in said:
                    messages.append(as_message(agent, limit, said[parent]))
        tool_turns = rounds.tool_turns
        if tool_turns and agent == tool_turns[0].agent:
            messages += [as_message(agent, limit, turn) for turn in tool_turns]
        return {"messages": tuple(messages), "reply_prefix": role.reply_prefix}

    def step(self, action: str | None) -> None:
        """Play the selected agent's ``action``; for a dead agent only None is valid.

        An action that is too long is truncated, and lone surrogates are replaced; ``infos`` flags both.

        Raises:
            TypeError: A live agent's action is not a string; nothing has changed then.
            ValueError: A dead agent's action is not None; nothing has changed then.
        """
        agent = self.agent_selection
        if self.over:
            self._dead_step(agent, action)
            return
        if not isinstance(action, str):
            raise TypeError(f"action of {agent}: got {type(action).__name__} ({action!r:.80}), expected str")
        if len(action) > self._limits[agent] or not (action.isascii() or is_utf8(action)):
            action = self._repaired(agent, action)
        if agent in self._special:
            role = self._roles[agent]
            if role.choices and action not in role.choices:
                self.infos[agent]["outside_space"] = action[:80]
            action = role.reply_prefix + action
            if role.tools and self._called_tool(agent, role, action):
                return
        rounds = self._rounds
        turn = rounds.said[agent] = new_turn((rounds.number, agent, action, "say"))
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
        """Return the global state without the gold: the prompt, every private part, every message so far."""
        public = self._public
        messages = [{"role": "user", "name": "task", "content": public.prompt}] if public.prompt else []
        messages += [{"role": "user", "name": f"task for {a}", "content": text} for a, text in public.private.items()]
        messages += [{"role": "assistant", "name": turn.agent, "content": turn.text} for turn in self.transcript]
        return {"messages": tuple(messages), "reply_prefix": ""}

    def render(self) -> str | None:
        """Return the episode so far as a string for "ansi", or print it for "human" (which also prints every step)."""
        if self.render_mode is None:
            raise ValueError(f"render_mode=None: expected one of {RENDER_MODES} when the environment was made")
        text = rendering.episode_text(
            rendering.problem_text(str(self), self._public),
            [*self.transcript, *self.feedback],
            self.rounds,
            rendering.outcome_lines(self.outcome, self.truncation_reason),
        )
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Do nothing: no resource is held."""

    # ---- the round being played

    @property
    def round(self) -> int:
        """The number of the round being played, from 0."""
        return self._rounds.number

    @property
    def generation(self) -> tuple[str, ...]:
        """The agents that may act now: the selected one, then the others of this round whose parents have spoken.

        None of them sees another's action of this round, so they may be sampled at the same time. Empty after the end.
        """
        return () if self.over else self._rounds.generation

    @property
    def dependency(self) -> Dependency:
        """D of the round being played (after the end, of the last one), over the agents that act in it.

        With an orchestrator it grows when its reply is known.
        """
        return self._rounds.dependency

    def _end_of_order(self, rounds: Rounds) -> None:
        """All known agents of the round have spoken: an orchestrator may name more, else the round is over."""
        if self.team.schedule.static is None and self._orchestrated(rounds):
            self.agent_selection = rounds.selected
            return
        stops, fault = rounds.is_last or rounds.stop_requested, ""
        if not stops:
            stops, fault = stops_early(self.team.stop_rule, tuple(rounds.said.values()), self.task)
        if stops:
            self._finish()
            return
        if not fault:
            answers = {a: answer for a, answer in self.answers().items() if a in rounds.said}
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

    def _orchestrated(self, rounds: Rounds) -> bool:
        """Apply an orchestrator's reply; return whether it lets further agents act in this round."""
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
        self.over = True
        self.agent_selection = self.agents[0]
        if self.defer_grading:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.settle(self.grade())

    def answers(self) -> scoring.Answers:
        """Return what is graded: for each answering agent that spoke, its last message and the problem with its gold."""
        return scoring.answers_of(self.team, self.problem, self.transcript)

    def grade(self) -> dict[str, Verdict]:
        """Return the verdict on each answering agent's message; an exception of the grader is NOT_GRADED."""
        return scoring.grade_answers(self.task, self.answers())

    def settle(self, verdicts: Mapping[str, Verdict]) -> None:
        """Book the verdicts of the answering agents: rewards, infos, and the end of the episode.

        The end is a termination, or a truncation after a fault. Agents that have left are not rewarded. Nothing happens
        where the episode is already settled or truncated.

        Args:
            verdicts: By answering agent; one that is missing gave no answer.

        Raises:
            RuntimeError: The episode is not over.
            ValueError: A verdict is of an agent that does not answer.
        """
        if self.outcome is not None or self.truncation_reason:
            return
        if not self.over:
            raise RuntimeError("settle() before the end of the episode: expected the last turn first")
        self.outcome, fault = scoring.score(self.task, self.team, self.transcript, verdicts)
        for agent in set(self.outcome.verdicts) & set(self.agents):
            self.infos[agent]["verdict"] = str(self.outcome.verdicts[agent].outcome)
        if fault:
            self._truncate("not_graded", fault)
            return
        self._book(self.outcome, scoring.agent_rewards(self.reward, self.outcome))
        self._show_end()

    def _book(self, outcome: TeamOutcome, rewards: Mapping[str, float]) -> None:
        self.terminations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            info, reward = self.infos[agent], rewards[agent]
            info["score"] = outcome.score
            if self.format_bonus and scoring.earns_format_bonus(outcome, agent):
                info["format_bonus"] = self.format_bonus
                reward += self.format_bonus
            self.rewards[agent] = reward
            self._cumulative_rewards[agent] += reward

    def truncate(self, reason: str) -> None:
        """End the episode by an outside limit, such as a budget of turns or tokens: reward 0, not graded.

        ``truncated_before`` is then the agent whose turn it was, and ``observe`` returns what each agent would have read
        next. Nothing happens after the end. ValueError for a blank reason.
        """
        check_nonempty("truncate reason", reason)
        if not self.over:
            self.truncated_before = self.agent_selection
            self._truncate("truncated", reason)

    def _truncate(self, key: str, reason: str) -> None:
        """End the episode without a score. key: of ``infos``, "truncated" or (after a fault) "not_graded"."""
        self.over = True
        self.truncation_reason = reason
        if self.agents:  # a deferred verdict may arrive when all have left
            self.agent_selection = self.agents[0]
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, True)
        for agent in self.agents:
            self.infos[agent][key] = reason
        self._show_end()

    def _check_turn_limit(self) -> None:
        if self.max_turns is not None and len(self.transcript) >= self.max_turns:
            self.truncate(f"max_turns={self.max_turns}")

    def _show_end(self) -> None:
        if self.render_mode == "human":
            print("\n".join(rendering.outcome_lines(self.outcome, self.truncation_reason)))

    def _dead_step(self, agent: str, action: Any) -> None:
        """Remove a dead agent, as PettingZoo asks."""
        if action is not None:
            raise ValueError(f"action of {agent}: got {action!r:.80} after its end, expected None")
        agents = self.agents
        if len(agents) == len(self.possible_agents):  # rewards are those of the last live step, for one dead step
            self.rewards = dict.fromkeys(agents, 0.0)
        for by_agent in (self.terminations, self.truncations, self.rewards, self._cumulative_rewards, self.infos):
            del by_agent[agent]
        agents.remove(agent)
        if agents:
            self.agent_selection = agents[0]

    # ---- what an agent reads first, and what becomes of its reply

    def _longest(self, agent: str, role: Role) -> int:
        """Return the length of the longest string in an observation; instructions are never truncated."""
        fixed = opening_messages(agent, role, PublicProblem(0, "", {}), self._briefing[agent])
        return max(role.max_observed_chars, len(role.reply_prefix), *(len(m["content"]) for m in fixed))

    def _opening(self, agent: str, role: Role) -> tuple[Message, ...]:
        """Return what the agent reads before any turn; of a problem beyond its limit the newest characters."""
        messages = opening_messages(agent, role, self._public, self._briefing[agent])
        limit, task = role.max_observed_chars, messages[-1] if messages else {}
        if task.get("role") != "user" or len(task["content"]) <= limit:
            return messages
        self.infos[agent]["problem_clipped"] = len(task["content"])
        return (*messages[:-1], {**task, "content": task["content"][-limit:]})

    def _repaired(self, agent: str, action: str) -> str:
        limit = self._roles[agent].max_chars
        if len(action) > limit:
            self.infos[agent]["clipped"] = len(action)
            action = action[:limit]
        if not is_utf8(action):
            self.infos[agent]["malformed"] = "lone surrogates replaced by '?'"
            action = as_utf8(action)
        return action

    def _called_tool(self, agent: str, role: Role, text: str) -> bool:
        """Run the reply's tool call, if it has one and the role has calls left; the agent then acts again."""
        rounds = self._rounds
        body = find_call(text)
        calls = sum(turn.kind == "call" for turn in rounds.tool_turns)
        if body is None or calls >= role.max_tool_calls:
            rounds.tool_turns = []
            return False
        call = Turn(rounds.number, agent, text, "call")
        self.transcript.append(call)
        try:
            result = Turn(rounds.number, agent, as_utf8(answer_call(body, role.tools)), "result")
        except ToolFault as fault:
            self._truncate("not_graded", f"{agent}: {fault}")
            return True
        self.transcript.append(result)
        rounds.tool_turns += [call, result]
        if self.render_mode == "human":
            print(rendering.turn_text(call, self.rounds), rendering.turn_text(result, self.rounds), sep="\n")
        if self.max_turns is not None:
            self._check_turn_limit()
        return True
