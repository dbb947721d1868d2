"""Observations: the chat messages that an agent reads.

o_j = concat(profile_j, s, {a_k : D[k, j] = 1} in execution order), the effective observation of MARFT (arXiv
2504.16129, section 3; docs/reference/algorithms.md, section 1), and the messages of earlier rounds that the agent
remembers. Only ``problem.public`` is used, so no observation can depend on the gold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium import Space

from marft_envs.arguments import expected_one_of
from marft_envs.game.rounds import Rounds
from marft_envs.game.spaces import message_space
from marft_envs.task import PublicProblem
from marft_envs.team.role import Role
from marft_envs.transcript import Turn

Message = dict[str, str]
THINKING, END_THINKING = "<think>", "</think>"
_NO_PARENTS: tuple[str, ...] = ()


class Observer:
    """The observations of a team's agents.

    Args:
        roles: The role of each agent.
        briefing: What the team's schedule appends to the profile of an orchestrator, by agent.

    Attributes:
        spaces: The observation space of each agent.
    """

    def __init__(self, roles: Mapping[str, Role], briefing: Mapping[str, str]) -> None:
        self._roles = dict(roles)
        self._briefing = {agent: briefing.get(agent, "") for agent in roles}
        self.spaces: dict[str, Space[Any]] = {
            agent: message_space(longest_message(agent, role, self._briefing[agent])) for agent, role in roles.items()
        }

    def begin_episode(self, problem: PublicProblem) -> dict[str, int]:
        """Make the messages before any turn.

        Args:
            problem: The problem without its gold.

        Returns:
            The full length of the problem, by agent, for each agent whose role allows only the end of it.
        """
        self._openings: dict[str, tuple[Message, ...]] = {}
        lengths = {}
        for agent, role in self._roles.items():
            messages = opening_messages(agent, role, problem, self._briefing[agent])
            self._openings[agent], length = truncate_problem(messages, role.max_observed_chars)
            if length is not None:
                lengths[agent] = length
        return lengths

    def observe(self, agent: str, rounds: Rounds) -> dict[str, Any]:
        """Return what ``agent`` reads if it acts now: profile, problem, memory, and its parents' messages.

        Args:
            agent: Any agent of the team.
            rounds: The turns of the present round and the agents' memories.

        Raises:
            ValueError: The agent is unknown.
        """
        try:
            role = self._roles[agent]
        except KeyError:
            raise ValueError(expected_one_of("agent", agent, list(self._roles))) from None
        limit = role.max_observed_chars
        messages = []
        for message in self._openings[agent]:
            messages.append({**message})  # a loop is faster here: before Python 3.12 a comprehension is a function call
        memory = rounds.memories[agent]
        if memory:
            messages += [as_message(agent, limit, turn) for turn in memory]
        turns = rounds.turns
        if turns:
            for parent in rounds.parents.get(agent, _NO_PARENTS):
                if parent in turns:
                    messages.append(as_message(agent, limit, turns[parent]))
        tool_turns = rounds.tool_turns
        if tool_turns and agent == tool_turns[0].agent:
            messages += [as_message(agent, limit, turn) for turn in tool_turns]
        return {"messages": tuple(messages), "reply_prefix": role.reply_prefix}


def global_state(problem: PublicProblem, transcript: Sequence[Turn]) -> dict[str, Any]:
    """Return the state of the game as an observation: the prompt, all private parts and all messages so far."""
    messages = [{"role": "user", "name": "task", "content": problem.prompt}] if problem.prompt else []
    messages += [{"role": "user", "name": f"task for {a}", "content": text} for a, text in problem.private.items()]
    messages += [{"role": "assistant", "name": turn.agent, "content": turn.text} for turn in transcript]
    return {"messages": tuple(messages), "reply_prefix": ""}


def opening_messages(agent: str, role: Role, problem: PublicProblem, briefing: str = "") -> tuple[Message, ...]:
    """Return the messages before any turn: the profile, then the problem with the agent's private part.

    Args:
        agent: The agent that reads them.
        role: Its role, which contains the profile.
        problem: The problem without its gold.
        briefing: Appended to the profile; the team's schedule writes it for an orchestrator, and "" for others.
    """
    profile = "\n\n".join(part for part in (role.profile, briefing) if part)
    task = "\n\n".join(part for part in (problem.prompt, problem.private.get(agent, "")) if part)
    messages = (
        {"role": "system", "name": agent, "content": profile},
        {"role": "user", "name": "task", "content": task},
    )
    return tuple(message for message in messages if message["content"])


def spoken_prefix(reply_prefix: str) -> str:
    """Return the part of a reply prefix that belongs to the agent's message: the part before an open ``<think>``.

    A prefix such as ``"Let me see. <think>"`` opens the thinking of a model. Thinking is in the message only if the
    action contains it, which is the choice of the policy that acts for the agent.
    """
    opened = reply_prefix.rfind(THINKING)
    return reply_prefix[:opened] if opened > reply_prefix.rfind(END_THINKING) else reply_prefix


def longest_message(agent: str, role: Role, briefing: str) -> int:
    """Return the length of the longest string that an observation can contain; instructions are never truncated."""
    fixed = opening_messages(agent, role, PublicProblem(0, "", {}), briefing)
    return max(role.max_observed_chars, len(role.reply_prefix), *(len(m["content"]) for m in fixed))


def truncate_problem(messages: tuple[Message, ...], limit: int) -> tuple[tuple[Message, ...], int | None]:
    """Return ``opening_messages`` with at most the last ``limit`` characters of the problem.

    Returns:
        The messages, and the problem's full length if it was truncated, else None.
    """
    task = messages[-1] if messages else {}
    if task.get("role") != "user" or len(task["content"]) <= limit:
        return messages, None
    return (*messages[:-1], {**task, "content": task["content"][-limit:]}), len(task["content"])


def without_private(messages: Sequence[Message], private: str) -> tuple[Message, ...]:
    """Return an observation's messages without the private part of the problem.

    Args:
        messages: The observation. Its message from "task" ends with the private part, as in ``opening_messages``; if
            the message was truncated, it may contain only the end of that part.
        private: The private part; "" for none.

    Raises:
        ValueError: No message from "task" ends with the private part.
    """
    if not private:
        return tuple(messages)
    contents = [message["content"] if message["name"] == "task" else "" for message in messages]
    matches = (i for i, text in enumerate(contents) if text and (text.endswith(private) or private.endswith(text)))
    index = next(matches, None)
    if index is None:
        raise ValueError(f"messages={list(messages)!r}: expected one by 'task' that ends with {private!r}")
    # A message that does not contain the whole part was truncated, so nothing of the prompt before it is left.
    is_whole = contents[index].endswith(private)
    public = contents[index].removesuffix(private).removesuffix("\n\n") if is_whole else ""
    replacement = [{**messages[index], "content": public}] if public else []
    return (*messages[:index], *replacement, *messages[index + 1 :])


def as_message(agent: str, limit: int, turn: Turn) -> Message:
    """Return a turn as the chat message that ``agent`` reads.

    Its own turns are assistant messages; those of other agents are user messages with the agent's name. A tool's result
    is a user message from "tool", and the task's feedback is one from "task".

    Args:
        agent: The agent that reads the message.
        limit: The largest number of characters; of a longer message the last characters remain.
        turn: The turn.
    """
    _, speaker, text, kind = turn
    if len(text) > limit:
        text = text[-limit:]
    if kind == "result":
        return {"role": "user", "name": "tool", "content": text}
    if kind == "feedback":
        return {"role": "user", "name": "task", "content": text}
    return {"role": "assistant" if speaker == agent else "user", "name": speaker, "content": text}
