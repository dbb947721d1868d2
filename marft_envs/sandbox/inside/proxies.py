"""Classes of proxies: a class of the other process becomes a class of this process, with the same protocols.

The proxy class has the name, the bases and the special methods of the original, so that ``len``, ``in``, iteration,
``with``, ``except`` and ``isinstance`` work as they do on the original. A base that is a builtin type of data is a real
base: a named tuple is a tuple here too, with its items, and a member of an IntEnum is an integer. Every other operation
is forwarded to the process that owns the object.

In the tester's process one operation is not forwarded: a comparison or calculation of an object of the program with
the tests' own data. Otherwise an object that equals everything would pass every test. The builtin type of the object
decides it (a named tuple equals a tuple with the same items), or the object equals nothing. It is forwarded for objects
that the tests made themselves, by calling a class of the program: there the class is what is tested.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import re
import types
from typing import Any

from .crossing import IMMUTABLE, MUTABLE

_UNARY = """
    len iter next str repr bool int float complex index abs neg pos invert hash reversed round trunc floor ceil bytes
    format length_hint enter exit aenter aexit aiter call getitem setitem delitem missing fspath dir
"""
_BINARY = """
    eq ne lt le gt ge contains add radd iadd sub rsub isub mul rmul imul matmul rmatmul imatmul truediv rtruediv
    itruediv floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift rlshift ilshift rshift
    rrshift irshift and rand iand xor rxor ixor or ror ior
"""
UNARY = tuple(f"__{name}__" for name in _UNARY.split())
BINARY = tuple(f"__{name}__" for name in _BINARY.split())
SPECIAL = (*UNARY, *BINARY, "__await__", "__anext__")
"""Special methods that a proxy forwards."""
_READABLE = """
    name qualname module doc dict annotations defaults kwdefaults wrapped self func members code closure slots
    dataclass_fields dataclass_params match_args notes fields
"""
READABLE = frozenset(f"__{name}__" for name in _READABLE.split())
"""Other special attributes that a proxy forwards. Names such as ``__array__`` would hand control to the program."""
_STANDARD: dict[str, type] = {
    str(kind.__name__): kind
    for kind in (
        types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GeneratorType, types.CoroutineType,
        types.AsyncGeneratorType, re.Match,
    )
}  # fmt: skip
_PHYSICAL = (*IMMUTABLE, *MUTABLE, BaseException)


class ProxyType(type):
    """Type of all proxy classes. ``_marft_peer`` of a class is the ``Peer`` that forwards its operations."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> ProxyType:
        if "_marft_peer" not in namespace:
            base = next(base for base in bases if isinstance(base, ProxyType))
            base._marft_peer.refuse(f"the class {name}, which inherits from {base.__name__}")
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        value = cls._marft_peer.ask("call", cls, arguments, named)
        if cls.__dict__.get("_marft_tested") and isinstance(type(value), ProxyType):
            object.__setattr__(value, "_marft_tested", True)
        return value

    def __getattr__(cls, name: str) -> Any:
        return get_remote(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._marft_peer.ask("set", cls, (name, value), {})

    def __iter__(cls) -> Any:
        return cls._marft_peer.ask("__iter__", cls, (), {})

    def __len__(cls) -> int:
        return int(cls._marft_peer.ask("__len__", cls, (), {}))

    def __bool__(cls) -> bool:
        return True

    def __contains__(cls, item: Any) -> bool:
        if cls._marft_peer.trusting or cls.__dict__.get("_marft_tested") or isinstance(type(item), ProxyType):
            return bool(cls._marft_peer.ask("__contains__", cls, (item,), {}))
        return any(one is item or one == item for one in iter(cls))

    def __getitem__(cls, item: Any) -> Any:
        return cls._marft_peer.ask("__getitem__", cls, (item,), {})

    def __reversed__(cls) -> Any:
        return cls._marft_peer.ask("__reversed__", cls, (), {})


def number_of(value: Any) -> int | None:
    """Return the number of a proxy's object in the other process, None for a value that is no proxy."""
    if isinstance(value, ProxyType):
        return value.__dict__.get("_marft_number")
    if isinstance(type(value), ProxyType):
        return int(object.__getattribute__(value, "_marft_number"))
    return None


def get_remote(proxy: Any, name: str) -> Any:
    """Return an attribute of a proxy's object."""
    if name.startswith("_marft") or (name.startswith("__") and name.endswith("__") and name not in READABLE):
        raise AttributeError(f"{type(proxy).__name__!r} object has no attribute {name!r}")
    return _peer(proxy).ask("get", proxy, (name,), {})


def _peer(proxy: Any) -> Any:
    return (proxy if isinstance(proxy, ProxyType) else type(proxy))._marft_peer


# ---- description of a class by the process that owns it


def describe(kind: type, write: Any) -> dict[str, Any]:
    """Return what the other process needs to make the proxy class. write: returns the form of a base."""
    physical = physical_base(kind)
    overridden = {
        name for klass in kind.__mro__ if klass not in physical.__mro__ for name in klass.__dict__
    }  # fmt: skip
    special = [name for name in SPECIAL if name in overridden and getattr(kind, name, None) is not None]
    methods = [
        name for name in dir(physical)
        if name in overridden and not name.startswith("_") and physical in (*IMMUTABLE, *MUTABLE)
    ]  # fmt: skip
    fields = kind.__dict__.get("__dataclass_fields__")
    return {
        "name": kind.__name__,
        "qualname": kind.__qualname__,
        "module": kind.__module__,
        "doc": kind.__doc__ if type(kind.__doc__) is str and kind.__module__ != "builtins" else None,
        "bases": [write(base) for base in kind.__bases__ if base is not object],
        "special": special,
        "methods": methods,
        "hashable": getattr(kind, "__hash__", None) is not None,
        "fields": list(fields) if isinstance(fields, dict) else None,
        "abstract": _abstract_bases(kind),
        "standard": kind.__name__ if _STANDARD.get(kind.__name__) is kind else "",
    }


def physical_base(kind: type) -> type:
    """Return the builtin type of data that a class is derived from, ``object`` if there is none."""
    for base in kind.__mro__:
        if base in _PHYSICAL or (issubclass(base, BaseException) and base.__module__ == "builtins"):
            return base
    return object


def _abstract_bases(kind: type) -> list[str]:
    """Return the classes of ``collections.abc`` that the class is registered with or inherits from."""
    if not any(base.__module__ in ("collections.abc", "_collections_abc") for base in kind.__mro__):
        return []
    names = collections.abc.__all__
    return [name for name in names if getattr(collections.abc, name) in kind.__mro__]


# ---- construction of a proxy class


def make_class(peer: Any, number: int, facts: dict[str, Any], bases: tuple[type, ...]) -> ProxyType:
    """Return the proxy class that ``facts``, made by ``describe``, stand for."""
    real = tuple(base for base in bases if isinstance(base, ProxyType) or _is_physical(base))
    namespace: dict[str, Any] = {
        "__qualname__": str(facts["qualname"]), "__module__": str(facts["module"]), "__doc__": facts["doc"],
        "_marft_peer": peer, "_marft_number": number, "__getattr__": get_remote, "__setattr__": _set,
        "__delattr__": _delete, "__copy__": _copy, "__deepcopy__": _deep_copy, "__dict__": property(_get_dict),
    }  # fmt: skip
    for name in facts["special"]:
        if name in SPECIAL:
            namespace[name] = _FORWARDERS.get(name) or (_binary if name in BINARY else _unary)(name)
    for name in facts["methods"]:
        if not name.startswith("_"):
            namespace[name] = _method(name)
    if not facts["hashable"]:
        namespace["__hash__"] = None
    elif "__eq__" in namespace:
        namespace.setdefault("__hash__", object.__hash__)
    if facts["fields"] is not None:
        namespace["__dataclass_fields__"] = {str(name): _field(str(name)) for name in facts["fields"]}
    if "__call__" in namespace and facts["module"] in ("builtins", "functools"):  # attributes of each function
        namespace |= {name: _attribute(name) for name in ("__doc__", "__module__")}
    standard = _STANDARD.get(facts["standard"])
    if standard is not None:
        namespace["__class__"] = property(lambda self: standard)
    if standard is types.GeneratorType:
        namespace |= {"send": _unary("send"), "throw": _unary("throw"), "close": _unary("close")}
    if standard is types.CoroutineType:
        namespace |= {"send": _send, "close": lambda self: None, "throw": _throw}
    made = ProxyType(str(facts["name"]), real, namespace)
    for name in facts["abstract"]:
        getattr(collections.abc, name).register(made)
    return made


def make_instance(kind: ProxyType, number: int, content: Any, hash_value: int | None) -> Any:
    """Return the proxy of an instance. content: its value if the class has a builtin base whose value is fixed."""
    base: Any = next((base for base in kind.__mro__ if base in (*IMMUTABLE, *MUTABLE)), object)
    made = base.__new__(kind, content) if base in IMMUTABLE else base.__new__(kind)
    object.__setattr__(made, "_marft_number", number)
    if hash_value is not None:
        object.__setattr__(made, "_marft_hash", hash_value)
    return made


def _is_physical(base: type) -> bool:
    return base in _PHYSICAL or (issubclass(base, BaseException) and base.__module__ == "builtins")


def _field(name: str) -> Any:
    field = dataclasses.field()
    field.name, field._field_type = name, dataclasses._FIELD  # type: ignore[attr-defined]
    return field


def _attribute(name: str) -> Any:
    return property(lambda self: get_remote(self, name))


def _get_dict(self: Any) -> Any:
    return get_remote(self, "__dict__")


def _set(self: Any, name: str, value: Any) -> None:
    if isinstance(self, BaseException) and name.startswith("__"):  # the traceback and the context, which Python sets
        object.__setattr__(self, name, value)
    else:
        _peer(self).ask("set", self, (name, value), {})


def _delete(self: Any, name: str) -> None:
    _peer(self).ask("delete", self, (name,), {})


def _copy(self: Any) -> Any:
    return _peer(self).ask("copy", self, (), {})


def _deep_copy(self: Any, memo: Any) -> Any:
    return _peer(self).ask("deepcopy", self, (), {})


def _send(self: Any, value: Any) -> Any:
    raise StopIteration(_peer(self).ask("await", self, (), {}))


def _throw(self: Any, *error: Any) -> Any:
    raise error[-1] if isinstance(error[-1], BaseException) else error[0]


def _hash(self: Any) -> int:
    try:
        return int(object.__getattribute__(self, "_marft_hash"))
    except AttributeError:
        return int(_peer(self).ask("__hash__", self, (), {}))


def _exit(self: Any, kind: Any, error: Any, trace: Any) -> Any:
    """Leave a ``with`` block. The program may suppress an exception only where that cannot hide an assertion."""
    suppress = _peer(self).ask("__exit__", self, (kind, error, None), {})
    return suppress if error is None or _peer(self).may_suppress(error) else False


async def _exit_async(self: Any, kind: Any, error: Any, trace: Any) -> Any:
    suppress = await _peer(self).ask("__aexit__", self, (kind, error, None), {})
    return suppress if error is None or _peer(self).may_suppress(error) else False


def _await(self: Any) -> Any:
    return _peer(self).ask("await", self, (), {})
    yield


async def _next_of_async(self: Any) -> Any:
    return _peer(self).ask("__anext__", self, (), {})


def _contains(self: Any, item: Any) -> Any:
    if _is_forwarded(self, item):
        return _peer(self).ask("__contains__", self, (item,), {})
    own = getattr(_base_of_data(type(self)), "__contains__", None)
    if own is not None:
        return own(self, item)
    return any(one is item or one == item for one in iter(self))


_FORWARDERS: dict[str, Any] = {
    "__hash__": _hash, "__exit__": _exit, "__await__": _await, "__anext__": _next_of_async, "__contains__": _contains,
    "__aexit__": _exit_async,
}  # fmt: skip


def _unary(name: str) -> Any:
    def forward(self: Any, /, *arguments: Any, **named: Any) -> Any:
        return _peer(self).ask(name, self, arguments, named)

    return forward


def _method(name: str) -> Any:
    def forward(self: Any, /, *arguments: Any, **named: Any) -> Any:
        return _peer(self).ask("method", self, (name, *arguments), named)

    return forward


def _binary(name: str) -> Any:
    def forward(self: Any, other: Any, *more: Any) -> Any:
        if name == "__eq__" and _peer(self).is_reading:  # the keys of a dict or set that arrives are different
            return self is other
        if _is_forwarded(self, other):
            value = _peer(self).ask(name, self, (other, *more), {})
            if isinstance(type(value), ProxyType) and _is_tested(self):
                object.__setattr__(value, "_marft_tested", True)
            return value
        own = getattr(_base_of_data(type(self)), name, None)
        return NotImplemented if own is None else own(self, other, *more)

    return forward


def _base_of_data(kind: type) -> type:
    return next((base for base in kind.__mro__ if base in _PHYSICAL), object)


def _is_tested(proxy: Any) -> bool:
    try:
        return bool(object.__getattribute__(proxy, "_marft_tested"))
    except AttributeError:
        return False


def _is_forwarded(self: Any, other: Any) -> bool:
    """Return whether a comparison or calculation is performed by the process that owns ``self``."""
    return _peer(self).trusting or _is_tested(self) or isinstance(type(other), ProxyType)


def forget_tested(proxy: Any) -> None:
    """Mark an object as a result: from now on its comparisons with the tests' data are not forwarded."""
    if isinstance(type(proxy), ProxyType) and _is_tested(proxy):
        object.__setattr__(proxy, "_marft_tested", False)
