"""When a game of several rounds ends before its last round: by agreement, or by a role's word. Never by the gold.

A rule is a callable ``(turns of the round just played, task) -> bool``; a Team carries at most one.
What it raises is a fault, as a grader's: the episode ends truncated, and is not graded.
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
    """The named agents all spoke in this round and gave the same answer, as ``task.answer_of`` reads it."""

    agents: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.agents, str) or not isinstance(self.agents, Iterable):
            raise TypeError(f"Agreement agents={self.agents!r:.80}: expected several agents in a list or tuple")
        object.__setattr__(self, "agents", tuple(check_nonempty("Agreement agent", agent) for agent in self.agents))
        if len(self.agents) < 2 or repeated(self.agents):
            raise ValueError(f"stop: agreement of {list(self.agents)}: expected at least two agents, and no name twice")

    def __call__(self, turns: Sequence[Turn], task: Task) -> bool:
        answers = {turn.agent: task.answer_of(turn.text) for turn in turns if turn.agent in self.agents}
        said = set(answers.values())
        return len(answers) == len(self.agents) and len(said) == 1 and None not in said


@dataclass(frozen=True)
class Word:
    """The named agent's text of this round holds ``word``, as a word of its own."""

    agent: str
    word: str

    def __post_init__(self) -> None:
        for name in ("agent", "word"):
            check_nonempty(f"Word {name}", getattr(self, name))

    @property
    def agents(self) -> tuple[str, ...]:
        """Whose text decides."""
        return (self.agent,)

    def __call__(self, turns: Sequence[Turn], task: Task) -> bool:
        return any(turn.agent == self.agent and has_word(turn.text, self.word) for turn in turns)


def as_stop_rule(spec: Any, agents: Sequence[str]) -> StopRule | None:
    """A rule from a rule, None, or a team file's ``{"agreement": [agents]}`` or ``{"word": [agent, word]}``."""
    if spec is None:
        return None
    rule: StopRule = _of_a_file(spec) if isinstance(spec, dict) else spec
    if not callable(rule):
        raise TypeError(f"stop={spec!r}: expected a rule (turns, task) -> bool, Agreement(...), Word(...) or None")
    check_callable("stop", rule, ("turns", "task"))
    strangers = [a for a in getattr(rule, "agents", ()) if a not in agents]
    if strangers:
        raise ValueError(f"stop names {strangers}: expected some of {list(agents)}")
    return rule


def _of_a_file(table: dict[str, Any]) -> StopRule:
    kind, words = next(iter(table.items())) if len(table) == 1 else ("", None)
    if isinstance(words, (list, tuple)):
        if kind == "agreement":
            return Agreement(tuple(words))
        if kind == "word" and len(words) == 2:
            return Word(*words)
    raise ValueError(f"stop={table!r}: expected {{'agreement': [agents]}} or {{'word': [agent, word]}}")
