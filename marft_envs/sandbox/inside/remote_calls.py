"""Calls from a tester process to the program under test, which runs in another confined process.

A frame is a length of 4 bytes followed by JSON in the notation of ``values``. The program's process answers calls, and
the tester's process holds ``Remote`` proxies. A call returns data, or a handle to an object that stays in the program's
process. If the function modifies an argument in place, the tester's copy is modified too.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from typing import Any

from . import values

_MAX_FRAME_BYTES = 32 << 20
_END = b""


class ProgramEnded(BaseException):
    """The program's process ended or sent an invalid frame.

    Not an ``Exception``, so that a test's ``except Exception`` does not catch it.
    """


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


# ---- in the program's process


def serve(channel: Channel, look_up: Callable[[str], Any]) -> None:
    """Answer the tester's requests until it closes the channel. look_up: returns the program's object of that name."""
    objects: list[Any] = []

    def keep(value: Any) -> int:
        objects.append(value)
        return len(objects) - 1

    def find(opaque: values.Opaque) -> Any:
        return objects[opaque.handle]

    while frame := channel.receive():
        operation, target, arguments, named = values.loads(frame, find)
        before = [_text(item) for item in arguments]
        try:
            value = _perform(operation, look_up(target) if type(target) is str else target, arguments, named)
            answer = values.dumps(["value", value, _changed(arguments, before)], keep)
        except BaseException as error:
            answer = values.dumps(["error", type(error).__name__, str(error)[:500], _changed(arguments, before)])
        channel.send(answer)


def _perform(operation: str, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
    if operation == "call":
        return target(*arguments, **named)
    if operation == "get":
        return getattr(target, *arguments)
    if operation == "set":
        return setattr(target, *arguments)
    return target  # "look"


def _text(value: Any) -> str:
    try:
        return values.dumps(value)
    except values.ValueFault:
        return ""


def _changed(arguments: list[Any], before: list[str]) -> list[Any]:
    """Return [index, new value] of each container among the arguments that the call has modified."""
    now = [(n, item) for n, item in enumerate(arguments) if type(item) in _REPLACE]
    return [[n, item] for n, item in now if _text(item) != before[n]]


# ---- in the tester's process


class Remote:
    """Proxy of a function, class or object in the program's process. ``_of``: its name there, or an Opaque handle."""

    __slots__ = ("_channel", "_of")

    def __init__(self, channel: Channel, of: str | values.Opaque) -> None:
        object.__setattr__(self, "_channel", channel)
        object.__setattr__(self, "_of", of)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _ask(self._channel, "call", self._of, arguments, named)

    def __getattr__(self, name: str) -> Any:
        return _ask(self._channel, "get", self._of, (name,), {})

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self._channel, "set", self._of, (name, value), {})

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self._of} is an object of the program's process: its truth value is not available to the tests"
        )


class Names(dict[str, Any]):
    """Global variables of the test code. A name that is neither defined nor a builtin is looked up in the program.

    Builtins come first: a program that defines ``len`` or ``sorted`` does not change how the tests compare.
    """

    def __init__(self, channel: Channel) -> None:
        super().__init__(__name__="tester", __builtins__=builtins)
        self.channel = channel

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) or name.startswith("__"):
            raise KeyError(name)
        found = _ask(self.channel, "look", name, (), {})
        return Remote(self.channel, name) if isinstance(found, Remote) else found


def _ask(channel: Channel, operation: str, target: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    request = [operation, target, [_handle(item) for item in arguments], {k: _handle(v) for k, v in named.items()}]
    text = values.dumps(request)
    try:
        channel.send(text)
        answer = values.loads(channel.receive(), lambda opaque: Remote(channel, opaque))
        kind, *rest = answer
        if kind == "value":
            value, changed = rest
            error = None
        else:
            name, message, changed = rest
            error = _exception(str(name), str(message))
        for index, new in changed:
            _replace(arguments[index], new)
    except (OSError, ValueError, TypeError, KeyError, IndexError) as fault:
        raise ProgramEnded(f"{type(fault).__name__}: {fault}"[:200]) from None
    if error is not None:
        raise error
    return value


def _handle(value: Any) -> Any:
    """Replace proxies by the handles of their objects."""
    if type(value) is Remote and type(value._of) is values.Opaque:
        return value._of
    if type(value) in (list, tuple):
        return type(value)(_handle(item) for item in value)
    return value


def _exception(name: str, message: str) -> Exception:
    """Return the builtin exception of that name, or a RuntimeError for SystemExit and the program's own exceptions.

    Never an AssertionError: a program that raises one must not look like a failed assertion of the tests.
    """
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, (AssertionError, UnicodeError)):
        return kind(message)
    return RuntimeError(f"{name}: {message}")


def _replace(old: Any, new: Any) -> None:
    """Give the tester's container the contents of the program's copy."""
    if type(old) is type(new) and type(old) in _REPLACE:
        _REPLACE[type(old)](old, new)


def _refill(old: Any, new: Any) -> None:
    old.clear()
    old.update(new)


def _refill_sequence(old: Any, new: Any) -> None:
    old.clear()
    old.extend(new)


_REPLACE: dict[type, Callable[[Any, Any], None]] = {
    list: _refill_sequence, bytearray: _refill_sequence, dict: _refill, set: _refill,
}  # fmt: skip
