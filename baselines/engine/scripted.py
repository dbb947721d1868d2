"""Scripted roles: agents that a program or a fixed text plays, beside the agents that are models."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from baselines.engine.sampler import EngineSampler
from baselines.trajectory import Generation
from marft_envs.batch.runner import Policy, Reply, Request

TEXT = ".txt"


@dataclass
class Scripted:
    """What ``script`` says, kept as its reader would have read it: tokens of the text, with log-probabilities of 0.

    reader: of the base that reads the agent's turns for the critic. It generates nothing here. where: the agent and its
    script, for errors.
    """

    script: Policy
    reader: EngineSampler
    where: str

    def __call__(self, requests: list[Request]) -> list[Reply]:
        """The script's replies. TypeError for what is no list of texts, ValueError for too few or too many."""
        replies = self.script(requests)
        wanted = f"expected a list with a str or Reply for each of its {len(requests)} requests"
        if isinstance(replies, (str, bytes, dict)) or not isinstance(replies, Sequence):
            raise TypeError(f"{self.where} returned {type(replies).__name__}: {wanted}")
        if len(replies) != len(requests):
            raise ValueError(f"{self.where} returned {len(replies)} replies: {wanted}")
        for reply in replies:
            if not isinstance(reply, (str, Reply)):
                raise TypeError(f"{self.where} returned a {type(reply).__name__} among its replies: {wanted}")
        return [self._kept(r, reply) for r, reply in zip(requests, replies, strict=True)]

    def _kept(self, request: Request, reply: str | Reply) -> Reply:
        text = reply if isinstance(reply, str) else reply.text
        tokenizer = self.reader.loaded.tokenizer
        limit = self.reader.engine.decoding.max_new_tokens
        ids = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id][:limit]
        prompt = self.reader.prompt(request.observation)
        return Reply(text, Generation(tuple(prompt), tuple(ids), (0.0,) * len(ids), text, False))


def load_script(agent: str, spec: str) -> Policy:
    """A policy ``requests -> list of texts`` from "module:function", or the fixed text of a ``.txt`` file.

    ValueError names the agent and what was expected.
    """
    where = f"scripted.{agent}={spec!r}"
    if spec.endswith(TEXT):
        return _fixed(where, Path(spec))
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise ValueError(f"{where}: expected module:function, or the path of a {TEXT} file")
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as fault:
        raise ValueError(f"{where}: {fault}; expected module:function that can be imported") from fault
    if not callable(found):
        raise ValueError(f"{where} is a {type(found).__name__}: expected a function from requests to a list of texts")
    return found


def _fixed(where: str, path: Path) -> Policy:
    try:
        text = path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise ValueError(f"{where}: {fault}; expected a text file") from fault

    def say(requests: Sequence[Request]) -> list[str]:
        return [text] * len(requests)

    return say


def load_scripts(specs: Mapping[str, str], digests: Mapping[str, str | None]) -> dict[str, Policy]:
    """All of them, by agent. digests: ``script_digest`` of each when the run was configured; ValueError for a script
    that is another one now."""
    scripts = {agent: load_script(agent, spec) for agent, spec in specs.items()}
    for agent, spec in specs.items():
        if script_digest(spec) != digests[agent]:
            raise ValueError(
                f"scripted.{agent}={spec!r} has changed since the run was configured: expected it untouched"
            )
    return scripts


def script_digest(spec: str) -> str | None:
    """Twelve hexadecimal digits of SHA-256 over the text file, or over the source of the module that is named; what the
    module imports is not looked at. None where there is none (``load_script`` tells), and for a program's ``__main__``.
    """
    try:
        if spec.endswith(TEXT):
            path = spec
        else:
            found = find_spec(spec.partition(":")[0])
            path = found.origin or "" if found else ""
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    except (ImportError, ValueError, OSError):
        return None
