"""Serialization of values that cross between the tester's process and the program's, with their identity.

A message is JSON: ``{"value": form, "nodes": [[number, kind, items], ...], "objects": {...}, "forgotten": [...]}``.

* Immutable data are written in place: numbers and strings as JSON, ``(1, 2)`` as ``{"tuple": [1, 2]}``, a date as
  ``{"make": ["datetime.date", [2024, 1, 2]]}``.
* A mutable container is a node, written as ``{"node": number}``. Both processes keep it under this number while both
  can reach it, and each message carries the contents of the nodes that changed. So an argument that the program
  modifies, also through an alias or after the call, is modified in the tests, and cycles are allowed.
* Every other object stays in its process. ``refer`` and ``resolve`` write and read references to it, and the entry
  "objects" describes those that the receiver does not know.

Reading a message builds data of the types named here and nothing else.
"""

from __future__ import annotations

import array
import datetime
import importlib
import json
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

_PLAIN_INT = 10**15
_MAX_DIGITS = 20
_ARRAY_KINDS = "biufcSUmM"  # kinds of numpy's data types that are plain bytes


class CrossingFault(ValueError):
    """A message is not one that ``dumps`` writes."""


class _Node:
    """A container that both processes hold. text: its contents as both knew them after the last message."""

    __slots__ = ("text", "value")

    def __init__(self, value: Any, text: str = "") -> None:
        self.value, self.text = value, text


def _references(node: _Node) -> int:
    return sys.getrefcount(node.value)


_ALONE = _references(_Node([]))
"""References of a container that only its node holds."""


class Crossing:
    """Writer and reader of the messages of one process.

    Args:
        first: First number of a node: 1 in one process and 2 in the other.
        refer: Returns the form of an object that is not data. With ``as_node=False`` it is not the form of a node.
        resolve: Returns the object of such a form.
    """

    def __init__(self, first: int, refer: Callable[..., Any], resolve: Callable[[Any], Any]) -> None:
        self._next = first
        self._refer, self._resolve = refer, resolve
        self._nodes: dict[int, _Node] = {}
        self._numbers: dict[int, int] = {}  # id of a container -> its number
        self._new: list[int] = []
        self._kinds: dict[int, Any] = {}  # of the nodes of a message that are not yet made
        self.descriptions: dict[str, Any] = {}  # of the objects that a message introduces, by number

    # ---- writing

    def dumps(self, box: list[Any]) -> str:
        """Return the message for the only item of ``box``, and empty the box.

        A container that only this message holds is not kept: the caller must have no other reference to it.

        Raises:
            CrossingFault: If the value is nested too deeply.
        """
        known = list(self._nodes)
        self.descriptions = {}
        try:
            form = json.dumps(self.write(box[0]))
            box.clear()
            nodes = []
            for number in known:
                node = self._nodes[number]
                text = json.dumps(self._items(node.value))
                if text != node.text:
                    node.text = text
                    nodes.append(f"[{number}, null, {text}]")
            for number in self._new:  # grows in the loop
                node = self._nodes[number]
                kind = json.dumps(self._kind(node.value))
                node.text = json.dumps(self._items(node.value))
                nodes.append(f"[{number}, {kind}, {node.text}]")
            objects = json.dumps(self.descriptions)
        except BaseException as error:
            for number in self._new:  # the receiver does not know them
                del self._numbers[id(self._nodes[number].value)], self._nodes[number]
            if isinstance(error, RecursionError):
                raise CrossingFault("nested too deeply") from None
            raise
        finally:
            self._new = []
        forgotten = json.dumps(self._forget_alone())
        return f'{{"value": {form}, "nodes": [{", ".join(nodes)}], "objects": {objects}, "forgotten": {forgotten}}}'

    def _forget_alone(self) -> list[int]:
        """Drop the nodes of containers that nothing else in this process holds, and return their numbers."""
        forgotten: list[int] = []
        found = True
        while found:  # a dropped container may have been the last to hold another one
            found = False
            for number, node in list(self._nodes.items()):
                if _references(node) <= _ALONE:
                    found = True
                    forgotten.append(number)
                    del self._numbers[id(node.value)], self._nodes[number]
                    node.value = None
        return forgotten

    def write(self, value: Any) -> Any:
        """Return the form of a value."""
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            return value if -_PLAIN_INT < value < _PLAIN_INT else {"int": hex(value)}
        if kind is tuple:
            return {"tuple": [self.write(item) for item in value]}
        if kind in _CONTAINERS:
            return {"node": self.number(value)}
        if kind in _WRITERS:
            tag, arguments = _WRITERS[kind](value)
            return {"make": [tag, [self.write(item) for item in arguments]]}
        if kind is frozenset:
            return {"frozenset": sorted((self.write(item) for item in value), key=repr)}
        if kind is bytes:
            return {"bytes": value.hex()}
        if type(kind) is type and kind.__module__ == "numpy":  # not a proxy class, whose name the program chose
            if _is_plain_array(value):
                return {"node": self.number(value)}
            if _is_plain_scalar(value):
                return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if type(kind) is type and kind.__module__ == "builtins" and kind.__name__ in _VIEWS:
            return {"view": [kind.__name__, [self.write(item) for item in value]]}
        if type(kind) is type and kind.__name__ in _BY_STRING.get(kind.__module__.partition(".")[0], ()):
            return {"make": [f"{kind.__module__.partition('.')[0]}.{kind.__name__}", [str(value)]]}
        return self._refer(value)

    def number(self, value: Any) -> int:
        """Return the number of the node of a container, which is registered if it is new."""
        number = self._numbers.get(id(value))
        if number is None:
            number, self._next = self._next, self._next + 2
            self._register(number, value)
            self._new.append(number)
        return number

    def _register(self, number: int, value: Any) -> None:
        self._nodes[number] = _Node(value)
        self._numbers[id(value)] = number

    def _kind(self, value: Any) -> Any:
        """Return how the receiver makes an empty container of this kind."""
        kind = type(value)
        if kind is defaultdict:
            return ["defaultdict", self.write(value.default_factory)]
        if kind is deque:
            return ["deque", value.maxlen]
        if kind is array.array:
            return ["array", value.typecode]
        if kind.__module__ == "numpy" and type(kind) is type:
            return ["ndarray", value.dtype.str, list(value.shape)]
        return [kind.__name__] if kind in _CONTAINERS else ["object", self._refer(value, as_node=False)]

    def _items(self, value: Any) -> list[Any]:
        """Return the contents of a container. Methods of a subclass are not called."""
        if isinstance(value, list):
            return [self.write(item) for item in list.__iter__(value)]
        if isinstance(value, OrderedDict):
            return [[self.write(key), self.write(item)] for key, item in OrderedDict.items(value)]
        if isinstance(value, dict):
            return [[self.write(key), self.write(item)] for key, item in dict.items(value)]
        if isinstance(value, set):
            return sorted((self.write(item) for item in set.__iter__(value)), key=repr)
        if isinstance(value, deque):
            return [self.write(item) for item in deque.__iter__(value)]
        if isinstance(value, bytearray):
            return [bytearray.hex(value)]
        if not isinstance(value, array.array) and value.dtype.kind == "O":
            return [self.write(item) for item in value.ravel().tolist()]
        return [value.tobytes().hex()]

    # ---- reading

    def loads(self, text: bytes) -> Any:
        """Return the value of a message, and update the containers that it changes.

        Raises:
            CrossingFault: If ``text`` is not a message.
        """
        try:
            message = json.loads(text, parse_int=_parse_int)
            forgotten = set(message["forgotten"])
            self.descriptions = message["objects"]
            self._kinds = {number: kind for number, kind, _ in message["nodes"] if kind is not None}
            for number, _, items in message["nodes"]:
                self._fill(self._container(number), items)
            value = self.read(message["value"])
            for number, _, _ in message["nodes"]:
                if number not in forgotten:
                    node = self._nodes[number]
                    node.text = json.dumps(self._items(node.value))
            for number in forgotten:
                del self._numbers[id(self._nodes[number].value)], self._nodes[number]
            return value
        except CrossingFault:
            raise
        except Exception as error:  # constructors raise errors of many kinds
            raise CrossingFault(f"not a message: {type(error).__name__}: {error}"[:200]) from None

    def read(self, form: Any) -> Any:
        """Return the value of a form."""
        if type(form) is not dict:
            return form
        tag = next(iter(form))
        body = form[tag]
        if tag == "node":
            return self._container(body)
        if tag == "tuple":
            return tuple([self.read(item) for item in body])
        if tag in ("mine", "yours", "global"):
            return self._resolve(form)
        if tag == "make":
            make = _MAKERS.get(body[0]) or _class_by_string(body[0])
            return make(*[self.read(item) for item in body[1]])
        if tag == "frozenset":
            return frozenset([self.read(item) for item in body])
        if tag == "view":
            return _VIEWS[body[0]]([self.read(item) for item in body[1]])
        return _READERS[tag](body)

    def _container(self, number: int) -> Any:
        """Return the container of a number; an empty one at the first mention, which ``_fill`` fills."""
        if number not in self._nodes and number in self._kinds:
            value = self._empty(self._kinds.pop(number))
            if number not in self._nodes:
                self._register(number, value)
        return self._nodes[number].value

    def _empty(self, kind: list[Any]) -> Any:
        name, *rest = kind
        if name == "object":
            return self._resolve(rest[0])
        if name == "defaultdict":
            return defaultdict(self.read(rest[0]))
        if name == "deque":
            return deque(maxlen=rest[0])
        if name == "array":
            return array.array(rest[0])
        if name == "ndarray":
            return _numpy().empty(tuple(rest[1]), _data_type(rest[0], "O"))
        return _BY_NAME[name]()

    def _fill(self, value: Any, items: list[Any]) -> None:
        """Give a container its contents. Methods of a subclass are not called."""
        if isinstance(value, bytearray):
            bytearray.__setitem__(value, slice(None), bytes.fromhex(items[0]))
        elif isinstance(value, array.array):
            del value[:]
            value.frombytes(bytes.fromhex(items[0]))
        elif type(value).__module__ == "numpy" and type(type(value)) is type:
            _fill_array(value, items, self.read)
        elif isinstance(value, dict):
            pairs = [(self.read(key), self.read(item)) for key, item in items]
            dict.clear(value)
            for key, item in pairs:
                (OrderedDict if isinstance(value, OrderedDict) else dict).__setitem__(value, key, item)
        elif isinstance(value, set):
            set.clear(value)
            set.update(value, [self.read(item) for item in items])
        elif isinstance(value, list):
            list.__setitem__(value, slice(None), [self.read(item) for item in items])
        else:
            deque.clear(value)
            deque.extend(value, [self.read(item) for item in items])


def _class_by_string(path: str) -> Any:
    module, _, name = path.partition(".")
    if name not in _BY_STRING[module]:
        raise CrossingFault(f"no type {path!r:.80}")
    return getattr(importlib.import_module(module), name)


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise CrossingFault(f"an integer of {len(digits)} decimal digits")  # parsing takes quadratic time
    return int(digits)


def _time_zone(value: datetime.timezone) -> tuple[str, tuple[Any, ...]]:
    return "datetime.timezone", (value.utcoffset(None), value.tzname(None))


_CONTAINERS = (list, dict, set, deque, bytearray, Counter, OrderedDict, defaultdict, array.array)
_BY_NAME: dict[str, Callable[[], Any]] = {
    kind.__name__: kind for kind in (list, dict, set, bytearray, Counter, OrderedDict)
}
MUTABLE = (list, dict, set, bytearray, deque, OrderedDict, defaultdict, Counter)
"""Types whose subclasses have contents that are a node."""
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset)
"""Types whose subclasses have a value that never changes."""
_WRITERS: dict[type, Callable[[Any], tuple[str, tuple[Any, ...]]]] = {
    complex: lambda v: ("complex", (v.real, v.imag)),
    range: lambda v: ("range", (v.start, v.stop, v.step)),
    slice: lambda v: ("slice", (v.start, v.stop, v.step)),
    type(Ellipsis): lambda v: ("...", ()),
    type(NotImplemented): lambda v: ("NotImplemented", ()),
    Decimal: lambda v: ("Decimal", (str(v),)),
    Fraction: lambda v: ("Fraction", (v.numerator, v.denominator)),
    re.Pattern: lambda v: ("re.compile", (v.pattern, v.flags)),
    datetime.date: lambda v: ("datetime.date", (v.year, v.month, v.day)),
    datetime.timedelta: lambda v: ("datetime.timedelta", (v.days, v.seconds, v.microseconds)),
    datetime.timezone: _time_zone,
    datetime.time: lambda v: ("datetime.time", (v.hour, v.minute, v.second, v.microsecond, v.tzinfo)),
    datetime.datetime: lambda v: (
        "datetime.datetime", (v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo)
    ),
}  # fmt: skip
_MAKERS: dict[str, Callable[..., Any]] = {
    "complex": complex, "range": range, "slice": slice, "...": lambda: ..., "NotImplemented": lambda: NotImplemented,
    "Decimal": Decimal, "Fraction": Fraction, "re.compile": re.compile, "datetime.date": datetime.date,
    "datetime.timedelta": datetime.timedelta, "datetime.timezone": datetime.timezone, "datetime.time": datetime.time,
    "datetime.datetime": datetime.datetime,
}  # fmt: skip
_BY_STRING: dict[str, tuple[str, ...]] = {
    "uuid": ("UUID",),
    "pathlib": ("PurePosixPath", "PosixPath", "PureWindowsPath"),
    "ipaddress": ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"),
    "zoneinfo": ("ZoneInfo",),
}
"""Immutable classes that are made from their string, by module."""
_VIEWS: dict[str, Callable[[list[Any]], Any]] = {
    "dict_keys": lambda items: dict.fromkeys(items).keys(),
    "dict_values": lambda items: dict(enumerate(items)).values(),
    "dict_items": lambda items: dict(items).items(),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda body: int(body, 16),
    "bytes": bytes.fromhex,
    "scalar": lambda body: _numpy().frombuffer(bytes.fromhex(body[1]), _data_type(body[0]))[0],
}


# ---- numpy, where it is loaded


def _numpy() -> Any:
    return sys.modules["numpy"]


def _is_plain_array(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "ndarray" and (value.dtype.kind in _ARRAY_KINDS or value.dtype.kind == "O")


def _is_plain_scalar(value: Any) -> bool:
    return hasattr(value, "tobytes") and getattr(getattr(value, "dtype", None), "kind", "V") in _ARRAY_KINDS


def _data_type(text: str, also: str = "") -> Any:
    found = _numpy().dtype(text)
    if found.kind not in _ARRAY_KINDS + also:
        raise CrossingFault(f"numpy's data type {text!r:.40}")
    return found


def _fill_array(value: Any, items: list[Any], read: Callable[[Any], Any]) -> None:
    if value.dtype.kind == "O":
        for place, item in enumerate(items):
            value.flat[place] = read(item)
    else:
        value[...] = _numpy().frombuffer(bytes.fromhex(items[0]), value.dtype).reshape(value.shape)
