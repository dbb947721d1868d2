"""A policy whose actions come from an OpenAI-compatible endpoint: vLLM, llama.cpp, SGLang, or a provider's API.

    with Endpoint(EndpointSettings("http://localhost:8000/v1", "Qwen/Qwen2.5-7B-Instruct"), stream=(0,)) as policy:
        episodes = runner.play(policy, indices=range(64))

The endpoint gets messages and returns text, so its actions have no token ids and cannot be trained on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from baselines.engine.conversation import Abilities, arrange
from baselines.engine.protocol import Sampling
from baselines.engine.replies import visible_text
from baselines.engine.stopping import before_stop_strings
from baselines.errors import RunError
from baselines.field_types import check_field_types
from marft_envs.batch import PolicyFault, Reply, Request
from marft_envs.game.observation import spoken_prefix

PATH = "/chat/completions"
RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)
"""HTTP statuses after which a request is sent again."""
REFUSED = (301, 302, 303, 307, 308, 401, 403, 404, 405)
"""HTTP statuses that every request would get: a wrong URL, key or model."""
GIVE_UP_AFTER = 16
"""Number of requests in a row without a reply after which the endpoint is taken to be down."""
CONNECT_TIMEOUT_S, LONGEST_WAIT_S = 10.0, 60.0
CONTINUE = "Continue."


@dataclass(frozen=True)
class EndpointSettings:
    """Address of an endpoint, and how requests are sent to it.

    Attributes:
        url: URL of the API, such as "http://localhost:8000/v1". A final "/chat/completions" is ignored.
        model: Name of the model, as the endpoint knows it.
        key: API key; "" sends none.
        concurrency: Largest number of requests at a time.
        attempts: Number of times that a request is sent before it is a fault.
        timeout_s: Seconds to wait for a reply.
        wait_s: Seconds before the second attempt; each further wait is twice as long, up to 60 s, with up to ``wait_s``
            of jitter. If the endpoint sends Retry-After, that is the wait.
        system_role: Whether the model reads system messages; otherwise they begin the first user message.
        payload: Further entries of each request, such as ``{"top_p": 0.95}``. None removes an entry.

    Raises:
        ValueError: A field has an invalid value. The message names the field.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    concurrency: int = 8
    attempts: int = 6
    timeout_s: float = 600.0
    wait_s: float = 1.0
    system_role: bool = True
    payload: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_field_types(self)
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(
                f"endpoint {self.url!r}: expected the URL of an OpenAI-compatible API, such as http://localhost:8000/v1"
            )
        if not self.model.strip():
            raise ValueError(f"endpoint model={self.model!r}: expected the name of a model that {self.url} serves")
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise ValueError(f"endpoint {name}={getattr(self, name)}: expected at least 1")
        if self.timeout_s <= 0 or self.wait_s < 0:
            raise ValueError(
                f"endpoint timeout_s={self.timeout_s}, wait_s={self.wait_s}: expected a positive timeout and no "
                "negative wait"
            )
        object.__setattr__(self, "url", self.url.rstrip("/").removesuffix(PATH).rstrip("/"))


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """What the endpoint reports about an action.

    Attributes:
        prompt_tokens: Number of tokens of the prompt; 0 if the endpoint does not report it.
        generated_tokens: Number of generated tokens, thinking included; 0 if the endpoint does not report it.
        truncated: Whether the action ended at the largest number of tokens.
        attempts: Number of times that the request was sent.
    """

    prompt_tokens: int
    generated_tokens: int
    truncated: bool
    attempts: int


class Endpoint:
    """A policy for ``BatchRunner`` that gets its actions from an OpenAI-compatible chat endpoint.

    The messages of an observation are arranged as for a chat template without names (``conversation.arrange``), with
    user and assistant alternating. A chat endpoint cannot continue the beginning of a reply. So the words of a
    ``reply_prefix`` are requested in the last user message, and removed from a reply that begins with them; the
    environment puts them before the action. Thinking (``<think>...</think>``) is not part of the action.

    A request that gets no reply after all attempts, or that the endpoint refuses (a prompt longer than the model's
    context), is a ``PolicyFault``, which is no wrong answer.

    Args:
        settings: Address, and how requests are sent.
        sampling: How tokens are chosen.
        stream: Integers that name the random stream; None decodes greedily (temperature 0). The seed that is sent with
            a request depends on (stream, problem, repetition, turn) alone. Endpoints may ignore it.

    Attributes:
        prompt_tokens: Number of prompt tokens so far, as the endpoint counts them.
        generated_tokens: Number of generated tokens so far, as the endpoint counts them.
    """

    def __init__(
        self, settings: EndpointSettings, *, sampling: Sampling | None = None, stream: tuple[int, ...] | None = None
    ) -> None:
        self.settings, self.sampling, self.stream = settings, sampling or Sampling(), stream
        self.prompt_tokens = self.generated_tokens = 0
        self._without_reply = 0
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._session = _session(settings)
        # The threads of this pool are daemons: Ctrl-C does not wait for the replies that are under way.
        self._threads = ThreadPool(settings.concurrency)

    def __call__(self, requests: list[Request]) -> list[Reply | PolicyFault]:
        """Return one reply per request, or a fault in its place.

        Raises:
            ValueError: The endpoint refuses all requests: a wrong URL, key or model.
            RunError: The last ``GIVE_UP_AFTER`` requests had no reply.
        """
        try:
            return list(self._threads.imap(self._reply_to, requests))
        except BaseException:
            self._stopped.set()
            raise

    def close(self) -> None:
        """End the threads and close the connections."""
        self._stopped.set()
        self._threads.terminate()
        self._session.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def body(self, request: Request) -> dict[str, Any]:
        """Return the JSON object that is sent for a request."""
        found: dict[str, Any] = {
            "model": self.settings.model,
            "messages": chat_messages(request.observation, system_role=self.settings.system_role),
            "max_tokens": self.sampling.max_new_tokens,
            "temperature": 0.0 if self.stream is None else self.sampling.temperature,
        }
        if self.stream is not None:
            entropy = (*self.stream, request.index, request.repetition, request.turn)
            found["seed"] = int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
        if self.sampling.stop_strings:
            found["stop"] = list(self.sampling.stop_strings)
        found |= self.settings.payload
        return {key: value for key, value in found.items() if value is not None}

    def _reply_to(self, request: Request) -> Reply | PolicyFault:
        if self._stopped.is_set():
            return PolicyFault("stopped")
        timeout = (CONNECT_TIMEOUT_S, self.settings.timeout_s)
        try:
            response = self._session.post(
                self.settings.url + PATH, json=self.body(request), timeout=timeout, allow_redirects=False
            )
            reply = self._read(request, response)
        except requests.RequestException as error:
            reply = PolicyFault(f"no reply from {self.settings.url}: {_cause(error)}")
        self._count(reply)
        return reply

    def _read(self, request: Request, response: requests.Response) -> Reply | PolicyFault:
        if response.status_code in REFUSED:
            raise ValueError(
                f"endpoint {self.settings.url}: {_problem(response)}: expected the URL of an OpenAI-compatible API "
                f"that serves the model {self.settings.model!r}, and its key"
            )
        if response.status_code != requests.codes.ok:
            return PolicyFault(_problem(response))
        try:
            data = response.json()
            choice = data["choices"][0]
            content = choice["message"].get("content") or ""
            usage = data.get("usage") or {}
            prompt, generated = (int(usage.get(key) or 0) for key in ("prompt_tokens", "completion_tokens"))
            if not isinstance(content, str):
                raise TypeError("content")
        except (ValueError, LookupError, TypeError, AttributeError):
            return PolicyFault(f"expected a chat completion, got {response.text!r:.200}")
        history = getattr(response.raw.retries, "history", ())
        text = before_stop_strings(visible_text(content), self.sampling.stop_strings)
        action = without_prefix(text, request.observation["reply_prefix"])
        truncated = choice.get("finish_reason") == "length"
        return Reply(action, EndpointReply(prompt, generated, truncated, attempts=1 + len(history)))

    def _count(self, reply: Reply | PolicyFault) -> None:
        """Count tokens, and requests in a row without a reply. Raise RunError if there are too many of these."""
        with self._lock:
            if isinstance(reply, Reply):
                self._without_reply = 0
                self.prompt_tokens += reply.data.prompt_tokens
                self.generated_tokens += reply.data.generated_tokens
                return
            self._without_reply += 1
            if self._without_reply >= GIVE_UP_AFTER:
                raise RunError(
                    f"endpoint {self.settings.url}: the last {self._without_reply} requests had no reply; the newest: "
                    f"{reply}"
                )


def _session(settings: EndpointSettings) -> requests.Session:
    """Return a session that sends requests again, after Retry-After where the endpoint sends it."""
    retry = Retry(
        total=settings.attempts - 1,
        redirect=0,
        status_forcelist=RETRIED,
        allowed_methods=None,  # POST, too
        backoff_factor=settings.wait_s,
        backoff_jitter=settings.wait_s,
        backoff_max=LONGEST_WAIT_S,
        raise_on_status=False,
        respect_retry_after_header=True,
    )
    session = requests.Session()
    adapter = HTTPAdapter(pool_maxsize=settings.concurrency, max_retries=retry)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    if settings.key:
        session.auth = _Bearer(settings.key)  # a header of the session would give way to ~/.netrc
    return session


class _Bearer(requests.auth.AuthBase):
    """Authentication with an API key."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def chat_messages(observation: Mapping[str, Any], *, system_role: bool = True) -> list[dict[str, str]]:
    """Return the messages of an observation as a chat endpoint reads them, from a user message at the end.

    Args:
        observation: ``messages`` and ``reply_prefix``, as the environment returns them.
        system_role: Whether there may be a system message.
    """
    abilities = Abilities(system_role, False, None, assistant_first=False, assistant_again=False)
    found = arrange(observation["messages"], abilities)
    for message in found:
        message["content"] = message["content"] or CONTINUE  # many endpoints refuse an empty message
    prefix = spoken_prefix(observation["reply_prefix"]).strip()
    if prefix:
        found[-1]["content"] += f"\n\nBegin your reply with these words: {prefix}"
    return found


def without_prefix(text: str, reply_prefix: str) -> str:
    """Return a reply without the beginning that was requested, which the environment puts before it."""
    prefix, rest = spoken_prefix(reply_prefix), text.lstrip()
    if not prefix.strip() or not rest.startswith(prefix.strip()):
        return text
    rest = rest[len(prefix.strip()) :]
    return rest.lstrip() if prefix[-1].isspace() else rest


def _problem(response: requests.Response) -> str:
    """Return the status of a response, and the message of the endpoint's error if it has one."""
    try:
        found = response.json()
        error = found.get("error", found)
        message = error.get("message", error) if isinstance(error, Mapping) else error
    except (ValueError, AttributeError):
        message = response.text
    return f"HTTP {response.status_code} {' '.join(str(message).split()):.300}".rstrip()


def _cause(error: requests.RequestException) -> str:
    """Return the reason of a failed request, without the pool that a MaxRetryError describes."""
    inner: Any = error.args[0] if error.args else error
    reason = getattr(inner, "reason", None) or inner
    return f"{type(reason).__name__}: {' '.join(str(reason).split()):.200}"
