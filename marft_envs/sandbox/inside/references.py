"""References to objects that stay in their process, and their description for the other process.

An object of this process is ``{"mine": number}``, and an entry of the message describes it at its first mention. An
object of the other process is ``{"yours": number}``. A class or function of the standard library that both processes
have is ``{"global": [module, name]}``. In the tester's process only types are read by name, so that the program cannot
choose a function that runs there.
"""

from __future__ import annotations

import builtins
import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import Any

from .crossing import Crossing, CrossingFault
from .proxies import (
    IMMUTABLE,
    MUTABLE,
    ProxyType,
    describe,
    make_class,
    make_instance,
    number_of,
    physical_base,
)

TESTS = "__main__"
"""Name of the module of the tests, in their process. There it is the main program, as a file of tests is."""
_STANDARD_TYPES = frozenset(item for item in vars(builtins).values() if isinstance(item, type)) | {
    types.FunctionType, types.GeneratorType, types.ModuleType
}  # fmt: skip
_TYPE_MODULES = frozenset(("collections", "datetime", "decimal", "fractions", "array", "re", "typing", "numpy"))
_HIDDEN_MODULES = ("unittest", "asyncio", "concurrent", "threading", "bdb", "doctest", "contextlib", "marft_inside")
_CALLABLE = (type, types.FunctionType, types.BuiltinFunctionType, type(str.upper), type(str.__len__))


class References:
    """The objects of both processes that crossed, by number.

    Args:
        peer: The ``Peer`` that the proxies ask. Its ``trusting`` is True in the program's process.
        refuse: Called with the name of an object of the tests that cannot cross; it raises.
    """

    def __init__(self, peer: Any, refuse: Callable[[str], None]) -> None:
        self._peer, self._refuse = peer, refuse
        self._trusting: bool = peer.trusting
        self.crossing = Crossing(1 if self._trusting else 2, self._refer, self._resolve)
        self.reading = False
        self._owned: list[Any] = []
        self._numbers: dict[int, int] = {}  # id of an owned object -> its number
        self._proxies: dict[int, Any] = {}  # number of the other side -> proxy
        self._errors: dict[int, tuple[BaseException, int]] = {}  # builtin exceptions of the other side

    def dumps(self, box: list[Any]) -> str:
        """Return ``Crossing.dumps(box)``. If it fails, no object counts as known to the other side."""
        owned = len(self._owned)
        try:
            return self.crossing.dumps(box)
        except BaseException:
            while len(self._owned) > owned:
                del self._numbers[id(self._owned.pop())]
            raise

    def loads(self, text: bytes) -> Any:
        """Return ``Crossing.loads(text)``. Meanwhile proxies are equal only to themselves, and no request is sent."""
        self.reading = True
        try:
            return self.crossing.loads(text)
        finally:
            self.reading = False

    def is_owned(self, value: Any) -> bool:
        """Return whether an object of this process was handed over."""
        return id(value) in self._numbers

    def is_of_other(self, error: BaseException) -> bool:
        """Return whether an exception was raised by the other side."""
        return id(error) in self._errors or number_of(error) is not None

    def keep(self, error: BaseException, number: int = -1) -> BaseException:
        """Note an exception as one of the other side, with its number there, and return it."""
        self._errors[id(error)] = (error, number)
        return error

    def _refer(self, value: Any, as_node: bool = True, as_global: bool = True) -> dict[str, Any]:
        """Return the form of an object that is not data.

        Args:
            value: The object.
            as_node: Whether an object with contents is written as their node.
            as_global: Whether a class or function that both sides have is written by its name.
        """
        number = self._errors[id(value)][1] if id(value) in self._errors else number_of(value)
        if number is not None and number >= 0:
            return {"yours": number}
        if as_node and isinstance(value, MUTABLE):
            return {"node": self.crossing.number(value)}
        if as_global and self._is_shared_global(value):
            return {"global": [value.__module__, value.__qualname__]}
        known = self._numbers.get(id(value))
        if known is not None:
            return {"mine": known}
        if not self._trusting:
            self._check_crosses(value)
        index = len(self._owned)
        self._owned.append(value)
        self._numbers[id(value)] = index
        self.crossing.descriptions[str(index)] = None  # in the order of first mention
        self.crossing.descriptions[str(index)] = self._description(value)
        return {"mine": index}

    def _description(self, value: Any) -> list[Any]:
        write = self.crossing.write
        if isinstance(value, type):
            return ["class", describe(value, write)]
        kind = type(value)
        if isinstance(value, BaseException):
            arguments = [write(item) for item in _arguments_of(value)]
            own = {name: write(item) for name, item in vars(value).items() if not name.startswith("_marft")}
            cause = value.__cause__
            return ["error", write(kind), arguments, own, None if cause is None else write(cause)]
        physical = physical_base(kind)
        content = write(_plain(value, physical)) if physical in IMMUTABLE else None
        return ["object", self._refer(kind, as_global=False), content, write(_hash_of(value))]

    def _is_shared_global(self, value: Any) -> bool:
        """Return whether both sides have this class or function of the standard library or numpy under its name."""
        if self._trusting and not isinstance(value, type):
            return False  # the tester runs no function that the program chooses
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(value, _CALLABLE) or not isinstance(module, str) or not isinstance(name, str):
            return False
        if self._trusting and value not in _STANDARD_TYPES and module not in _TYPE_MODULES:
            return False
        return _is_library(module) and _find_global(module, name) is value

    def _check_crosses(self, value: Any) -> None:
        """Refuse an object of the tests that another process cannot use."""
        kind = type(value)
        if not (
            isinstance(value, (BaseException, io.StringIO, io.BytesIO)) or callable(value) or is_class_of_tests(kind)
            or hasattr(kind, "__next__") or hasattr(kind, "__anext__") or hasattr(kind, "__await__")
        ):  # fmt: skip
            self._refuse(f"an object of the type {kind.__module__}.{kind.__qualname__}")

    def _resolve(self, form: dict[str, Any]) -> Any:
        """Return the object of a form that ``_refer`` wrote."""
        if "yours" in form:
            return self._owned[form["yours"]]
        if "global" in form:
            return self._global(*form["global"])
        number = form["mine"]
        if number not in self._proxies:
            made = self._make(number, *self.crossing.descriptions[str(number)])
            self._proxies.setdefault(number, made)
        return self._proxies[number]

    def _make(self, number: int, kind: str, *facts: Any) -> Any:
        read = self.crossing.read
        if kind == "class":
            [description] = facts
            real = None if self._trusting else _library_exception(description)
            if real is not None:
                return real
            return make_class(self._peer, number, description, tuple(read(base) for base in description["bases"]))
        if kind == "object":
            made, content, hashed = facts
            return make_instance(read(made), number, read(content), read(hashed))
        made, arguments, own, cause = facts
        return self._make_error(number, read(made), [read(item) for item in arguments], own, cause)

    def _make_error(self, number: int, kind: type, arguments: list[Any], own: dict[str, Any], cause: Any) -> Any:
        read = self.crossing.read
        error: BaseException
        if isinstance(kind, ProxyType):
            error = _new_error(kind, arguments)
            object.__setattr__(error, "_marft_number", number)
        else:
            error = _new_error(kind, arguments)
            for name, item in own.items():
                object.__setattr__(error, str(name), read(item))
            self.keep(error, number)
        if cause is not None:
            error.__cause__ = read(cause)
        return error

    def _global(self, module: str, name: str) -> Any:
        if self._trusting and _is_library(module):
            importlib.import_module(module)
        found = _find_global(module, name) if _is_library(module) else None
        if not self._trusting and not isinstance(found, type):
            raise CrossingFault(f"no type {module}.{name}"[:100])
        if found is None:
            raise CrossingFault(f"nothing is named {module}.{name}"[:100])
        return found


def is_class_of_tests(kind: type) -> bool:
    return kind.__module__ == TESTS


def _hash_of(value: Any) -> int | None:
    """Return the hash of an object whose class defines it, None if it has none."""
    kind = type(value)
    if kind.__hash__ is None or kind.__hash__ is object.__hash__ or isinstance(value, MUTABLE):
        return None
    try:
        return hash(value)
    except Exception:
        return None


def _library_exception(description: dict[str, Any]) -> type | None:
    """Return the exception class of the standard library that a description names, if the tests have loaded it."""
    module, name = str(description["module"]), str(description["qualname"])
    found = _find_global(module, name) if _is_library(module) else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    return (top in sys.stdlib_module_names or top == "numpy") and top not in _HIDDEN_MODULES


def _find_global(module: str, name: str) -> Any:
    """Return the object of a loaded module by its qualified name, None if there is none."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _plain(value: Any, physical: type) -> Any:
    """Return the value of the builtin base of an object. Methods of its class are not called."""
    if physical is int:
        return int.__int__(value)
    if physical is float:
        return float.__float__(value)
    if physical is complex:
        return complex.__pos__(value)
    if physical is frozenset:
        return frozenset(frozenset.__iter__(value))
    base: Any = physical  # str, bytes or tuple
    return base.__getitem__(value, slice(None))


def _arguments_of(error: BaseException) -> tuple[Any, ...]:
    if isinstance(error, OSError) and error.filename is not None and len(error.args) == 2:
        return (*error.args, error.filename)
    return error.args


def _new_error(kind: type, arguments: list[Any]) -> BaseException:
    """Return an exception with these arguments. The initialiser of its class runs only if it is a builtin."""
    if kind.__module__ == "builtins" and not isinstance(kind, ProxyType):
        try:
            return kind(*arguments)  # type: ignore[no-any-return]
        except TypeError:
            return RuntimeError(f"{kind.__name__}: {arguments}"[:500])
    error: BaseException = kind.__new__(kind, *arguments)
    BaseException.args.__set__(error, tuple(arguments))  # type: ignore[attr-defined]  # not the class's own setter
    return error
