"""LeetCode's classes ListNode and TreeNode, and their notation as lists in tests.

A linked list is the list of its values. A tree is the list of its values level by level, with None for a missing child;
trailing Nones are left out.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

_MAX_NODES = 100_000  # a list with a cycle has no end
_CLASSES = ("ListNode", "TreeNode")


class ListNode:
    """Node of a singly linked list."""

    def __init__(self, val: Any = 0, next: ListNode | None = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """Node of a binary tree."""

    def __init__(self, val: Any = 0, left: TreeNode | None = None, right: TreeNode | None = None) -> None:
        self.val = val
        self.left = left
        self.right = right


def call(function: Callable[..., Any], arguments: list[Any], names: dict[str, Any]) -> Any:
    """Call a function, with linked lists and trees in place of lists where its annotations name their classes.

    Args:
        function: The function.
        arguments: Its positional arguments.
        names: Global variables of the program, which may define the classes itself.

    Returns:
        What it returned, with lists in place of linked lists and trees.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function(*arguments)
    annotations = [_words(one.annotation) for one in signature.parameters.values()]
    annotations += [""] * (len(arguments) - len(annotations))
    value = function(*[_as_node(*pair, names) for pair in zip(arguments, annotations, strict=False)])
    if value is None and any(name in _words(signature.return_annotation) for name in _CLASSES):
        return []
    return _as_list(value)


def _words(annotation: Any) -> str:
    return f"{getattr(annotation, '__name__', '')} {annotation}"


def _as_node(argument: Any, annotation: str, names: dict[str, Any]) -> Any:
    for name, make in (("ListNode", _linked_list), ("TreeNode", _tree)):
        if name in annotation and isinstance(argument, list):
            kind = names.get(name, globals()[name])
            if "list[" in annotation.lower():
                return [make(item, kind) if isinstance(item, list) else item for item in argument]
            return make(argument, kind)
    return argument


def _linked_list(values: list[Any], kind: Any) -> Any:
    head = None
    for value in reversed(values):
        node = kind(value)
        node.next, head = head, node
    return head


def _tree(values: list[Any], kind: Any) -> Any:
    if not values or values[0] is None:
        return None
    root = kind(values[0])
    waiting, rest = deque([root]), iter(values[1:])
    while waiting:
        node = waiting.popleft()
        for side in ("left", "right"):
            value = next(rest, None)
            child = None if value is None else kind(value)
            setattr(node, side, child)
            if child is not None:
                waiting.append(child)
    return root


def _as_list(value: Any) -> Any:
    """Return a linked list or a tree as a list, and in a list of them each item; any other value as it is."""
    name = type(value).__name__
    if name == "ListNode":
        values: list[Any] = []
        while value is not None and len(values) < _MAX_NODES:
            values.append(value.val)
            value = value.next
        return values
    if name == "TreeNode":
        return _levels(value)
    if type(value) is list and any(type(item).__name__ in _CLASSES for item in value):
        return [_as_list(item) for item in value]
    return value


def _levels(root: Any) -> list[Any]:
    values: list[Any] = []
    waiting = deque([root])
    while waiting and len(values) < _MAX_NODES:
        node = waiting.popleft()
        values.append(None if node is None else node.val)
        if node is not None:
            waiting += (node.left, node.right)
    while values and values[-1] is None:
        values.pop()
    return values
