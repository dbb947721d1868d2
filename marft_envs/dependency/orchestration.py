"""Orchestrated schedules: the reply of one agent, the orchestrator, decides which agents act next and in which order.

The Flexible Markov Game lets D change with time (MARFT, arXiv 2504.16129, section 3; docs/reference/algorithms.md,
section 1).

    team = Team(roles, Orchestrated("planner_0"))

The orchestrator acts first in each round. The environment appends a briefing to its system message: its teammates, the
form of a reply, and what happens if the reply cannot be read. Its role need not describe any of this.

| reply | effect |
|---|---|
| a line ``reasoner_0: task`` | reasoner_0 acts; it sees the orchestrator's reply and no other message of this round |
| a line ``actor_0 (after reasoner_0): task`` | actor_0 acts after reasoner_0, and sees its message too |
| a name that no teammate has | ignored, and listed in ``infos[orchestrator]["plan_unknown"]`` |
| an invalid plan | all act under the ``fallback`` D; ``infos[orchestrator]["plan_malformed"]`` gives the reason |
| the word FINISH | the episode ends with this round; at once if no line names a teammate |

A plan is invalid if no line names a teammate (and the reply does not contain FINISH), if it has a cycle, or if an agent
waits for a teammate that has no line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from marft_envs.arguments import callable_name, check_callable, check_nonempty, expected_one_of
from marft_envs.dependency import diagram
from marft_envs.dependency.graph import CycleError, Dependency, as_dependency
from marft_envs.dependency.schedule import Extension, Schedule, Transcript, indented
from marft_envs.task import PublicProblem
from marft_envs.transcript import has_word

Reader = Callable[[str, tuple[str, ...]], "Dependency | None"]

# Models write these replies, so matching must take linear time: every repetition is possessive and never backtracks.
_MARKDOWN = r"[\s\-*#>`\d.)]*+"
_PLAN_LINE = re.compile(rf"{_MARKDOWN}\b([A-Za-z]\w*+)[*`]*+\s*+(?:\(\s*+after\s++([^)]*+)\)\s*+)?[*`]*+\s*+:", re.I)
_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z_]*_\d+")


class Orchestrated(Schedule):
    """A schedule in which the orchestrator acts first in every round, and its reply decides which agents act next.

    All agents that act after the orchestrator see its reply. The module's docstring describes the replies.

    Args:
        orchestrator: The name of the agent.
        read: ``(reply, other agents) -> Dependency`` over the agents that act next; None for a reply that names no
            agent, and ValueError for one that cannot be read. ``read_plan`` (the default) reads one line per agent,
            ``read_next`` the name of a single agent.
        syntax: Describes the form of a reply to the orchestrator. Required for a ``read`` of your own; "" if the
            orchestrator's instructions describe it.
        finish: The word that ends the episode with this round.
        fallback: D over the other agents if the reply cannot be read, in any form that ``as_dependency`` accepts.
        agents: The team's agents. Leave it out: the team binds the schedule to its agents.

    Raises:
        TypeError, ValueError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        orchestrator: str,
        *,
        read: Reader | None = None,
        syntax: str | None = None,
        finish: str = "FINISH",
        fallback: Any = "chain",
        agents: Sequence[str] = (),
    ) -> None:
        if syntax is not None and not isinstance(syntax, str):
            got = type(syntax).__name__
            raise TypeError(f"Orchestrated syntax={syntax!r:.80}: got {got}, expected a string or None")
        self.orchestrator = check_nonempty("Orchestrated orchestrator", orchestrator)
        self.finish = check_nonempty("Orchestrated finish", finish)
        self.fallback, self.syntax = fallback, syntax
        self.read: Reader = read_plan if read is None else read
        check_callable("Orchestrated read", self.read, ("reply", "agents"))
        if syntax is None and _syntax_of(self.read) is None:
            raise ValueError(
                f"Orchestrated read={callable_name(self.read)}: expected syntax= as well, which describes the form of "
                "a reply to the orchestrator ('' if its instructions describe it)"
            )
        self.agents = tuple(agents)
        self.others: tuple[str, ...] = ()
        if self.agents:
            if orchestrator not in self.agents:
                raise ValueError(expected_one_of("orchestrator", orchestrator, self.agents))
            if len(self.agents) < 2:
                raise ValueError(f"orchestrator={orchestrator!r} is the only agent: expected at least one other")
            if finish in self.agents:
                raise ValueError(f"Orchestrated finish={finish!r}: expected a word other than the agents' names")
            self.others = tuple(a for a in self.agents if a != orchestrator)
            self._first = Dependency.preset("none", [orchestrator])
            self._fallback = _fallback_dependency(fallback, self.others)

    def bind(self, agents: Sequence[str]) -> Orchestrated:
        """Return the same schedule for a team of ``agents``."""
        return Orchestrated(
            self.orchestrator,
            read=self.read,
            syntax=self.syntax,
            finish=self.finish,
            fallback=self.fallback,
            agents=agents,
        )

    def _settings(self) -> dict[str, Any]:
        # Fallbacks are compared as Dependencies once the agents are known; before that, arrays as nested lists.
        return {**vars(self), "fallback": self._fallback if self.agents else _as_lists(self.fallback)}

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self._first

    def extend(self, problem: PublicProblem, transcript: Transcript, round: int) -> Extension | None:
        if transcript[-1].round != round or transcript[-1].agent != self.orchestrator:
            return None
        reply = transcript[-1].text
        stop = has_word(reply, self.finish)
        unknown = unknown_names(reply, self.agents)
        try:
            plan = self.read(reply, self.others)
        except (CycleError, ValueError) as fault:
            return Extension(self._fallback, stop, str(fault), unknown)
        if plan is not None:
            return Extension(self._checked(plan), stop, unknown=unknown)
        if stop:
            return Extension(None, True, unknown=unknown)
        return Extension(self._fallback, False, f"the reply names none of {', '.join(self.others)}", unknown)

    def _checked(self, plan: Any) -> Dependency:
        if isinstance(plan, Dependency) and set(plan.agents) <= set(self.others):
            return plan
        raise TypeError(
            f"Orchestrated read={callable_name(self.read)} returned {plan!r:.200}: expected None or a Dependency over "
            f"some of {', '.join(self.others)}"
        )

    def briefing(self, summaries: Mapping[str, str], answering: Sequence[str], rounds: int) -> dict[str, str]:
        """Return the orchestrator's briefing: teammates, the form of a reply, the fallback, and the word that ends."""
        describe = _syntax_of(self.read)
        syntax = describe(self.others) if self.syntax is None and describe else self.syntax
        lines = [
            "You direct the team. In each round you act first, and your reply decides which teammates act next. They "
            "read your reply. Your teammates:",
            *(f"- {_teammate(agent, summaries[agent], agent in answering)}" for agent in self.others),
            *([syntax] if syntax else []),
            f"If your reply does not have the required form, all teammates act: {', '.join(self._fallback.order)}.",
        ]
        if rounds > 1:
            lines.append(
                f"There are at most {rounds} rounds. Write {self.finish} to end the work after this round. If you "
                f"write {self.finish} and name no teammate, the work ends at once."
            )
        return {self.orchestrator: "\n".join(lines)}

    def __repr__(self) -> str:
        return f"Orchestrated({self.orchestrator!r}, read={callable_name(self.read)}, agents={list(self.agents)!r})"

    def __str__(self) -> str:
        others = ", ".join(self.others) if self.agents else "its teammates"
        fallback = self._fallback if self.agents else self.fallback
        reader = callable_name(self.read)
        return (
            f"{self.orchestrator} acts first in each round; every agent that acts after it sees its reply\n"
            f"the reply, read by {reader}, decides which of {others} act, and which messages each of them sees\n"
            f"{self.finish} in the reply ends the episode with the round\n"
            f"if the reply cannot be read:\n{indented(fallback)}"
        )

    def graphs(self) -> list[diagram.Graph]:
        edges = tuple((self.orchestrator, other) for other in self.others)
        return [diagram.Graph(self.agents, edges, dashed=True)]


def _fallback_dependency(spec: Any, others: tuple[str, ...]) -> Dependency:
    """Return the fallback as a Dependency over ``others``; its errors name the argument."""
    try:
        return as_dependency(spec, others)
    except (TypeError, ValueError) as fault:
        raise ValueError(f"Orchestrated fallback={spec!r:.80}: {fault}") from fault


def _as_lists(spec: Any) -> Any:
    """Return ``spec`` with arrays and tuples as lists: ``==`` compares those as a whole."""
    spec = spec.tolist() if isinstance(spec, np.ndarray) else spec
    return [_as_lists(entry) for entry in spec] if isinstance(spec, (list, tuple)) else spec


def _teammate(agent: str, summary: str, answers: bool) -> str:
    notes = [summary] * bool(summary) + ["gives the team's answer"] * answers
    return f"{agent}: {'; '.join(notes)}" if notes else agent


def read_plan(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """Read a plan with one line per agent.

    ``name: task`` makes an agent act. ``name (after other, other): task`` makes it act after the others, and see their
    messages. Names that no agent has are ignored.

    Args:
        reply: The orchestrator's reply.
        agents: The other agents of the team.

    Returns:
        D over the agents that have a line; None if none of them has.

    Raises:
        CycleError: The agents of the plan wait for each other.
        ValueError: An agent waits for one that has no line.
    """
    parents: dict[str, list[str]] = {}
    for name, after in _plan_lines(reply):
        if name in agents:
            parents.setdefault(name, []).extend(other for other in after if other in agents)
    if not parents:
        return None
    acting = [agent for agent in agents if agent in parents]
    missing = sorted({other for after in parents.values() for other in after} - set(acting))
    if missing:
        raise ValueError(f"the plan waits for {', '.join(missing)} but has no line for it")
    return Dependency.from_edges(acting, [(seen, agent) for agent, after in parents.items() for seen in after])


def read_next(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """Read the name of the agent that acts next.

    Args:
        reply: The orchestrator's reply.
        agents: The other agents of the team.

    Returns:
        D over the agent whose name occurs last in the reply; None if no name occurs.
    """
    last = {agent: match.start() for agent in agents for match in re.finditer(rf"\b{re.escape(agent)}\b", reply)}
    return Dependency.preset("none", [max(last, key=last.__getitem__)]) if last else None


def unknown_names(reply: str, agents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a plan's lines that none of ``agents`` has, each once, in order.

    A word before a colon counts as a name only if it looks like one (``word_0``); a word after "after" always counts.
    """
    names: list[str] = []
    for name, after in _plan_lines(reply):
        names += [name] if _AGENT_NAME.fullmatch(name) else []
        names += after
    return tuple(dict.fromkeys(name for name in names if name not in agents))


def _plan_lines(reply: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (word before the colon, names after "after") for each line of a plan; Markdown is ignored."""
    for line in reply.splitlines():
        match = _PLAN_LINE.match(line)
        if match:
            after = re.split(r"[,;\s*`]+(?:and\s+)?", (match.group(2) or "").strip())
            yield match.group(1), tuple(name for name in after if name)


def _plan_syntax(others: tuple[str, ...]) -> str:
    """Return the description of ``read_plan`` for the orchestrator."""
    first, last = others[0], others[-1]
    lines = ["Write one line for each teammate that must act:", f"{first}: its task"]
    if first != last:
        lines += [
            "To make a teammate wait for another one and read its message, write:",
            f"{last} (after {first}): its task",
        ]
    return "\n".join([*lines, "A teammate without a line does not act."])


def _next_syntax(others: tuple[str, ...]) -> str:
    """Return the description of ``read_next`` for the orchestrator."""
    return (
        f"Write the name of the teammate that must act next, for example: {others[0]}. If you write several names, the "
        "last one counts."
    )


def _syntax_of(read: Reader) -> Callable[[tuple[str, ...]], str] | None:
    """Return the function that describes a ready-made reader; None for another reader."""
    return {read_plan: _plan_syntax, read_next: _next_syntax}.get(read) if inspect.isfunction(read) else None
