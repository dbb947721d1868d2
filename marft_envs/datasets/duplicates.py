"""The same problem in two data sets: what a training set must not share with an evaluation set."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from marft_envs.task import Task

_NOISE = re.compile(r"[\W_]+")


def prompt_key(prompt: str) -> bytes:
    """A hash of the letters and digits of a prompt, without case, spaces, punctuation or LaTeX spacing."""
    plain = unicodedata.normalize("NFKC", prompt).casefold()
    return hashlib.blake2b(_NOISE.sub("", plain).encode(errors="surrogatepass"), digest_size=16).digest()


def duplicates(train: Task, evaluation: Task) -> list[tuple[int, int]]:
    """(index in train, index in evaluation) of each problem that is in both, word for word. Both tasks need a size."""
    for name, task in (("train", train), ("evaluation", evaluation)):
        if task.size is None:
            raise ValueError(f"{name}={task.name!r}: expected a task with a size, this one has no end")
    seen: dict[bytes, int] = {}
    for index in range(train.size or 0):
        seen.setdefault(prompt_key(train.problem(index).prompt), index)
    found = []
    for index in range(evaluation.size or 0):
        other = seen.get(prompt_key(evaluation.problem(index).prompt))
        if other is not None:
            found.append((other, index))
    return found
