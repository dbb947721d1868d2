"""Tools that a role may call: typed calls in the reply, results in the transcript.

A reply with ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` (the form that Hermes- and Qwen-style chat
templates use) is a call: the tool runs, its result is shown to the same agent, and it acts again. What its successors
see is its last reply, the one without a call. A wrong call (unknown tool, wrong arguments) is answered with an error
text; a tool that breaks is a fault, and the episode is not graded.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from marft_envs.arguments import check_callable, check_nonempty

_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


class ToolFault(RuntimeError):
    """A tool broke while it ran: no fault of the agent, so the episode must not be graded."""


@dataclass(frozen=True)
class Tool:
    """One tool. parameters: name to type, "string", "integer", "number" or "boolean"; all are required.

    function: called with these as keywords; what it returns is shown as text. It raises ValueError to tell the agent
    that the arguments make no sense; anything else that it raises is a fault.
    """

    name: str
    description: str
    parameters: Mapping[str, str]
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        check_nonempty("Tool name", self.name)
        if not isinstance(self.description, str):
            got = type(self.description).__name__
            raise TypeError(f"Tool description={self.description!r:.80}: got {got}, expected a text")
        for parameter in self.parameters:
            check_nonempty("Tool parameter", parameter)
        wrong = {k: v for k, v in self.parameters.items() if v not in _TYPES}
        if wrong:
            raise ValueError(f"tool {self.name!r} parameters {wrong}: expected types {', '.join(_TYPES)}")
        check_callable("Tool function", self.function, tuple(self.parameters), keywords=True, classes=True)

    def run(self, arguments: Any) -> str:
        """The result as text, or "error: ..." for arguments that do not fit. Raises ToolFault if the tool breaks."""
        problem = self._misfit(arguments)
        if problem:
            return f"error: {problem}"
        try:
            return str(self.function(**arguments))
        except ValueError as refusal:
            return f"error: {refusal}"
        except Exception as fault:  # the boundary of a tool: a fault, never a wrong answer
            raise ToolFault(f"tool {self.name}: {type(fault).__name__}: {fault}") from fault

    def _misfit(self, arguments: Any) -> str:
        if not isinstance(arguments, dict) or set(arguments) != set(self.parameters):
            return f"{self.name} takes the arguments {dict(self.parameters)}"
        for name, kind in self.parameters.items():
            value = arguments[name]
            if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
                return f"{self.name}: {name} must be of type {kind}"
        return ""


def find_call(text: str) -> str | None:
    """The body of the first tool call in a reply, None when there is none."""
    _, _, rest = text.partition("<tool_call>")  # a regular expression would look for the end from every beginning
    body, closed, _ = rest.partition("</tool_call>")
    return body if closed else None


def answer_call(body: str, tools: tuple[Tool, ...]) -> str:
    """The result of a call's body as text; errors of form are told to the agent. Raises ToolFault."""
    try:
        call = json.loads(body)
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 'error: a call is written {"name": ..., "arguments": {...}} in JSON'
    for tool in tools:
        if tool.name == name:
            return tool.run(arguments)
    return f"error: there is no tool {name!r:.80}; there are {', '.join(t.name for t in tools)}"


def describe(tools: tuple[Tool, ...]) -> str:
    """What the role's instructions say of its tools."""
    lines = ['You may call a tool by writing <tool_call>{"name": ..., "arguments": {...}}</tool_call>. Tools:']
    for tool in tools:
        parameters = ", ".join(f"{name}: {kind}" for name, kind in tool.parameters.items())
        lines.append(f"- {tool.name}({parameters}): {tool.description}")
    return "\n".join(lines)


# ---- ready-made tools

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_LONGEST, _MOST_DIGITS = 200, 60


def calculate(expression: str) -> str:
    """The exact value of numbers, + - * / and brackets; never ``eval``. ValueError for anything else."""
    if len(expression) > _LONGEST:
        raise ValueError(f"expression has {len(expression)} characters, at most {_LONGEST} are allowed")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {expression!r}; write numbers, + - * / and brackets") from None
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    return str(value)


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = Fraction(str(node.value))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = -_value(node.operand) if isinstance(node.op, ast.USub) else _value(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    else:
        raise ValueError("only numbers, + - * / and brackets are allowed")
    if max(abs(value.numerator), value.denominator) >= 10**_MOST_DIGITS:
        raise ValueError(f"a number of more than {_MOST_DIGITS} digits came up")
    return value


CALCULATOR = Tool(
    "calculator",
    "the exact value of an expression of numbers, + - * / and brackets",
    {"expression": "string"},
    calculate,
)
TOOLS = {tool.name: tool for tool in (CALCULATOR,)}
