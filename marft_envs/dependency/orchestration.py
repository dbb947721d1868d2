"""D from an agent's own reply: the orchestrator says who acts next, or which plan of sub-tasks to run.

Dynamic organisation: Flex-MG lets D_t change with t (MARFT, arXiv 2504.16129, section 3; algorithms.md section 1).

    team = Team(roles, Orchestrated("planner_0"))

In each round the orchestrator speaks first. Its system message, after its instructions, tells it who its teammates are,
how to write its reply, and what comes of a reply that cannot be read: the environment puts it there, no role has to.

| reply | what happens |
|---|---|
| lines ``reasoner_0: sub-task`` | the named act; each reads the orchestrator, nobody else of this round |
| ``actor_0 (after reasoner_0): sub-task`` | it waits for these, and reads them too |
| a name that no teammate has | left out, and listed in ``infos[orchestrator]["plan_unknown"]`` |
| a plan that cannot be run | the ``fallback`` D over all; why, in ``infos[orchestrator]["plan_malformed"]`` |
| the word FINISH | the episode ends with this round; at once when no line names a teammate |

A plan cannot be run when no line names a teammate (and FINISH is not said), when it goes in a circle, and when somebody
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

# Linear in the length of what a model writes: every repetition is possessive, nothing is read twice.
_MARKS = r"[\s\-*#>`\d.)]*+"
_LINE = re.compile(rf"{_MARKS}\b([A-Za-z]\w*+)[*`]*+\s*+(?:\(\s*+after\s++([^)]*+)\)\s*+)?[*`]*+\s*+:", re.I)
_AGENT_FORM = re.compile(r"[A-Za-z][A-Za-z_]*_\d+")


class Orchestrated(Schedule):
    """The orchestrator speaks first in every round; its reply decides who acts after it, seeing its text.

    read: ``(reply, other agents) -> Dependency`` over those that act, None for a reply that names nobody:
    ``names_plan`` (sub-tasks with their order, the default), ``names_next`` (one agent), or your own. syntax: what the
    orchestrator is told of how to write its reply; to be given with a reader of your own, "" where its instructions say
    it. finish: the word that ends the episode with this round. fallback: D of the others when the reply cannot be read.
    Write it as ``Orchestrated("manager_0")``; the game binds it to its team. ValueError names what is wrong.
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
            raise TypeError(f"Orchestrated syntax={syntax!r:.80}: got {type(syntax).__name__}, expected a text or None")
        self.orchestrator = check_nonempty("Orchestrated orchestrator", orchestrator)
        self.finish = check_nonempty("Orchestrated finish", finish)
        self.fallback, self.syntax = fallback, syntax
        self.read: Reader = names_plan if read is None else read
        check_callable("Orchestrated read", self.read, ("reply", "agents"))
        if syntax is None and _syntax_of(self.read) is None:
            raise ValueError(
                f"Orchestrated read={callable_name(self.read)}: expected syntax= with it, what the orchestrator is told of "
                "how to write its reply ('' where its instructions say it)"
            )
        self.agents = tuple(agents)
        self.others: tuple[str, ...] = ()
        if self.agents:
            if orchestrator not in self.agents:
                raise ValueError(expected_one_of("orchestrator", orchestrator, self.agents))
            if len(self.agents) < 2:
                raise ValueError(f"orchestrator={orchestrator!r} is alone: expected at least one other agent")
            if finish in self.agents:
                raise ValueError(f"Orchestrated finish={finish!r}: expected a word that is no agent's name")
            self.others = tuple(a for a in self.agents if a != orchestrator)
            self._first = Dependency.preset("none", [orchestrator])
            self._fallback = _bound_fallback(fallback, self.others)

    def bound(self, agents: Sequence[str]) -> Orchestrated:
        """The same schedule for a team of ``agents``."""
        return Orchestrated(
            self.orchestrator,
            read=self.read,
            syntax=self.syntax,
            finish=self.finish,
            fallback=self.fallback,
            agents=agents,
        )

    def _settings(self) -> dict[str, Any]:
        """As they are, but for the fallback: D once it is known, before that lists for arrays."""
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
        return Extension(self._fallback, False, f"names none of {', '.join(self.others)}", unknown)

    def _checked(self, plan: Any) -> Dependency:
        if isinstance(plan, Dependency) and set(plan.agents) <= set(self.others):
            return plan
        raise TypeError(
            f"Orchestrated read={callable_name(self.read)} returned {plan!r:.200}: expected None or a Dependency over some "
            f"of {', '.join(self.others)}"
        )

    def briefing(self, summaries: Mapping[str, str], answering: Sequence[str], rounds: int) -> dict[str, str]:
        """What the orchestrator is told: its teammates, how to write a reply, what comes of one that cannot be read."""
        write = _syntax_of(self.read)
        told = write(self.others) if self.syntax is None and write else self.syntax
        lines = [
            "You direct the team: you speak first in each round, and your reply decides who acts after you. Who acts "
            "reads your reply. Your teammates:",
            *(f"- {_introduced(agent, summaries[agent], agent in answering)}" for agent in self.others),
            *([told] if told else []),
            f"If your reply cannot be read in this way, all of them act: {', '.join(self._fallback.order)}.",
        ]
        if rounds > 1:
            lines.append(f"There are at most {rounds} rounds. The word {self.finish} in your reply ends the work with ")
            lines[-1] += "this round, or at once if you name nobody."
        return {self.orchestrator: "\n".join(lines)}

    def __repr__(self) -> str:
        return f"Orchestrated({self.orchestrator!r}, read={callable_name(self.read)}, agents={list(self.agents)!r})"

    def __str__(self) -> str:
        others = ", ".join(self.others) if self.agents else "its teammates"
        fallback = self._fallback if self.agents else self.fallback
        return "\n".join(
            [
                f"{self.orchestrator} speaks first in each round, and is seen by all who act after it",
                f"its reply, read by {callable_name(self.read)}, decides who of {others} acts, and who sees whom",
                f"{self.finish} in it ends the episode with the round",
                f"when it cannot be read:\n{indented(fallback)}",
            ]
        )

    def parts(self) -> list[diagram.Part]:
        edges = tuple((self.orchestrator, other) for other in self.others)
        return [diagram.Part(self.agents, edges, possible=True)]


def _bound_fallback(spec: Any, others: tuple[str, ...]) -> Dependency:
    try:
        return as_dependency(spec, others)
    except (TypeError, ValueError) as fault:
        raise ValueError(f"Orchestrated fallback={spec!r:.80}: {fault}") from fault


def _as_lists(spec: Any) -> Any:
    """The same D with lists for arrays and tuples, which ``==`` compares as wholes."""
    spec = spec.tolist() if isinstance(spec, np.ndarray) else spec
    return [_as_lists(entry) for entry in spec] if isinstance(spec, (list, tuple)) else spec


def _introduced(agent: str, summary: str, answers: bool) -> str:
    words = [summary] * bool(summary) + ["gives the team's answer"] * answers
    return f"{agent}: {'; '.join(words)}" if words else agent


def names_plan(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """Lines ``name: sub-task`` name who acts; ``name (after other, other): sub-task`` also after whom, seeing them.

    None when no line names an agent. Names that nobody has are left out. Raises CycleError for a plan that nobody could
    begin, and ValueError for an "after" with an agent that has no line.
    """
    steps: dict[str, list[str]] = {}
    for name, after in _lines(reply):
        if name in agents:
            steps.setdefault(name, []).extend(other for other in after if other in agents)
    if not steps:
        return None
    acting = [agent for agent in agents if agent in steps]
    waiting = sorted({other for after in steps.values() for other in after} - set(acting))
    if waiting:
        raise ValueError(f"the plan waits for {', '.join(waiting)}, without a line for it")
    return Dependency.from_edges(acting, [(seen, agent) for agent, after in steps.items() for seen in after])


def names_next(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """The agent whose name stands last in the reply acts next; None when there is no name."""
    places = {agent: m.start() for agent in agents for m in re.finditer(rf"\b{re.escape(agent)}\b", reply)}
    return Dependency.preset("none", [max(places, key=places.__getitem__)]) if places else None


def unknown_names(reply: str, agents: tuple[str, ...]) -> tuple[str, ...]:
    """Names that a plan's lines have where agents stand, and that none of ``agents`` has, each once, in order."""
    found = [n for name, after in _lines(reply) for n in (*([name] if _AGENT_FORM.fullmatch(name) else ()), *after)]
    return tuple(dict.fromkeys(name for name in found if name not in agents))


def _lines(reply: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(word before the colon, names after "after") of each line of that form; Markdown's marks are passed over."""
    for line in reply.splitlines():
        head = _LINE.match(line)
        if head:
            after = re.split(r"[,;\s*`]+(?:and\s+)?", (head.group(2) or "").strip())
            yield head.group(1), tuple(name for name in after if name)


def _plan_syntax(others: tuple[str, ...]) -> str:
    """What is told of ``names_plan``."""
    first, last = others[0], others[-1]
    lines = ["Write one line for each teammate that is to act:", f"{first}: what it is to do"]
    if first != last:
        lines += [
            f"{last} (after {first}): what it is to do",
            'Whom you name after "after" acts before, and is read, too. Who has no line does not act.',
        ]
    return "\n".join(lines)


def _next_syntax(others: tuple[str, ...]) -> str:
    """What is told of ``names_next``."""
    return f"Name the one that is to act next, as in: {others[0]}. Where you name several, the last name counts."


def _syntax_of(read: Reader) -> Callable[[tuple[str, ...]], str] | None:
    """What writes the syntax of a reader that is ready-made."""
    return {names_plan: _plan_syntax, names_next: _next_syntax}.get(read) if inspect.isfunction(read) else None
