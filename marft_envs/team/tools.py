"""Tools that an agent may call, and the format of the calls.

A reply that contains ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, the format of Hermes and Qwen chat
templates, is a tool call: the tool runs, the same agent reads the result, and it acts again. Other agents see only its
last reply, the one without a call. An invalid call (unknown tool, wrong arguments) returns an error message to the
agent. A tool that fails raises ``ToolFault``, and the episode is not graded.
"""

from __future__ import annotations

import ast
import inspect
import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from marft_envs.arguments import check_callable, check_nonempty
from marft_envs.task import PublicProblem

_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


_PROBLEM = "problem"


class ToolFault(RuntimeError):
    """A tool failed while it ran. The agent is not to blame, so the episode must not be graded."""


@dataclass(frozen=True)
class Tool:
    """A function that an agent may call.

    Attributes:
        name: The name in a call.
        description: One line for the agent.
        parameters: The type of each parameter: "string", "integer", "number" or "boolean". All are required.
        function: Called with the parameters as keyword arguments. The agent reads ``str`` of the result. ValueError
            reports bad arguments to the agent; any other exception is a fault. If it has a further argument named
            ``problem``, it also gets the problem as a ``PublicProblem``: as the calling agent sees it, without the
            gold, the notes, and the private parts of other agents.
        reads_problem: Whether the function gets the problem.

    Raises:
        TypeError, ValueError: A field is wrong; the message names it.
    """

    name: str
    description: str
    parameters: Mapping[str, str]
    function: Callable[..., Any]
    reads_problem: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        check_nonempty("Tool name", self.name)
        if not isinstance(self.description, str):
            got = type(self.description).__name__
            raise TypeError(f"Tool description={self.description!r:.80}: got {got}, expected a string")
        for parameter in self.parameters:
            check_nonempty("Tool parameter", parameter)
        wrong = {k: v for k, v in self.parameters.items() if v not in _TYPES}
        if wrong:
            raise ValueError(f"tool {self.name!r} parameters {wrong}: expected types {', '.join(_TYPES)}")
        reads_problem = _PROBLEM not in self.parameters and _PROBLEM in _argument_names(self.function)
        object.__setattr__(self, "reads_problem", reads_problem)
        expected = (*self.parameters, *([_PROBLEM] if reads_problem else []))
        check_callable("Tool function", self.function, expected, keywords=True, classes=True)

    def run(self, arguments: Any, problem: PublicProblem) -> str:
        """Return the result as a string, or "error: ..." for invalid arguments.

        Args:
            arguments: The arguments of the call, as the agent wrote them.
            problem: The problem, as the agent sees it.

        Raises:
            ToolFault: The function raised an exception other than ValueError.
        """
        wrong = self._argument_error(arguments)
        if wrong:
            return f"error: {wrong}"
        try:
            return str(self.function(**arguments, **({_PROBLEM: problem} if self.reads_problem else {})))
        except ValueError as refusal:
            return f"error: {refusal}"
        except Exception as fault:  # a failing tool is a fault, not a wrong answer
            raise ToolFault(f"tool {self.name}: {type(fault).__name__}: {fault}") from fault

    def _argument_error(self, arguments: Any) -> str:
        """Return a message for the agent, "" if the arguments match the parameters."""
        if not isinstance(arguments, dict) or set(arguments) != set(self.parameters):
            return f"call {self.name} with exactly these arguments: {_signature(self)}"
        for name, kind in self.parameters.items():
            value = arguments[name]
            if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
                return f"the argument {name} of {self.name} must be of type {kind}"
        return ""


def _argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's arguments; nothing for a built-in function without a signature."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (ValueError, TypeError):
        return ()


def find_call(text: str) -> str | None:
    """Return the content of the first tool call in a reply, None if there is none."""
    # str.partition takes linear time; a regular expression would search for the end tag from every start tag.
    _, _, rest = text.partition("<tool_call>")
    body, closed, _ = rest.partition("</tool_call>")
    return body if closed else None


def answer_call(body: str, tools: tuple[Tool, ...], problem: PublicProblem) -> str:
    """Run a tool call and return the string that the agent reads.

    Args:
        body: The content of the call, as ``find_call`` returns it.
        tools: The tools of the agent.
        problem: The problem, as the agent sees it.

    Returns:
        The result of the tool, or "error: ..." for an invalid call.

    Raises:
        ToolFault: The tool failed.
    """
    try:
        call = json.loads(body)
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 'error: write the call as JSON: {"name": ..., "arguments": {...}}'
    for tool in tools:
        if tool.name == name:
            return tool.run(arguments, problem)
    return f"error: there is no tool {name!r:.80}. Your tools are: {', '.join(t.name for t in tools)}"


def describe(tools: tuple[Tool, ...]) -> str:
    """Return the description of ``tools`` for the agent's system message."""
    lines = [
        'To call a tool, write <tool_call>{"name": ..., "arguments": {...}}</tool_call>. You then read the result and '
        "act again. Your tools:"
    ]
    return "\n".join([*lines, *(f"- {_signature(tool)}: {tool.description}" for tool in tools)])


def _signature(tool: Tool) -> str:
    return f"{tool.name}({', '.join(f'{name}: {kind}' for name, kind in tool.parameters.items())})"


# ---- ready-made tools

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_MAX_CHARS, _MAX_DIGITS = 200, 60


def calculate(expression: str) -> str:
    """Return the exact value of an arithmetic expression, as an integer or a fraction.

    The expression is parsed, never passed to ``eval``.

    Args:
        expression: Numbers, + - * / and parentheses, at most 200 characters.

    Raises:
        ValueError: The expression contains anything else, divides by zero, or has a number of more than 60 digits.
    """
    if len(expression) > _MAX_CHARS:
        raise ValueError(f"the expression has {len(expression)} characters; at most {_MAX_CHARS} are allowed")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {expression!r}; use only numbers, + - * / and parentheses") from None
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    return str(value)


def _value(node: ast.expr) -> Fraction:
    """Return the exact value of a parsed expression."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = Fraction(str(node.value))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = -_value(node.operand) if isinstance(node.op, ast.USub) else _value(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    else:
        raise ValueError("use only numbers, + - * / and parentheses")
    if max(abs(value.numerator), value.denominator) >= 10**_MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return value


CALCULATOR = Tool(
    "calculator",
    "returns the exact value of an expression with numbers, + - * / and parentheses",
    {"expression": "string"},
    calculate,
)
TOOLS = {tool.name: tool for tool in (CALCULATOR,)}
