"""Execution of a data set's tests, which call the program in another process through a ``Peer``.

The names of the tests are their own definitions, then builtins, then modules and types of the standard library that the
tests use without importing them, and only then the program's objects. So a program cannot replace ``sys`` or
``Counter`` for the tests, and no definition of the program hides one of the tests.
"""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import decimal
import fractions
import importlib
import math
import os
import random
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

from .peer import CannotCross, Channel, Peer, ProgramEnded
from .proxies import ProxyType
from .references import TESTS

_FILE = "tests.py"
_MODULES = {"np": "numpy"}
_TYPING = "Any Callable Dict List Optional Set Tuple Union"
_COMMON: dict[str, Any] = {
    **{name: getattr(collections, name) for name in ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple")},
    **{name: getattr(typing, name) for name in _TYPING.split()},
    "Decimal": decimal.Decimal, "Fraction": fractions.Fraction, "isclose": math.isclose, "deepcopy": copy.deepcopy,
}  # fmt: skip
"""Names of the standard library that tests use without importing them."""
_REPLACEABLE = (
    "builtins.input", "builtins.print", "builtins.open", "sys.stdin", "sys.stdout", "sys.stderr", "time.time",
    "time.sleep", "random.random", "random.randint", "random.choice", "random.uniform", "random.shuffle",
)  # fmt: skip
"""Objects that tests replace, as with ``unittest.mock.patch``, for the program to use."""
_CONTROL_FLOW = ("StopIteration", "StopAsyncIteration", "GeneratorExit")


def run_tests(spec: dict[str, Any], channel: Channel) -> str:
    """Run the tests and return the result.

    Args:
        spec: "source" and "function" of the tests, "builtins" and "classes" as in ``records.Asserts``, and "token".
        channel: The channel to the program.

    Returns:
        The token if every assertion held. Otherwise a word and a message: "wrong" after a failed assertion, "ended" if
        the program's process ended, "fault" if the tests cannot be run, "error" after any other exception. The token is
        random and known only to the caller and to this process.
    """
    peer = Peer(channel)
    seed = f"{spec['function']}\n{spec['source']}".encode("utf-8", "surrogatepass")
    random.seed(seed)  # noqa: TID251 - the tests draw from it
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(random.Random(seed + b"numpy").getrandbits(32))
    result = ""
    try:
        tree = ast.parse(spec["source"], _FILE)
        facts = _Facts(tree)
        peer.may_raise, peer.may_suppress = facts.catches_control_flow, lambda error: facts.may_suppress(peer, error)
        peer.replaced = _watch_replaced()
        names = Names(peer, facts, spec["classes"])
        names.update({name: peer.ask("look", name, (), {}) for name in spec["builtins"]})
        sys.modules[TESTS], sys.argv = _Module(names), [_FILE]
        exec(compile(tree, _FILE, "exec", dont_inherit=True), names)
        if spec["function"]:
            names["check"](names.of_program(spec["function"]))
        result = str(spec["token"])
    except AssertionError as error:
        result = f"error {_line(error)}" if peer.is_of_program(error) else f"wrong {_text(error)}"
    except (ProgramEnded, CannotCross):
        pass
    except SystemExit as error:  # unittest.main ends like this
        succeeded = not error.code and not peer.is_of_program(error)
        result = str(spec["token"]) if succeeded else f"error {_line(error)}"
    except ImportError as error:
        result = f"{'error' if peer.is_of_program(error) else 'fault'} {_line(error)}"
    except BaseException as error:
        result = f"error {_line(error)}"
    return peer.failure or result


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {_text(error)}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""


class Names(dict[str, Any]):
    """Global variables of the tests.

    Args:
        peer: The channel to the program.
        facts: What the source of the tests tells about its names.
        classes: Names of classes of the program whose operators the tests use, None if that is unknown. Then a class
            that is named like one (CapWords) counts.
    """

    def __init__(self, peer: Peer, facts: _Facts, classes: list[str] | None) -> None:
        super().__init__(__name__=TESTS, __builtins__=builtins)
        self._peer, self._facts, self._classes = peer, facts, classes

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) or name.startswith("__"):
            raise KeyError(name)
        own = self._facts.standard(name)
        if own is not None:
            self[name] = own
            return own
        return self.of_program(name)

    def of_program(self, name: str) -> Any:
        """Return the program's object of a name. Raises NameError if there is none."""
        found = self._peer.ask("look", name, (), {})
        if isinstance(found, ProxyType):
            like_a_class = name[:1].isupper() and "_" not in name
            if like_a_class if self._classes is None else name in self._classes:
                type.__setattr__(found, "_marft_tested", True)
        return found


class _Module(types.ModuleType):
    """Module of the tests, for libraries that look for them there, such as ``unittest.main``."""

    def __init__(self, names: Names) -> None:
        super().__init__(TESTS)
        self.__dict__["_names"] = names

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        raise AttributeError(f"the tests define no name {name!r}")


def _watch_replaced() -> Any:
    """Return a function that returns the objects of ``_REPLACEABLE`` that are no longer the original ones, by name."""
    places = [(path, sys.modules[path.partition(".")[0]], path.partition(".")[2]) for path in _REPLACEABLE]
    originals = [(path, owner, name, getattr(owner, name)) for path, owner, name in places]

    def replaced() -> dict[str, Any]:
        return {
            path: now
            for path, owner, name, original in originals
            if (now := getattr(owner, name)) is not original and now != original
        }

    return replaced


class _Facts:
    """What the syntax tree of the tests tells about the names and the exceptions in it."""

    def __init__(self, tree: ast.Module) -> None:
        self._attributes: dict[str, set[str]] = {}  # name -> attributes of it, or of what calling it returned
        self._called: set[str] = set()
        self._catching: list[tuple[int, int]] = []  # lines on which the tests expect a StopIteration
        self._without_assertion: set[int] = set()  # first lines of such ``with`` statements
        made: dict[str, str] = {}  # variable -> name that was called to make it
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self._called.add(node.func.id)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _called_name(node.value):
                made[node.targets[0].id] = _called_name(node.value)
            self._note_exceptions(node)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                name = node.value.id if isinstance(node.value, ast.Name) else _called_name(node.value)
                for one in {name, made.get(name, "")} - {""}:
                    self._attributes.setdefault(one, set()).add(node.attr)

    def _note_exceptions(self, node: ast.AST) -> None:
        if isinstance(node, ast.Try):
            caught = {name for handler in node.handlers if handler.type for name in _names_in(handler.type)}
            if caught & set(_CONTROL_FLOW):
                self._catching.append((node.body[0].lineno, node.body[-1].end_lineno or 0))
        if isinstance(node, (ast.With, ast.AsyncWith)):
            if {name for item in node.items for name in _names_in(item.context_expr)} & set(_CONTROL_FLOW):
                self._catching.append((node.body[0].lineno, node.body[-1].end_lineno or 0))
            if not any(_asserts(inner) for statement in node.body for inner in ast.walk(statement)):
                self._without_assertion |= {node.lineno, *(item.context_expr.lineno for item in node.items)}

    def standard(self, name: str) -> Any:
        """Return the standard library's object of a name that the tests use as such, None if there is none."""
        used = self._attributes.get(name, set())
        module = _MODULES.get(name, name)
        if used and name not in self._called and (module in sys.stdlib_module_names or name in _MODULES):
            loaded = importlib.import_module(module)
            return loaded if all(hasattr(loaded, attribute) for attribute in used) else None
        found = _COMMON.get(name)
        return found if found is not None and all(hasattr(found, attribute) for attribute in used) else None

    def catches_control_flow(self, error: BaseException) -> bool:
        """Return whether the line of the tests that now runs is in a block that expects a StopIteration."""
        line = _current_line()
        return any(first <= line <= last for first, last in self._catching)

    def may_suppress(self, peer: Peer, error: BaseException) -> bool:
        """Return whether a context manager of the program may suppress an exception that left the block."""
        if isinstance(error, (AssertionError, ProgramEnded, CannotCross)) and not peer.is_of_program(error):
            return False
        return _current_line() in self._without_assertion


def _current_line() -> int:
    """Return the line of the tests that called into this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _FILE:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_lineno if frame is not None else 0


def _called_name(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _names_in(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name.startswith(("assert", "fail"))


def write_all(descriptor: int, text: str) -> None:
    """Write a string to a descriptor."""
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(descriptor, data) :]
