"""The messages of a conversation that fit a prompt: of a long conversation, the oldest messages are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from baselines.errors import RunError

Message = Mapping[str, str]
TASK = "task"


def fit(
    messages: Sequence[Message], limit: int, encode: Callable[[Sequence[Message]], list[int]], model: str
) -> tuple[list[int], int]:
    """Return the prompt of a conversation, without its oldest messages if it has more tokens than the limit.

    Whole messages are left out, never a part of one, and never a system message or the problem.

    Args:
        messages: The messages of an observation.
        limit: Largest number of tokens.
        encode: Returns the token ids of the prompt of some messages.
        model: Name of the model, for the error.

    Returns:
        Token ids, and the number of messages that were left out: the smallest that fits.

    Raises:
        RunError: System messages, problem and reply prefix alone have more tokens than the limit.
    """
    ids = encode(messages)
    if len(ids) <= limit:
        return ids, 0
    oldest = removable(messages)
    shortest = encode(_without(messages, oldest))
    if len(shortest) > limit:
        raise RunError(
            f"the prompt has more tokens than the limit of {limit}: instructions, problem and reply prefix alone need "
            f"{len(shortest)} tokens of model {model!r}, and are never truncated. Raise decoding.max_prompt_tokens to "
            f"at least {len(shortest)}, also to resume the run. If the model's context is the limit, start a run with "
            "a lower decoding.max_new_tokens, or shorten the instructions"
        )
    # bisection: leaving out ``few`` messages is not enough, leaving out ``many`` is
    few, many = 0, len(oldest)
    while many - few > 1:
        middle = (few + many) // 2
        found = encode(_without(messages, oldest[:middle]))
        if len(found) <= limit:
            many, shortest = middle, found
        else:
            few = middle
    return shortest, many


def removable(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the messages that may be left out: all but system messages and the problem.

    The problem is the first user message by "task"; later ones are feedback.
    """
    is_task = [m["role"] == "user" and m.get("name", TASK) == TASK for m in messages]
    problem = is_task.index(True) if any(is_task) else None
    found = [i for i, m in enumerate(messages) if m["role"] != "system" and i != problem]
    return found[: len(messages) - 1]  # a conversation without both keeps its newest message


def _without(messages: Sequence[Message], indices: Sequence[int]) -> list[Message]:
    left_out = set(indices)
    return [m for i, m in enumerate(messages) if i not in left_out]
