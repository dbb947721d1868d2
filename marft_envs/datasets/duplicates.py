"""Problems that two data sets share, such as a training set and an evaluation set."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from marft_envs.task import Task

_NOISE = re.compile(r"[\W_]+")


def prompt_key(prompt: str) -> bytes:
    """Return a 16-byte hash of the letters and digits of a prompt.

    Case, white space, punctuation and LaTeX spacing are ignored.
    """
    plain = unicodedata.normalize("NFKC", prompt).casefold()
    return hashlib.blake2b(_NOISE.sub("", plain).encode(errors="surrogatepass"), digest_size=16).digest()


def duplicates(train: Task, evaluation: Task) -> list[tuple[int, int]]:
    """Find the problems that are in both tasks with the same words.

    Args:
        train: A task with a size.
        evaluation: A task with a size.

    Returns:
        Pairs (index in ``train``, index in ``evaluation``), in the order of ``evaluation``.

    Raises:
        ValueError: A task has no size (a generator without end).
    """
    for name, task in (("train", train), ("evaluation", evaluation)):
        if task.size is None:
            raise ValueError(f"{name}={task.name!r}: expected a task with a size, this generator has no end")
    seen: dict[bytes, int] = {}
    for index in range(train.size or 0):
        seen.setdefault(prompt_key(train.problem(index).prompt), index)
    found = []
    for index in range(evaluation.size or 0):
        other = seen.get(prompt_key(evaluation.problem(index).prompt))
        if other is not None:
            found.append((other, index))
    return found
