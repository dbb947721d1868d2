"""Stop rules: conditions under which an episode of several rounds ends before its last round.

A rule is a callable ``(turns of the round just played, task) -> bool``; a Team has at most one. Rules never see the
gold. An exception in a rule is a fault, as in a grader: the episode is truncated and not graded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marft_envs.arguments import check_callable, check_nonempty, repeated
from marft_envs.task import Task
from marft_envs.transcript import Turn, has_word

StopRule = Callable[[Sequence[Turn], Task], bool]


@dataclass(frozen=True)
class Agreement:
    """Stop when the named agents all acted in this round and gave the same answer.

    ``Task.answer_of`` extracts the answers. Messages without an answer never agree.

    Attributes:
        agents: At least two agents.
    """

    agents: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.agents, str) or not isinstance(self.agents, Iterable):
            raise TypeError(f"Agreement agents={self.agents!r:.80}: expected a list or tuple of agents")
        object.__setattr__(self, "agents", tuple(check_nonempty("Agreement agent", agent) for agent in self.agents))
        if len(self.agents) < 2 or repeated(self.agents):
            raise ValueError(f"stop: agreement of {list(self.agents)}: expected at least two agents, and no name twice")

    def __call__(self, turns: Sequence[Turn], task: Task) -> bool:
        answers = {turn.agent: task.answer_of(turn.text) for turn in turns if turn.agent in self.agents}
        distinct = set(answers.values())
        return len(answers) == len(self.agents) and len(distinct) == 1 and None not in distinct


@dataclass(frozen=True)
class Word:
    """Stop when the agent's message of this round contains the word.

    Attributes:
        agent: The agent.
        word: Any characters; in the message, a letter, digit or underscore must not be next to it.
    """

    agent: str
    word: str

    def __post_init__(self) -> None:
        for name in ("agent", "word"):
            check_nonempty(f"Word {name}", getattr(self, name))

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that the rule names."""
        return (self.agent,)

    def __call__(self, turns: Sequence[Turn], task: Task) -> bool:
        return any(turn.agent == self.agent and has_word(turn.text, self.word) for turn in turns)


def as_stop_rule(spec: Any, agents: Sequence[str]) -> StopRule | None:
    """Return the stop rule that ``spec`` describes.

    Args:
        spec: A rule, None, or a mapping as in team files: ``{"agreement": [agents]}`` or ``{"word": [agent, word]}``.
        agents: The agents of the team.

    Raises:
        TypeError, ValueError: ``spec`` is none of these, or names an agent that is not in the team.
    """
    if spec is None:
        return None
    rule: StopRule = _from_mapping(spec) if isinstance(spec, dict) else spec
    if not callable(rule):
        raise TypeError(f"stop={spec!r}: expected a rule (turns, task) -> bool, Agreement(...), Word(...) or None")
    check_callable("stop", rule, ("turns", "task"))
    unknown = [a for a in getattr(rule, "agents", ()) if a not in agents]
    if unknown:
        raise ValueError(f"stop names {unknown}: expected some of {list(agents)}")
    return rule


def _from_mapping(mapping: dict[str, Any]) -> StopRule:
    kind, arguments = next(iter(mapping.items())) if len(mapping) == 1 else ("", None)
    if isinstance(arguments, (list, tuple)):
        if kind == "agreement":
            return Agreement(tuple(arguments))
        if kind == "word" and len(arguments) == 2:
            return Word(*arguments)
    raise ValueError(f"stop={mapping!r}: expected {{'agreement': [agents]}} or {{'word': [agent, word]}}")
