r"""Parser of one expression, in LaTeX or plain notation, into a tree: recursive descent in linear time.

A node is a tuple of its kind and its parts.

| node | meaning |
|---|---|
| ("num", Fraction) ("sym", name) ("const", "pi" "e" "i") | atoms |
| ("add", a, b) ("mul", a, b) ("div", a, b) ("neg", a) ("pow", a, b) | arithmetic |
| ("root", n, a) ("fn", name, a) ("log", base, a) ("fact", a) ("fact2", a) ("binom", n, k) | functions; fact2 is !! |
| ("call", "max" "min" "gcd" "lcm" "mod", a, b, ...) | functions of several arguments; mod is the remainder |
| ("inf",) | infinity |
| ("deg", a) ("pct", a) | a degree or percent mark, whose value depends on the policy |

A string that is not read to its end raises ``Unreadable``; nothing is skipped. A word is never a product of letters.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from marft_envs.mathematics.grader.expression_tokens import (
    CALLS,
    MAX_TOKENS,
    NAMED,
    OTHER_NAMES,
    Node,
    TooDeep,
    Unreadable,
    is_word,
    tokens_of,
)

MAX_DEPTH = 60
MAX_NUMBER = 600  # digits; int() accepts them whatever the value of sys.set_int_max_str_digits


_TIMES = frozenset(["\\cdot", "\\times", "*", "×", "·", "⋅", "\\ast", "∗"])
_OVER = frozenset(["/", "\\div", "÷", "∕"])
_REMAINDER = frozenset(["\\bmod", "\\mod"])
_PAIRS = {"(": ")", "[": "]", "{": "}", "|": "|", "\\lvert": "\\rvert", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil",
          "⌊": "⌋", "⌈": "⌉", "\\{": "\\}"}  # fmt: skip
_WRAPPED = {"|": "abs", "\\lvert": "abs", "\\lfloor": "floor", "⌊": "floor", "\\lceil": "ceil", "⌈": "ceil"}


@lru_cache(maxsize=4096)
def parse(text: str, log_base: str = "e") -> Node:
    """Parse a normalized string (see ``normalization.normalize``).

    Args:
        text: The expression.
        log_base: The base of ``log`` without a subscript: "e" or "10".

    Returns:
        The tree.

    Raises:
        Unreadable: The string is not an expression of this grammar.
        TooDeep: The expression exceeds MAX_TOKENS, MAX_DEPTH or MAX_NUMBER.
    """
    return _Parser(tokens_of(text), log_base).parse_all()


class _Parser:
    """Recursive descent over the tokens; each method reads one construct and advances ``at`` past it."""

    def __init__(self, tokens: list[tuple[str, str]], log_base: str) -> None:
        self.tokens = [*tokens, ("end", "")]
        self.at = 0
        self.depth = 0
        self.log_base = log_base
        self.bars = 0  # the number of | that are open in this group; inside one, a further | closes it

    def parse_all(self) -> Node:
        node = self.sum()
        if self.tokens[self.at][0] != "end":
            raise Unreadable(f"unexpected {self.tokens[self.at][1]!r}")
        return node

    @property
    def word(self) -> str:
        """The string of the current token, "" for a number."""
        return self.tokens[self.at][1] if self.tokens[self.at][0] != "num" else ""

    def accept(self, *words: str) -> bool:
        if self.tokens[self.at][0] == "op" and self.tokens[self.at][1] in words:
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise Unreadable(f"{word!r} is missing")

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep(f"deeper than {MAX_DEPTH}")
        node = self.signed()
        while self.tokens[self.at][0] == "op" and self.word in "+-" and self.word:
            minus = self.word == "-"
            self.at += 1
            right = self.signed()
            node = ("add", node, ("neg", right) if minus else right)
        self.depth -= 1
        return node

    def signed(self) -> Node:
        """Read a product with at most one sign before it."""
        if self.accept("-"):
            return ("neg", self.product())
        self.accept("+")
        return self.product()

    def product(self) -> Node:
        node = self.factor()
        while True:
            if self.tokens[self.at][0] == "op" and self.word in _TIMES:
                self.at += 1
                node = ("mul", node, self.signed_factor())
            elif self.tokens[self.at][0] == "op" and self.word in _OVER:
                self.at += 1
                node = ("div", node, self.signed_factor())
            elif self.tokens[self.at][0] == "op" and self.word in _REMAINDER:
                self.at += 1
                node = ("call", "mod", node, self.signed_factor())
            elif self.starts_factor():
                node = self.neighbours(node)
            else:
                return node

    def neighbours(self, node: Node) -> Node:
        r"""Read a factor that follows ``node`` without an operator, as a product.

        A number after a factor (2 3, x 3) is ambiguous and unreadable, except after a closing bracket, and as the base
        of a power after a letter (n 2^n).
        """
        if self.tokens[self.at][0] == "num" and not self.number_may_follow():
            raise Unreadable("a number follows a factor without an operator")
        return ("mul", node, self.factor())

    def number_may_follow(self) -> bool:
        """Return whether the number at the current position may follow the previous token without an operator."""
        kind, word = self.tokens[self.at - 1]
        return word in (")", "}", "]") or (kind == "sym" and self.tokens[self.at + 1] in (("op", "^"), ("op", "**")))

    def signed_factor(self) -> Node:
        return ("neg", self.factor()) if self.accept("-") else self.factor()

    def starts_factor(self) -> bool:
        kind, word = self.tokens[self.at]
        if kind in ("num", "sym", "fn"):
            return True
        if word in ("|", "\\lvert"):
            return not (word == "|" and self.bars)  # inside |...| the next | closes
        return kind == "op" and (word in ("\\frac", "\\binom") or (word in _PAIRS and word != "\\{"))

    def factor(self) -> Node:
        r"""Read an atom with its factorials, marks and exponent, or a mixed number: 4\frac{2}{3} is 4 + 2/3."""
        if self.tokens[self.at][0] == "num" and self.fraction_follows():
            return self.mixed_number(self.atom())
        node = self.postfix(self.atom())
        if self.accept("^", "**"):
            if self.degree_mark():
                return self.postfix(("deg", node))
            node = self.postfix(("pow", node, self.exponent()))
        return node

    def fraction_follows(self) -> bool:
        r"""Return whether \frac, alone or in braces, follows the current token."""
        after = [word for kind, word in self.tokens[self.at + 1 : self.at + 3] if kind == "op"]
        return after[:1] == ["\\frac"] or after == ["{", "\\frac"]

    def mixed_number(self, whole: Node) -> Node:
        """Read the fraction after a number: its sum with an integer if it is a proper fraction, else the product."""
        right = self.factor()
        is_proper = right[0] == "div" and right[1][0] == right[2][0] == "num" and 0 < right[1][1] < right[2][1]
        return ("add" if is_proper and whole[1].denominator == 1 else "mul", whole, right)

    def degree_mark(self) -> bool:
        r"""Read \circ or {\circ} in an exponent, if it is there."""
        for marks in (("{", "\\circ", "}"), ("\\circ",)):
            if tuple(word for _, word in self.tokens[self.at : self.at + len(marks)]) == marks:
                self.at += len(marks)
                return True
        return False

    def exponent(self) -> Node:
        if self.accept("-"):
            return ("neg", self.exponent())
        if self.tokens[self.at][0] == "op" and self.word == "{":
            return self.group()
        node = self.atom()
        return ("pow", node, self.exponent()) if self.accept("^", "**") else node  # 2^3^2 is 2^(3^2)

    def postfix(self, node: Node) -> Node:
        while self.tokens[self.at][0] == "op":
            if self.accept("!"):
                node = ("fact2" if self.accept("!") else "fact", node)
                if self.word == "!":
                    raise Unreadable("a triple factorial")
            elif self.accept("%", "\\%"):
                if node[0] == "pct":
                    raise Unreadable("two percent signs")
                node = ("pct", node)
            elif self.accept("°", "\\degree", "\\degrees"):
                node = ("deg", node)
            else:
                break
        return node

    def atom(self) -> Node:
        kind, word = self.tokens[self.at]
        if kind == "num":
            if len(word) > MAX_NUMBER:
                raise TooDeep(f"a number of more than {MAX_NUMBER} digits")
            self.at += 1
            return ("num", Fraction("0" + word if word.startswith(".") else word))
        if kind == "sym":
            self.at += 1
            return self.symbol(word)
        if kind == "fn":
            self.at += 1
            return self.function(word)
        if word in ("\\frac", "\\binom"):
            self.at += 1
            top, bottom = self.argument(), self.argument()
            return ("div" if word == "\\frac" else "binom", top, bottom)
        if word in _PAIRS:
            return self.group()
        raise Unreadable(f"unexpected {word!r}")

    def group(self) -> Node:
        """Read an expression in brackets or bars."""
        opening = self.word
        self.at += 1
        # Other brackets start a new group, in which a | opens again: |(|x| - 1)|.
        self.bars += opening == "|"
        bars, self.bars = self.bars, self.bars if opening == "|" else 0
        node = self.sum()
        self.expect(_PAIRS[opening])
        self.bars = bars - (opening == "|")
        if opening == "\\{":
            raise Unreadable("a set is not an expression")
        return ("fn", _WRAPPED[opening], node) if opening in _WRAPPED else node

    def argument(self) -> Node:
        r"""Read an argument of a command: {...}, or one digit or letter as in \frac12 and \sqrt2."""
        kind, word = self.tokens[self.at]
        if kind == "op" and word == "{":
            return self.group()
        # TeX takes one digit as an argument, so the token 12 becomes 1 and 2.
        if kind == "num" and len(word) > 1 and word.isdigit():
            self.tokens[self.at : self.at + 1] = [("num", word[0]), ("num", word[1:])]
        return self.atom()

    def symbol(self, word: str) -> Node:
        named = NAMED.get(word.lstrip("\\")) if word.startswith("\\") else None
        if word in ("e", "i") or named:
            return named or ("const", word)
        if word in ("f", "g") and self.tokens[self.at] == ("op", "("):  # f(2x) is no product, and differs from 2f(x)
            return ("sym", f"{word}({self.group()!r})")
        if self.accept("_"):
            word += "_" + self.subscript()
        primes = 0
        while self.accept("'", "′"):
            primes += 1
        return ("sym", word + "'" * primes)

    def subscript(self) -> str:
        if not self.accept("{"):
            kind, word = self.tokens[self.at]
            if kind == "end":
                raise Unreadable("an empty subscript")
            self.at += 1
            return word
        start = self.at
        while self.tokens[self.at][1] not in ("}", "{", "") or self.tokens[self.at][0] == "num":
            self.at += 1
        name = "".join(word for _, word in self.tokens[start : self.at])
        self.expect("}")
        return name

    def function(self, name: str) -> Node:
        name = OTHER_NAMES.get(name, name)
        if name == "sqrt":
            return self.root()
        if name in CALLS:
            return self.call(name)
        base: Node | None = None
        if name in ("log", "lg", "ln"):
            base = {"ln": ("const", "e"), "lg": ("num", Fraction(10))}.get(name)
            if self.accept("_"):
                base = self.argument()
            elif base is None:
                base = ("const", "e") if self.log_base == "e" else ("num", Fraction(10))
        power = self.exponent() if self.accept("^") else None
        inside = self.function_argument()
        if power == ("neg", ("num", Fraction(1))) and name in ("sin", "cos", "tan"):
            return ("fn", "arc" + name, inside)
        node: Node = ("fn", name, inside) if base is None else ("log", base, inside)
        return node if power is None else ("pow", node, power)

    def call(self, name: str) -> Node:
        """Read the arguments of a function of several arguments."""
        closing = next((pair[1] for pair in (("(", ")"), ("\\{", "\\}")) if self.accept(pair[0])), None)
        if closing is None:
            raise Unreadable(f"the arguments of {name} are missing")
        arguments = [self.sum()]
        while self.accept(","):
            arguments.append(self.sum())
        self.expect(closing)
        return ("call", name, *arguments)

    def root(self) -> Node:
        index: Node = ("num", Fraction(2))
        if self.accept("["):
            index = self.sum()
            self.expect("]")
        return ("root", index, self.argument())

    def function_argument(self) -> Node:
        """Read the argument of a function: (...) alone, or the product up to the next function.

        sin 2x cos x is sin(2x) cos(x), sin(x) y is a product with y, and sin pi/6 is sin(pi / 6).
        """
        if self.word in ("(", "[", "{", "|", "\\lvert") and self.tokens[self.at][0] == "op":
            return self.group()
        node = self.signed_factor()
        while self.tokens[self.at][0] != "fn" and self.starts_factor() and self.word not in ("(", "["):
            node = self.neighbours(node)
        if node == ("const", "pi") and self.tokens[self.at + 1 : self.at + 2] and self.tokens[self.at + 1][0] == "num":
            return ("div", node, self.factor()) if self.accept("/") else node
        return node


__all__ = ["MAX_TOKENS", "Node", "TooDeep", "Unreadable", "is_word", "parse"]
