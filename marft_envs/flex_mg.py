"""FlexMG: the Flexible Markov Game as a PettingZoo AEC environment.

Whose turn it is, what they see, who is paid and when it ends. The tuple <V, N, S, A, T, R, gamma, D> is MARFT's
(arXiv 2504.16129, section 3); notation and rules in its terms: every action is a text, the state is the problem plus
the transcript, T appends the text, R is the team's graded score, and D decides order and visibility.

One episode: each round, the agents act once in an execution order of D; after the last round the texts of the
answering agents are graded. A wrong answer *terminates*. A fault of the grader *truncates*, with reward 0 and the
reason in ``infos[agent]["not_graded"]``, so that runners can drop and count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pettingzoo import AECEnv

from marft_envs import observation
from marft_envs.observation import Turn
from marft_envs.reward import Reward, TeamOutcome, as_reward
from marft_envs.spaces import UnicodeText, is_utf8, message_space
from marft_envs.task import Problem, Task
from marft_envs.team import Team
from marft_envs.verdict import Outcome, Verdict

Memory = Literal["none", "own", "parents", "all"]
Order = Literal["stable", "random"]
MEMORIES = ("none", "own", "parents", "all")
ORDERS = ("stable", "random")
RENDER_MODES = ("human", "ansi")
UNBOUNDED_SIZE = 2**31
_OBSERVED_CHARS = 1_000_000


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")


class FlexMG(AECEnv[str, dict[str, Any], str]):
    """A team on a task, one text action per turn. ``env()`` of a task's module puts a guard around it.

    task: problems and grader. team: roles and D. name: the versioned module's, "math_v0"; by default the task's.
    rounds: how often each agent acts (>= 1). memory: what an agent reads of *earlier* rounds: "none", "own" texts,
    own and "parents" (of D), "all". Within a round visibility is exactly D. order: "stable", or a "random" linear
    extension of D for each round. reward: "shared", "last", "answerer" or a callable (see ``reward.py``).
    defer_grading: leave the verdicts to a later ``settle`` (the batch runner does).
    """

    metadata: dict[str, Any]
    agent_selection: str

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
        render_mode: str | None = None,
        defer_grading: bool = False,
    ) -> None:
        super().__init__()
        _one_of("memory", memory, MEMORIES)
        _one_of("order", order, ORDERS)
        _one_of("render_mode", render_mode, (None, *RENDER_MODES))
        if not isinstance(rounds, int) or rounds < 1:
            raise ValueError(f"rounds={rounds!r}: expected an integer of at least 1")
        self.task, self.team = task, team
        self.rounds, self.memory, self.order = rounds, memory, order
        self.reward = as_reward(reward)
        self.render_mode = render_mode
        self.defer_grading = defer_grading
        self.metadata = {
            "name": name or f"{task.name}_v{task.version}",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": not team.dependency.matrix.any(),
        }
        self.possible_agents = list(team.agents)
        space = message_space(_OBSERVED_CHARS)
        self.observation_spaces = dict.fromkeys(team.agents, space)
        self.action_spaces = {agent: UnicodeText(role.max_chars) for agent, role in team.roles.items()}
        self.state_space = space
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
            render_mode=self.render_mode,
            defer_grading=defer_grading,
        )

    # ---- what PettingZoo asks for

    def observation_space(self, agent: str) -> Any:
        """The same object every time: ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix"}``."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """The same object every time: any UTF-8 text up to the role's ``max_chars``."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode. A seed re-creates the generator, None continues its stream.

        ``options={"index": i}`` pins the problem, whatever the seed; without it the generator draws the index. The
        same arguments give the same episode in every process. Unknown option keys are tolerated.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        index = (options or {}).get("index")
        if index is None:
            index = int(self._rng.integers(UNBOUNDED_SIZE if self.task.size is None else self.task.size))
        self.problem: Problem = self.task.problem(index)
        self._public = self.problem.public
        self._openings: dict[str, tuple[observation.Message, ...]] = {}

        self.agents = list(self.possible_agents)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}

        self.transcript: list[Turn] = []
        self.outcome: TeamOutcome | None = None
        self.over = False
        self._remembered: dict[str, list[Turn]] = {agent: [] for agent in self.agents}
        self._begin_round(0)
        if self.render_mode == "human":
            print(self._head())

    def observe(self, agent: str) -> dict[str, Any]:
        """What ``agent`` would read if it were its turn now: profile, problem, memory, this round's parents. Also for
        agents that do not act now, and after the end."""
        role = self.team.roles[agent]
        head = self._openings.get(agent)
        if head is None:
            head = self._openings[agent] = observation.opening(agent, role, self._public)
        said = self._said
        visible = [said[p] for p in self._parents[agent] if p in said]
        remembered = self._remembered[agent]
        if remembered:
            visible = remembered + visible
        return {"messages": observation.extend(agent, head, visible), "reply_prefix": role.reply_prefix}

    def step(self, action: str | None) -> None:
        """The selected agent says ``action``; for a dead agent only None is valid.

        Raises TypeError for anything but a str from a live agent and ValueError for anything but None from a dead one;
        nothing has changed then. Too long a text is clipped, lone surrogates are replaced; ``infos`` flags both.
        """
        agent = self.agent_selection
        if self.over:
            self._dead_step(agent, action)
            return
        if type(action) is not str and not isinstance(action, str):
            raise TypeError(f"action of {agent}: got {type(action).__name__} ({action!r:.80}), expected str")
        role = self.team.roles[agent]
        if len(action) > role.max_chars or not is_utf8(action):
            action = self._repaired(agent, action)
        turn = Turn(self.round, agent, role.reply_prefix + action if role.reply_prefix else action)
        self.transcript.append(turn)
        self._said[agent] = turn
        self._cumulative_rewards[agent] = 0.0
        if self.render_mode == "human":
            print(self._line(turn))
        self._position += 1
        if self._position < len(self._order):
            self.agent_selection = self._order[self._position]
        elif self.round + 1 < self.rounds:
            self._remember()
            self._begin_round(self.round + 1)
        else:
            self._finish()

    def state(self) -> dict[str, Any]:
        """The game's global state, gold apart: the public prompt, every private part, every text so far."""
        messages = [{"role": "user", "name": "task", "content": self._public.prompt}] if self._public.prompt else []
        messages += [
            {"role": "user", "name": f"task for {agent}", "content": text}
            for agent, text in self._public.private.items()
        ]
        messages += [{"role": "assistant", "name": turn.agent, "content": turn.text} for turn in self.transcript]
        return {"messages": tuple(messages), "reply_prefix": ""}

    def render(self) -> str | None:
        """The episode so far as text: returned for "ansi", printed for "human" (which also prints every step)."""
        if self.render_mode is None:
            raise ValueError(f"render_mode=None: expected one of {RENDER_MODES} when the environment was made")
        text = "\n".join([self._head(), *map(self._line, self.transcript), *self._tail()])
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Nothing is held open."""

    # ---- the round

    def _begin_round(self, number: int) -> None:
        self.round = number
        dependency = self.team.dependency
        self._parents: dict[str, tuple[str, ...]] = dependency.parents
        if self.order == "random":
            self._order = dependency.random_order(self._rng)
            place = {agent: i for i, agent in enumerate(self._order)}
            self._parents = {a: tuple(sorted(p, key=place.__getitem__)) for a, p in self._parents.items()}
        else:
            self._order = dependency.order
        self._position = 0
        self._said: dict[str, Turn] = {}
        self.agent_selection = self._order[0]

    def _remember(self) -> None:
        """Move the finished round into each agent's memory, as far as the policy lets it."""
        for agent, memory in self._remembered.items():
            sees = {
                "none": (),
                "own": (agent,),
                "parents": (agent, *self._parents[agent]),
                "all": tuple(self._said),
            }[self.memory]
            memory.extend(turn for speaker, turn in self._said.items() if speaker in sees)

    def _repaired(self, agent: str, action: str) -> str:
        limit = self.team.roles[agent].max_chars
        if len(action) > limit:
            self.infos[agent]["clipped"] = len(action)
            action = action[:limit]
        if not is_utf8(action):
            self.infos[agent]["malformed"] = "lone surrogates replaced by '?'"
            action = action.encode("utf-8", "replace").decode("utf-8")
        return action

    # ---- the end

    def answers(self) -> dict[str, tuple[str, Problem]]:
        """What is to be graded: for each answering agent its last text and the problem with that agent's gold."""
        last_text = {turn.agent: turn.text for turn in self.transcript}
        gold = self.problem.gold
        several = isinstance(gold, Mapping)
        return {
            agent: (last_text[agent], self._with_gold(gold[agent]) if several else self.problem)
            for agent in self.team.answering
        }

    def _with_gold(self, gold: Any) -> Problem:
        p = self.problem
        return Problem(p.index, p.prompt, gold, p.private, p.notes)

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
        """Book the verdicts: rewards and infos, and the end as termination, or as truncation after a fault."""
        faults = [f"{agent}: {v.reason}" for agent, v in verdicts.items() if not v.graded]
        scores = [v.score for v in verdicts.values()]
        self.outcome = TeamOutcome(
            agents=self.team.agents,
            answering=self.team.answering,
            verdicts=dict(verdicts),
            score=0.0 if faults else sum(scores) / len(scores),
            last_agent=self.transcript[-1].agent,
            rounds=self.round + 1,
        )
        paid = dict.fromkeys(self.team.agents, 0.0) if faults else self.reward(self.outcome)
        self.terminations = dict.fromkeys(self.agents, not faults)
        self.truncations = dict.fromkeys(self.agents, bool(faults))
        for agent in self.agents:
            self.rewards[agent] = paid[agent]
            self._cumulative_rewards[agent] += paid[agent]
            info = self.infos[agent]
            info["score"] = self.outcome.score
            if agent in verdicts:
                info["verdict"] = str(verdicts[agent].outcome)
            if faults:
                info["not_graded"] = "; ".join(faults)
        if self.render_mode == "human":
            print("\n".join(self._tail()))

    def _dead_step(self, agent: str, action: Any) -> None:
        if action is not None:
            raise ValueError(f"action of {agent}: got {action!r:.80} after its end, expected None")
        for table in (self.terminations, self.truncations, self.rewards, self._cumulative_rewards, self.infos):
            del table[agent]
        self.agents.remove(agent)
        for other in self.agents:
            self.rewards[other] = 0.0
        if self.agents:
            self.agent_selection = self.agents[0]

    # ---- for people

    def _head(self) -> str:
        public = self._public
        lines = [f"# {self} problem {public.index}", public.prompt]
        lines += [f"(only {agent} sees) {text}" for agent, text in public.private.items()]
        return "\n".join(line for line in lines if line)

    def _line(self, turn: Turn) -> str:
        mark = f" (round {turn.round})" if self.rounds > 1 else ""
        return f"[{turn.agent}{mark}] {turn.text}"

    def _tail(self) -> list[str]:
        if self.outcome is None:
            return []
        lines = [
            f"=> {agent}: {verdict.outcome}" + (f" ({verdict.reason})" if verdict.reason else "")
            for agent, verdict in self.outcome.verdicts.items()
        ]
        return [*lines, f"=> team score {self.outcome.score:g}"]


def grade_one(task: Task, answer: str, problem: Problem) -> Verdict:
    """``task.grade`` behind the boundary of faults: whatever it raises becomes NOT_GRADED with the exception's name."""
    try:
        verdict = task.grade(answer, problem)
    except Exception as fault:  # the boundary: a grader's fault is counted, not scored
        return Verdict.not_graded(f"{type(fault).__name__}: {fault}")
    if not isinstance(verdict, Verdict):
        return Verdict.not_graded(f"{task.name}.grade returned {type(verdict).__name__}, expected Verdict")
    return verdict


__all__ = ["FlexMG", "Outcome", "grade_one"]
