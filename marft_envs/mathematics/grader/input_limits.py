r"""Limits on the strings that are sent to the symbolic worker, checked before anything is computed.

The worker has a time limit of its own. These limits save that time for strings that are certain to exceed it, such as
replies that are written to waste it. A string is too costly when it is longer than MAX_CHARS, is nested deeper than
MAX_NESTING, or contains a tower of powers, a number of more than 12 digits, a power, factorial or binomial of more
than three digits, or more than two sums, integrals and limits.
"""

from __future__ import annotations

import re

MAX_CHARS = 500
MAX_NESTING = 8

_SYMBOLIC = re.compile(
    r"\\(?:sum|prod|int|iint|oint|lim|det|max|min|gcd|lcm|bmod|pmod|mod|cap|mathbb|vec|hat|overline|begin|sup|inf|partial"
    r"|cdots|ldots|dots)(?![A-Za-z])|[<>]|\\(?:le|ge|lt|gt|ne|leq|geq|neq|leqslant|geqslant)(?![A-Za-z])"
)
_UNDERSTOOD_NAMES = (
    "sum prod int iint oint lim to rightarrow infty frac sqrt binom pi cdot times div pm mp le ge lt gt leq geq "
    "leqslant geqslant ne neq in cup emptyset varnothing begin end cr sin cos tan cot sec csc arcsin arccos arctan "
    "sinh cosh tanh ln log lg exp alpha beta gamma delta epsilon theta lambda mu rho sigma tau phi varphi omega lfloor "
    "rfloor lceil rceil lvert rvert mathbb circ quad"
)
_UNDERSTOOD = frozenset(_UNDERSTOOD_NAMES.split())
"""The commands that math-verify reads as they are meant. It drops or misreads others, such as \\gcd and \\partial."""
_MISREAD = re.compile(r"['′:;~@#?\"`]|\\\\|\|\||_(?!\s?(?:\{|[A-Za-z\d]))")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_FOREIGN_WORDS = "input include write read openin openout def let newcommand csname catcode loop url href"
_FOREIGN = frozenset(_FOREIGN_WORDS.split())
_BIG_POWER = re.compile(
    r"\^\s?\{?\s?-?(?:\d{4,}|10\s?\^\s?\{?\s?(?:[4-9]|\d\d))|\d{4,}\s?!|!\s?!|\\binom\s?\{?\s?\d{4,}"
)
_TOWER = re.compile(r"\^\s?\{[^{}]*\^\s?\{?[^{}]*\^")
_LONG_NUMBER = re.compile(r"\d{13,}")
_HEAVY = re.compile(r"\\(?:sum|prod|i*nt|oint|lim)(?![A-Za-z])")


def wants_worker(text: str) -> bool:
    r"""Return whether a string that no other layer can read may be mathematics that the worker can read.

    Commands that access files or define macros (\input, \def) are refused.
    """
    return bool(_SYMBOLIC.search(text)) and _FOREIGN.isdisjoint(_COMMAND.findall(text))


def is_misread(text: str) -> bool:
    """Return whether a string has a command or mark that math-verify may drop or misread."""
    return not _UNDERSTOOD.issuperset(_COMMAND.findall(text)) or _MISREAD.search(text) is not None


def too_costly(text: str) -> str:
    """Return the reason why a string is too costly for the worker, or "" if it is not."""
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    depth = deepest = 0
    for character in text:
        depth += (character in "{([") - (character in "})]")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        return f"nested deeper than {MAX_NESTING}"
    if _TOWER.search(text) or text.count("^") > 20:
        return "a tower of powers"
    if _BIG_POWER.search(text) or _LONG_NUMBER.search(text):
        return "a large number, power, factorial or binomial"
    if len(_HEAVY.findall(text)) > 2:
        return "more than two sums, integrals or limits"
    return ""
