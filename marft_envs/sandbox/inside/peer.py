"""Calls between the tester's process and the program's: each side performs operations on the objects of the other.

A frame is a length of 4 bytes and a message of ``crossing``. While a side waits for an answer, it answers the requests
of the other side: a function of the tests that the program calls runs in the tester's process. The tester permits calls
of what the tests handed over, and public attributes of objects whose class the tests define. Nothing else of its
process is reachable.
"""

from __future__ import annotations

import copy
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from .crossing import CrossingFault
from .proxies import SPECIAL, ProxyType, forget_tested
from .references import References, is_class_of_tests

_MAX_FRAME_BYTES = 32 << 20
_END = b""
_OPERATORS = frozenset(SPECIAL)
_PRODUCES = frozenset(name for name in SPECIAL if name not in ("__call__", "__getitem__", "__next__", "__anext__"))
_NAMES_OF_FUNCTIONS = frozenset(("__name__", "__qualname__", "__doc__", "__module__"))
_CONTROL_FLOW = (StopIteration, StopAsyncIteration, GeneratorExit)
_PROTOCOLS = frozenset(("__next__", "__anext__", "send", "throw"))


class ProgramEnded(BaseException):
    """The program's process ended or sent an invalid message.

    Not an ``Exception``, so that a test's ``except Exception`` does not catch it.
    """


class CannotCross(BaseException):
    """The tests pass an object that cannot be handed to another process. The message names it."""


class Channel:
    """Frames over one socket or pipe descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, text: str) -> None:
        """Send one frame. Raises OSError if the other side is closed."""
        body = text.encode()
        data = memoryview(len(body).to_bytes(4, "big") + body)
        while data:
            data = data[os.write(self.descriptor, data) :]

    def receive(self) -> bytes:
        """Return the next frame; empty bytes at the end of the stream or for a frame that is too long."""
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size) if 0 < size <= _MAX_FRAME_BYTES else _END

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self.descriptor, min(size, 1 << 20))
            if not part:
                return _END
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Peer:
    """One side of the channel.

    Args:
        channel: The channel.
        look_up: In the program's process, returns the program's object of a name. None in the tester's process.

    Attributes:
        trusting: Whether comparisons with this side's own data are forwarded; see ``proxies``.
        failure: Why the test has no result whatever the tests do after it: "ended ..." or "fault ...", or "".
        may_raise: Tells whether a StopIteration of the program may reach the tests here.
        may_suppress: Tells whether a context manager of the program may suppress an exception here.
        replaced: Returns the objects, by name, that the tests have replaced, such as "builtins.input".
    """

    def __init__(self, channel: Channel, look_up: Callable[[str], Any] | None = None) -> None:
        self._channel, self._look_up = channel, look_up
        self.trusting = look_up is not None
        self.failure = ""
        self.may_raise: Callable[[BaseException], bool] = lambda error: self.trusting
        self.may_suppress: Callable[[BaseException], bool] = lambda error: self.trusting
        self.replaced: Callable[[], dict[str, Any]] = dict
        self._sent_replaced: dict[str, Any] = {}
        self._originals: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._references = References(self, self.refuse)
        self._loop: Any = None

    # ---- requests

    def ask(self, operation: str, target: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Let the other side perform an operation and return its value.

        Raises:
            ProgramEnded: In the tester's process, if the program's process has ended.
            BaseException: The exception that the operation raised.
        """
        with self._lock:
            self._send(("ask", operation, target, arguments, tuple(named.items()), self._changes()))
            while True:
                word, *rest = self._receive()
                if word != "ask":
                    break
                self._answer(rest)
        if word == "error":
            raise self._as_raised(rest[0], operation)
        value = rest[0]
        if operation not in _PRODUCES and not isinstance(target, ProxyType):
            forget_tested(value)
        return value

    @property
    def is_reading(self) -> bool:
        """Whether a message is being read, so that no request can be sent."""
        return self._references.reading

    def serve(self) -> None:
        """Answer requests until the other side closes the channel."""
        while frame := self._channel.receive():
            self._answer(list(self._references.loads(frame))[1:])

    def is_of_program(self, error: BaseException) -> bool:
        """Return whether an exception was raised by the other side."""
        return self._references.is_of_other(error)

    def refuse(self, what: str) -> None:
        """Raise the exception that reports an object that cannot cross."""
        if self.trusting:
            raise TypeError(f"{what}: not available to the tests")
        self.failure = self.failure or f"fault the tests use {what}: it cannot cross to the program's process"
        raise CannotCross(self.failure)

    def _send(self, message: tuple[Any, ...]) -> None:
        self._send_box([message])

    def _send_box(self, box: list[Any]) -> None:
        """Send the only item of a list, which is emptied, so that nothing holds the message any more."""
        text = self._references.dumps(box)
        self._transfer(lambda: self._channel.send(text))

    def _receive(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._transfer(self._receive_message)
        return found

    def _receive_message(self) -> tuple[Any, ...]:
        message = self._references.loads(self._channel.receive())
        if type(message) is not tuple or len(message) < 2 or message[0] not in ("ask", "value", "error"):
            raise CrossingFault("not a request or an answer")
        return message

    def _transfer(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (OSError, CrossingFault, ValueError, TypeError, IndexError) as fault:
            if self.trusting:
                raise
            self.failure = self.failure or f"ended {type(fault).__name__}: {fault}"[:200]
            raise ProgramEnded(self.failure) from None

    def _as_raised(self, error: Any, operation: str) -> BaseException:
        """Return the exception to raise for an exception of the other side."""
        if not isinstance(error, BaseException):
            return RuntimeError(f"{error}")
        # These would end a loop or a generator of the tests, and with it the assertions in it.
        if isinstance(error, _CONTROL_FLOW) and operation not in _PROTOCOLS and not self.may_raise(error):
            return self._references.keep(RuntimeError(f"{type(error).__name__} was raised by the program"))
        return error

    # ---- answers

    def _answer(self, request: list[Any]) -> None:
        """Perform a request, which is emptied, and send its value or its exception."""
        box: list[Any]
        try:
            box = [("value", self._perform_request(request))]
        except BaseException as error:
            _drop_frames(error)
            box = [("error", error)]
        with self._lock:
            failure = self.failure
            try:
                self._send_box(box)
            except (CannotCross, TypeError, ValueError) as refusal:
                self.failure = failure  # the program asked for it: the program gets the error
                self._send(("error", TypeError(f"{refusal}"[:300])))

    def _perform_request(self, request: list[Any]) -> Any:
        operation, target, arguments, named, changes = request
        request.clear()
        self._replace(changes)
        return self._perform(operation, target, list(arguments), dict(named))

    def _perform(self, operation: str, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
        if not self.trusting:
            self._check(operation, target, arguments)
        if operation == "call":
            return target(*arguments, **named)
        if operation == "get":
            return getattr(target, *arguments)
        if operation in ("set", "delete"):
            return (setattr if operation == "set" else delattr)(target, *arguments)
        if operation == "look" and self._look_up is not None:
            return self._look_up(target)
        if operation in ("await", "__anext__"):
            return self._complete(target if operation == "await" else type(target).__anext__(target))
        if operation == "copy":
            return copy.copy(target)
        if operation == "deepcopy":
            return copy.deepcopy(target)
        if operation == "method":
            name, *rest = arguments
            return getattr(target, name)(*rest, **named)
        if operation in ("send", "throw", "close"):
            return getattr(target, operation)(*arguments)
        if operation == "__getitem__":
            return target[arguments[0]]
        if operation not in _OPERATORS:
            raise TypeError(f"no operation {operation!r}")
        return getattr(type(target), operation)(target, *arguments, **named)

    def _check(self, operation: str, target: Any, arguments: list[Any]) -> None:
        """Refuse what the program may not do with an object of the tests. Raises AttributeError or TypeError."""
        if not self._references.is_owned(target):
            raise TypeError("not an object of the tests")
        kind = target if isinstance(target, type) else type(target)
        own = is_class_of_tests(kind) or isinstance(target, (io.StringIO, io.BytesIO)) or _is_mock(kind)
        name = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        if operation in ("call", "__call__"):
            return
        if operation == "get" and name in _NAMES_OF_FUNCTIONS:
            return
        if operation in ("get", "set", "delete", "method"):
            # The program may change data, but not how the tests' own class behaves.
            fixed = operation in ("set", "delete") and (kind is target or callable(getattr(kind, name, None)))
            if not own or name.startswith("_") or fixed or _is_of_mock(kind, name):
                raise AttributeError(f"{type(target).__name__!r} object has no attribute {name!r} for the program")
        elif operation in ("copy", "deepcopy") and not own:
            raise TypeError(f"{type(target).__name__!r} cannot be copied by the program")

    def _complete(self, awaitable: Any) -> Any:
        """Run an awaitable to its end: in this side's own loop or, inside a running loop, in another thread."""
        import asyncio  # few programs need it, and each child of a server that has it loaded starts more slowly

        async def run() -> Any:
            return await awaitable

        if asyncio._get_running_loop() is not None:
            results: list[Any] = []
            thread = threading.Thread(target=lambda: results.append(asyncio.run(run())))
            thread.start()
            thread.join()
            return results[0]
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(run())

    # ---- objects that the tests have replaced

    def _changes(self) -> tuple[Any, ...]:
        """Return (name, object) of what was replaced since the last request, and (name,) of what was put back."""
        now, before = self.replaced(), self._sent_replaced
        if not now and not before:
            return ()
        self._sent_replaced = now
        changed = [(name, value) for name, value in now.items() if name not in before or before[name] is not value]
        return (*changed, *((name,) for name in before if name not in now))

    def _replace(self, changes: tuple[Any, ...]) -> None:
        for path, *value in changes:
            module, _, name = path.partition(".")
            owner = sys.modules[module]
            self._originals.setdefault(path, getattr(owner, name))
            setattr(owner, name, value[0] if value else self._originals[path])


def _is_mock(kind: type) -> bool:
    return any(base.__module__ == "unittest.mock" for base in kind.__mro__)


def _is_of_mock(kind: type, name: str) -> bool:
    """Return whether an attribute is one by which the tests ask a mock what happened."""
    return _is_mock(kind) and (
        hasattr(sys.modules["unittest.mock"].Mock, name) or name.startswith(("assert", "called"))
    )


def _drop_frames(error: BaseException | None) -> None:
    """Remove the tracebacks of an exception and its contexts: their frames hold the arguments."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
