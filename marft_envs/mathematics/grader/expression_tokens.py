"""Tokens of an expression in LaTeX or plain notation: numbers, symbols, functions and marks."""

from __future__ import annotations

import re
from typing import Any

Node = tuple[Any, ...]
MAX_TOKENS = 400


class Unreadable(ValueError):
    """The string is not an expression of this grammar."""


class TooDeep(Unreadable):
    """The expression exceeds MAX_TOKENS, MAX_DEPTH or MAX_NUMBER."""


_TOKEN = re.compile(
    r"\s*(?:(?P<num>\d+(?:\.\d*)?|\.\d+)|\\(?P<command>[A-Za-z]+)|\\(?P<escaped>.)|(?P<letters>[A-Za-z]+)"
    r"|(?P<mark>\*\*|[^\s\w]|[^\W\d_]|_))",
    re.DOTALL,
)
_FUNCTION_NAMES = "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln exp log lg sqrt abs floor ceil"
OTHER_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
CALLS = frozenset(["max", "min", "gcd", "lcm"])
_FUNCTIONS = frozenset([*_FUNCTION_NAMES.split(), *OTHER_NAMES, *CALLS])
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell"
)
_GREEK = frozenset(_GREEK_NAMES.split())
_GREEK_LETTERS = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "θ": "theta", "λ": "lambda", "μ": "mu",
                  "φ": "phi", "ω": "omega", "σ": "sigma", "τ": "tau", "ρ": "rho"}  # fmt: skip
_TEXT_COMMANDS = frozenset(["text", "operatorname", "mathrm", "mathbf", "mathit", "mathsf", "rm", "bf"])
_TEXT_ARGUMENT = re.compile(r"\s*(?:\{\s*([A-Za-z]+)\s*\}|([A-Za-z])(?![A-Za-z]))")
_PRODUCT_LETTERS = re.compile(r"[A-Za-z]{1,2}|[abcd]{3}|[klmn]{3}|[pqrst]{3}|[uvwxyz]{3}")
NAMED = {"pi": ("const", "pi"), "infty": ("inf",), "infinity": ("inf",), "imath": ("const", "i")}


def is_word(letters: str) -> bool:
    """Return whether a run of letters is a word, not a product.

    One or two letters, three that are often used together as variables (xyz, klm), and three in alphabetical order
    are products.
    """
    return not (
        _PRODUCT_LETTERS.fullmatch(letters)
        or (len(letters) == 3 and list(letters.casefold()) == sorted(letters.casefold()))
    )


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Return the tokens, each (kind, string) with kind "num", "sym", "fn" or "op"."""
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise Unreadable(f"cannot read {text[position : position + 10]!r}")
        position = match.end()
        kind, word = str(match.lastgroup), str(match[match.lastgroup or 0])
        if kind == "command" and word in _TEXT_COMMANDS:
            position = _read_text(text, position, tokens)
        elif kind == "letters":
            tokens += _letters(word)
        else:
            tokens.append(_token(kind, word))
        if len(tokens) > MAX_TOKENS:
            raise TooDeep(f"more than {MAX_TOKENS} symbols")
    return tokens


def _token(kind: str, word: str) -> tuple[str, str]:
    if kind == "num":
        return "num", word
    if kind == "command":
        return ("fn", word) if word in _FUNCTIONS else ("sym" if word in _GREEK or word in NAMED else "op", "\\" + word)
    if kind == "escaped":
        return "op", "\\" + word
    if word == "π":
        return "sym", "\\pi"
    if word == "∞":
        return "sym", "\\infty"
    if word == "√":
        return "fn", "sqrt"
    return ("sym", "\\" + _GREEK_LETTERS[word]) if word in _GREEK_LETTERS else ("op", word)


def _letters(word: str) -> list[tuple[str, str]]:
    """Return the tokens of a run of letters: one function or constant, or a product of single letters."""
    if word in _FUNCTIONS:
        return [("fn", word)]
    if word.lower() in NAMED:
        return [("sym", "\\" + word.lower())]
    if is_word(word):
        raise Unreadable(f"the word {word[:20]!r}")
    return [("sym", letter) for letter in word]


def _read_text(text: str, position: int, tokens: list[tuple[str, str]]) -> int:
    r"""Read the argument of \text or \mathrm: one letter or a function; return the position after it."""
    match = _TEXT_ARGUMENT.match(text, position)
    word = match[1] or match[2] if match else ""
    if match is None or (len(word) > 1 and word not in _FUNCTIONS):
        raise Unreadable("words")
    tokens.append(("fn", word) if word in _FUNCTIONS else ("sym", word))
    return match.end()
