"""Scripted agents: a Python function or a fixed text acts in place of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from baselines.engine.prompts import reply_ids
from baselines.engine.sampler import EngineSampler
from baselines.trajectory import Generation
from marft_envs.batch import Policy, PolicyFault, Reply, Request

TEXT = ".txt"


@dataclass
class Scripted:
    """A policy for ``BatchRunner`` that returns a script's replies as if a model had generated them.

    ``Reply.data`` holds the token ids of the text with log-probabilities of 0, so that a critic can read the turns.

    Attributes:
        script: The function that replies.
        reader: Sampler of the base that reads the agent's turns for the critic. It generates nothing.
        source: Agent and script, for error messages.
    """

    script: Policy
    reader: EngineSampler
    source: str

    def __call__(self, requests: list[Request]) -> list[Reply | PolicyFault]:
        """Return one reply per request, or the script's ``PolicyFault`` in its place.

        Raises:
            TypeError: The script returned something else than a list of str, Reply and PolicyFault.
            ValueError: The script returned too few or too many replies.
        """
        replies = self.script(requests)
        expected = f"expected a list with one str or Reply for each of the {len(requests)} requests"
        if isinstance(replies, (str, bytes, dict)) or not isinstance(replies, Sequence):
            raise TypeError(f"{self.source} returned {type(replies).__name__}: {expected}")
        if len(replies) != len(requests):
            raise ValueError(f"{self.source} returned {len(replies)} replies: {expected}")
        for reply in replies:
            if not isinstance(reply, (str, Reply, PolicyFault)):
                raise TypeError(f"{self.source} returned a list with a {type(reply).__name__}: {expected}")
        return [
            reply if isinstance(reply, PolicyFault) else self._with_tokens(request, reply)
            for request, reply in zip(requests, replies, strict=True)
        ]

    def _with_tokens(self, request: Request, reply: str | Reply) -> Reply:
        text = reply if isinstance(reply, str) else reply.text
        loaded = self.reader.loaded
        limit = self.reader.engine.sampling.max_new_tokens
        ids = [*reply_ids(text, loaded), loaded.tokenizer.eos_token_id][:limit]
        prompt = self.reader.made_prompt(request.observation)
        logprobs = (0.0,) * len(ids)
        return Reply(text, Generation(tuple(prompt.ids), tuple(ids), logprobs, text, False, prompt.dropped_messages))


def load_script(agent: str, spec: str) -> Policy:
    """Load the script of an agent.

    Args:
        agent: Name of the agent, for error messages.
        spec: "module:function", a function from a list of requests to a list of strings; or the path of a .txt file,
            whose text is every reply.

    Returns:
        A policy for ``BatchRunner``.

    Raises:
        ValueError: The script cannot be imported or read. The message names the agent.
    """
    source = f"scripted.{agent}={spec!r}"
    if spec.endswith(TEXT):
        return _fixed(source, Path(spec))
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise ValueError(f"{source}: expected module:function, or the path of a {TEXT} file")
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{source}: {error}; expected module:function that can be imported") from error
    if not callable(found):
        raise ValueError(
            f"{source} is a {type(found).__name__}: expected a function from requests to a list of strings"
        )
    return found


def _fixed(source: str, path: Path) -> Policy:
    try:
        text = path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{source}: {error}; expected a text file") from error

    def reply(requests: Sequence[Request]) -> list[str]:
        return [text] * len(requests)

    return reply


def load_scripts(specs: Mapping[str, str], digests: Mapping[str, str | None]) -> dict[str, Policy]:
    """Load the scripts of all scripted agents.

    Args:
        specs: Script by agent (see ``load_script``).
        digests: ``script_digest`` by agent when the run was configured.

    Raises:
        ValueError: A script cannot be loaded, or has changed since the run was configured.
    """
    scripts = {agent: load_script(agent, spec) for agent, spec in specs.items()}
    for agent, spec in specs.items():
        if script_digest(spec) != digests[agent]:
            raise ValueError(
                f"scripted.{agent}={spec!r} has changed since the run was configured: expected the same script"
            )
    return scripts


def script_digest(spec: str) -> str | None:
    """Return the first 12 hexadecimal digits of the SHA-256 of a script.

    The hash covers the text file, or the source file of the module; modules that it imports are not included.

    Returns:
        The digits; None if there is no such file (``load_script`` reports it), and for the ``__main__`` of a program.
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
