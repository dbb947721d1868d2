"""FlexMG: the Flexible Markov Game as a PettingZoo AEC environment.

Whose turn it is, what they see, who is paid and when it ends. The tuple <V, N, S, A, T, R, gamma, D> is MARFT's
(arXiv 2504.16129, section 3); in its terms every action is a text, the state is the problem plus the transcript, T
appends the text, R is the team's graded score, and D decides order and visibility.

One episode: each round, the agents that D names act once, in an execution order of D (``turn_taking.py``); after the
last round, or earlier by the team's stop rule, the texts of the answering agents are graded (``ending.py``). This
module has what PettingZoo asks for, what an agent sees, and what becomes of its reply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import Space

from marft_envs import rendering
from marft_envs.indexing import UNLIMITED, check_index, whole_number
from marft_envs.observation import Message, heard, opening
from marft_envs.reward import Reward, as_reward
from marft_envs.spaces import ChoiceText, UnicodeText, as_utf8, is_utf8, message_space
from marft_envs.suggest import expected
from marft_envs.task import Problem, PublicProblem, Task
from marft_envs.team import Role, Team
from marft_envs.tools import ToolFault, answer_call, find_call
from marft_envs.transcript import Turn, new_turn
from marft_envs.turn_taking import Memory, Order, TurnTaking

MEMORIES = ("none", "own", "parents", "all")
ORDERS = ("stable", "random")
RENDER_MODES = ("human", "ansi")
_STATE_CHARS = 10_000_000
_NO_PARENTS: tuple[str, ...] = ()


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(expected(name, value, allowed))


def _of_type(name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected {wanted}")


class FlexMG(TurnTaking):
    """A team on a task, one text action per turn. ``env()`` of a task's module puts a guard around it.

    task: problems and grader. team: roles, D and stop rule. name: the versioned module's, "math_v0"; by default the
    task's. rounds: at most how often each agent acts (>= 1). memory: what an agent reads of *earlier* rounds: "none",
    "own" texts, own and "parents" (of D then), "all". Within a round visibility is exactly D. order: "stable", or a
    "random" linear extension of D for each round. reward: "shared", "last", "answerer" or a callable (``reward.py``).
    format_bonus: added to the reward of an answering agent whose reply held an answer at all, right or wrong; reported
    apart in ``infos[agent]["format_bonus"]`` and in no score. max_turns: an outside limit on the turns of an episode.
    defer_grading: leave the verdicts to a later ``settle`` (the batch runner does).
    """

    metadata: dict[str, Any]
    # A game has at most 42 attributes: with one more CPython doubles the table that holds them, and with many games at
    # once a turn costs a tenth more.

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
        _one_of("memory", memory, MEMORIES)
        _one_of("order", order, ORDERS)
        _one_of("render_mode", render_mode, (None, *RENDER_MODES))
        _of_type("task", task, Task)
        _of_type("team", team, Team)
        rounds = whole_number("rounds", rounds, 1)
        if max_turns is not None:
            max_turns = whole_number("max_turns", max_turns, 1)
        _of_type("format_bonus", format_bonus, (int, float))
        if not math.isfinite(format_bonus):
            raise ValueError(f"format_bonus={format_bonus!r}: expected a finite number")
        _of_type("defer_grading", defer_grading, bool)
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
        self._particular = {a for a, role in team.roles.items() if role.choices or role.reply_prefix or role.tools}
        self._rng = np.random.default_rng()

    def sibling(self, *, defer_grading: bool) -> FlexMG:
        """Another game with the same task object, team and settings (batches have many)."""
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

    # ---- what PettingZoo asks for

    def observation_space(self, agent: str) -> Any:
        """The same object every time: ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix"}``."""
        return self._of(agent, self.observation_spaces)

    def action_space(self, agent: str) -> Any:
        """The same object every time: any UTF-8 text up to the role's ``max_chars``, or the role's choices."""
        return self._of(agent, self.action_spaces)

    def _of(self, agent: str, table: Mapping[str, Any]) -> Any:
        if agent not in table:
            raise ValueError(expected("agent", agent, self.possible_agents))
        return table[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode. A seed re-creates the generator, None continues its stream.

        ``options={"index": i}`` pins the problem, whatever the seed; without it the generator draws the index. The
        same arguments give the same episode in every process, and a seed with the index that it drew gives it, too.
        Unknown option keys are tolerated: wrappers of other libraries add their own. TypeError and ValueError name a
        seed or options of another kind, IndexError an index outside the task.
        """
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options={options!r:.80}: got {type(options).__name__}, expected {{'index': 3}} or None")
        if seed is not None:
            self._rng = np.random.default_rng(whole_number("seed", seed, 0))
        pinned = options.get("index") if options else None
        if pinned is not None:
            pinned = check_index(self.task, pinned)
        drawn = int(self._rng.integers(UNLIMITED if self.task.size is None else self.task.size))
        self.problem: Problem = self.task.problem(drawn if pinned is None else pinned)
        self._public = self.problem.public
        self._open_books()
        self._heads = {agent: self._head(agent, role) for agent, role in self._roles.items()}
        self.transcript = []
        self.feedback = []
        self._memories = {agent: [] for agent in self.possible_agents}
        self._begin_round(0)
        if self.render_mode == "human":
            print(rendering.head(self))

    def agent_iter(self, max_iter: int = 2**63) -> Iterator[str]:  # type: ignore[override]
        """The selected agent, again and again while agents are left; each needs its step."""
        while self.agents and max_iter > 0:
            max_iter -= 1
            yield self.agent_selection

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        """Observation, accumulated reward, terminated, truncated and info of the selected agent."""
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def observe(self, agent: str) -> dict[str, Any]:
        """What ``agent`` would read if it were its turn now: profile, problem, memory, this round's parents. Also for
        agents that do not act now, and after the end."""
        try:
            role = self._roles[agent]
        except KeyError:
            raise ValueError(expected("agent", agent, self.possible_agents)) from None
        limit, said = role.max_observed_chars, self._said
        messages = []
        for message in self._heads[agent]:
            messages.append({**message})  # a loop: a comprehension is a function call before Python 3.12
        if self._memories[agent]:
            messages += [heard(agent, limit, turn) for turn in self._memories[agent]]
        if said:
            for parent in self._parents.get(agent, _NO_PARENTS):
                if parent in said:
                    messages.append(heard(agent, limit, said[parent]))
        if self._tool_turns and agent == self._tool_turns[0].agent:
            messages += [heard(agent, limit, turn) for turn in self._tool_turns]
        return {"messages": tuple(messages), "reply_prefix": role.reply_prefix}

    def step(self, action: str | None) -> None:
        """The selected agent says ``action``; for a dead agent only None is valid.

        Raises TypeError for anything but a str from a live agent and ValueError for anything but None from a dead one;
        nothing has changed then. Too long a text is clipped, lone surrogates are replaced; ``infos`` flags both.
        """
        agent = self.agent_selection
        if self.over:
            self._dead_step(agent, action)
            return
        if not isinstance(action, str):
            raise TypeError(f"action of {agent}: got {type(action).__name__} ({action!r:.80}), expected str")
        if len(action) > self._limits[agent] or not (action.isascii() or is_utf8(action)):
            action = self._repaired(agent, action)
        if agent in self._particular:
            role = self._roles[agent]
            if role.choices and action not in role.choices:
                self.infos[agent]["outside_space"] = action[:80]
            action = role.reply_prefix + action
            if role.tools and self._called_tool(agent, role, action):
                return
        turn = self._said[agent] = new_turn((self.round, agent, action, "say"))
        self.transcript.append(turn)
        if self.render_mode is not None and self.render_mode == "human":
            print(rendering.line(self, turn))
        self._position = position = self._position + 1
        if position < len(self._order):
            self.agent_selection = self._order[position]
        else:
            self._end_of_order()
        if self.max_turns is not None:
            self._check_turn_limit()

    def state(self) -> dict[str, Any]:
        """The game's global state, gold apart: the public prompt, every private part, every text so far."""
        public = self._public
        messages = [{"role": "user", "name": "task", "content": public.prompt}] if public.prompt else []
        messages += [{"role": "user", "name": f"task for {a}", "content": text} for a, text in public.private.items()]
        messages += [{"role": "assistant", "name": turn.agent, "content": turn.text} for turn in self.transcript]
        return {"messages": tuple(messages), "reply_prefix": ""}

    def render(self) -> str | None:
        """The episode so far as text: returned for "ansi", printed for "human" (which also prints every step)."""
        if self.render_mode is None:
            raise ValueError(f"render_mode=None: expected one of {RENDER_MODES} when the environment was made")
        text = rendering.episode(self)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def _briefing(self) -> Mapping[str, str]:
        return self.team.schedule.briefing(self.team.roles, self.team.answering, self.rounds)

    def _longest(self, agent: str, role: Role) -> int:
        """The length of the longest text in an observation: what its instructions need is never cut."""
        fixed = opening(agent, role, PublicProblem(0, "", {}), self._briefing.get(agent, ""))
        return max(role.max_observed_chars, len(role.reply_prefix), *(len(m["content"]) for m in fixed))

    def _head(self, agent: str, role: Role) -> tuple[Message, ...]:
        """What the agent reads before anybody has spoken; of a problem beyond its limit the newest characters."""
        messages = opening(agent, role, self._public, self._briefing.get(agent, ""))
        limit, task = role.max_observed_chars, messages[-1] if messages else {}
        if task.get("role") != "user" or len(task["content"]) <= limit:
            return messages
        self.infos[agent]["problem_clipped"] = len(task["content"])
        return (*messages[:-1], {**task, "content": task["content"][-limit:]})

    # ---- one reply

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
        """Run the reply's tool call, if it has one and the role has calls left: then the agent acts again."""
        body = find_call(text)
        calls = sum(turn.kind == "call" for turn in self._tool_turns)
        if body is None or calls >= role.max_tool_calls:
            self._tool_turns = []
            return False
        call = Turn(self.round, agent, text, "call")
        self.transcript.append(call)
        try:
            result = Turn(self.round, agent, as_utf8(answer_call(body, role.tools)), "result")
        except ToolFault as fault:
            self._fail(f"{agent}: {fault}")
            return True
        self.transcript.append(result)
        self._tool_turns += [call, result]
        if self.render_mode == "human":
            print(rendering.line(self, call), rendering.line(self, result), sep="\n")
        if self.max_turns is not None:
            self._check_turn_limit()
        return True


__all__ = ["FlexMG", "Turn"]
