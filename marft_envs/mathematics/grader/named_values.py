r"""Names of values: which left sides of an equation only name the value on the right.

In m + n = 37, |AB| = 6, \text{Area} = 12 and P(X > 3) = 1/6 the answer is the right side. In 2x = 6 and x + 1 = 5 it
is not: an expression in one unknown, or with a constant term, is an equation that remains to be solved.

A *label* can only be a name: a letter with a subscript, a function value, a length, an angle, a probability, or words
from a closed list. An *expression* in two or more letters, such as m + n, is a name in an answer. In a gold it is not,
because x + y = 1 may be a line, which 1 does not answer.
"""

from __future__ import annotations

import re
from functools import lru_cache

from marft_envs.mathematics.grader.normalization import normalize, unwrap_text
from marft_envs.mathematics.grader.parse_answer import number_in, tree_of
from marft_envs.mathematics.grader.tree_value import Node, symbols

MAX_CHARS = 120
_CONSTANTS = frozenset(["e", "i", r"\pi", r"\infty", r"\text{e}", r"\text{i}"])

_GROUP = r"(?:[^{}]|\{[^{}]*\})"
_INDEX = rf"_(?:\w|\\[A-Za-z]+|\{{{_GROUP}{{1,40}}\}})"
_SCRIPT = rf"(?:{_INDEX}|\^(?:\d|\{{\(?-?\d{{1,2}}\)?\}}|\\(?:ast|star|prime|circ)|[*T+])|'){{0,3}}"
_SUBSCRIPT = rf"(?:{_INDEX}|\^(?:\{{\(\d\)\}}|\\(?:ast|star|prime|circ)|[*+])|'){{0,3}}"
_ACCENTS = r"\\(?:vec|hat|bar|tilde|dot|overline|overrightarrow|widehat|mathbb|mathcal|mathscr|mathfrak)"
_GREEK = r"\\(?:ell|[A-Za-z]?[a-z]{1,7}a|mu|nu|xi|pi|rho|tau|(?:var)?phi|chi|psi|Phi|Psi|Pi)(?![A-Za-z])"
_ACCENTED = rf"{_ACCENTS} ?(?:\{{ ?[A-Za-z]{{1,4}} ?\}}|[A-Za-z])"
_LETTER = rf"(?:[A-Za-z]|{_GREEK}|\\text\{{ ?[A-Za-z] ?\}}|{_ACCENTED})"
_INSIDE = r"(?:[^()\[\]]|\([^()\[\]]*\)|\[[^()\[\]]*\])"
_ARGUMENTS = rf" ?(?:\({_INSIDE}{{1,60}}\)|\[{_INSIDE}{{1,60}}\])"
_FUNCTION = (
    r"(?:[fghuvwpqFGHPEVNQTSKMRL]|\\(?:Pr|phi|varphi|psi|sigma|tau|mu|pi|Phi|Gamma|zeta)(?![A-Za-z])"
    r"|\\(?:mathbb|text|mathcal|operatorname) ?\{ ?[A-Za-z]{1,8} ?\})"
)
_NAMED_OPERATORS = "lcm|gcd|rank|tr|Var|Cov|ord|deg|dim|max|min|sgn|dist|Area|area|Vol|vol|Re|Im"
_OPERATOR = (
    r"\\(?:(?:deg|dim|gcd|det|max|min|sup|inf|arg|ker|Pr|Re|Im)(?![A-Za-z])|operatorname ?\{ ?[A-Za-z]{1,8} ?\}"
    rf"|text\{{ ?(?:{_NAMED_OPERATORS}) ?\}})"
)
_POINTS = r"(?:[A-Z]'?(?:_\d|_\{\d{1,2}\})?){1,4}"
_SIDE = rf"(?:{_POINTS}|{_ACCENTED})"
_PART = rf"(?:{_POINTS}|{_LETTER}_{_GROUP}{{1,12}})"
_SINE = r"(?:sin|cos|tan|cot|sec|csc|arc\w*|sinh|cosh|tanh|ln|log|lg|exp|sqrt|abs|floor|ceil)\b"
_LABELS = [
    rf"(?!{_SINE})[A-Za-z]+'?(?:_\w|_\{{\w{{1,8}}\}})?(?:\([A-Za-z\d]\))?",  # x, a_{12}, f(x), eggs
    rf"{_LETTER}{_SUBSCRIPT}",
    r"\\sigma ?\^ ?\{?2\}?",
    rf"{_FUNCTION}{_SCRIPT}{_ARGUMENTS}",  # P(X > 3), f^{-1}(2), \mathbb{E}[X]
    rf"\({_LETTER}(?: ?\\circ ?{_LETTER}){{1,3}}\){_ARGUMENTS}",  # (f \circ g)(2)
    rf"{_OPERATOR}{_SCRIPT} ?(?:{_ARGUMENTS}|\{{? ?{_LETTER}{_SCRIPT} ?\}}?)?(?:{_ARGUMENTS})?",  # \deg P, \max f(x)
    rf"(?:m ?)?\\(?:measured|spherical)?angle ?\{{? ?(?:{_POINTS}|[a-z\d]) ?\}}?",
    rf"\[(?:{_POINTS}){{1,2}}\]",  # [ABC], an area
    rf"(?:{_POINTS}|\\overline ?\{{ ?{_POINTS} ?\}})(?:\^ ?\{{?[23]\}}?)?",  # AB^2
    rf"{_SIDE}(?: ?\\(?:cdot|times) ?{_SIDE})+",  # \vec a \cdot \vec b
    rf"\\frac ?\{{ ?{_PART} ?\}} ?\{{ ?{_PART} ?\}}",  # \frac{AB}{CD}
    rf"\\?# ?{_LETTER}",
]
_LABEL = re.compile("|".join(f"(?:{label})" for label in _LABELS))
_LENGTH = re.compile(
    rf"\| ?(?:{_POINTS}|\\(?:overline|vec|overrightarrow) ?\{{? ?[A-Za-z]{{1,3}} ?\}}?|\\triangle ?{_POINTS}) ?\|"
    r"(?:\^ ?\{?2\}?)?"
)
_SHORT = r"[^|=<>]{1,60}"
_BARS = re.compile(
    rf"(?:\| ?(?P<bars>{_SHORT}) ?\||\\(?:lvert|Vert) ?{_SHORT}\\(?:rvert|Vert)|\\\|{_SHORT}\\\|"
    rf"|\\lfloor{_SHORT}\\rfloor|\\lceil{_SHORT}\\rceil)(?:\^ ?\{{?2\}}?)?"
)
_UNKNOWN = re.compile(r"-?[a-yA-Y](?:_\w)?")
_TRIGONOMETRIC = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc)(?: ?\^ ?\{?[23]\}?)? ?"
    rf"(?:\\angle ?{_POINTS}|\(?{_LETTER}{_SCRIPT}\)?|\(?{_LETTER} ?[-+] ?{_LETTER}\)?|{_POINTS})"
)

_NOUNS = (
    "ans area perimeter volume surface length width height depth sum product total number count probability chance "
    "answer cost price distance speed velocity time age ages value values minimum maximum min max average mean "
    "median mode range remainder quotient difference ratio radius diameter circumference angle slope degree "
    "degrees side sides profit loss tax amount percent percentage rate weight mass result solution expected "
    "variance score money change days hours minutes seconds years months weeks ways people students apples least "
    "greatest smallest largest shortest longest term coefficient discount interest salary income population "
    "temperature energy force power work solutions triangle square rectangle circle sector trapezoid "
    "parallelogram cube sphere cone cylinder prism pyramid polygon shaded region base edge edges diagonal "
    "hypotenuse altitude chord arc final lateral new original"
)
_FUNCTION_WORDS = "of the a an in for each per to by at and from with is are was"
_KNOWN_WORDS = frozenset(f"{_NOUNS} {_FUNCTION_WORDS}".split())
_SEGMENT = re.compile(r"\|?(?:\\overline)?([A-Z])([A-Z])\|?")
_NO_NAMES = (
    "not no nor or and but wrong incorrect false never none half third quarter twice double triple minus plus "
    "times less more than about over under if then so else unless either neither neg negative except without "
    "undefined infinity zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion root square cube squared cubed isn isnt"
)
_NEVER_NAMES = frozenset(_NO_NAMES.split())
_PRODUCT = re.compile(r"[a-z]{2,3}")
_WORDS = re.compile(r"[A-Za-z]+(?:[ '-]+[A-Za-z]+){0,9}[: ]*")
_LEAD = re.compile(r"\\text\{ ?([A-Za-z][A-Za-z ]{1,60}?)(?:\s?:|\s(?:is|are|was|equals))\s?:? ?\}\s?(?=.)")
_LEAD_INSIDE = re.compile(r"\\text\{ ?([A-Za-z][A-Za-z ]{1,60}?)(?:\s?:|\s(?:is|are|was|equals)\b)\s?:?\s?([^{}]+)\}")


@lru_cache(maxsize=2048)
def is_label(text: str) -> bool:
    """Return whether one side of an equation can only be the name of the value on the other side."""
    text = text.strip()
    if not text or len(text) > MAX_CHARS or text in _CONSTANTS or number_in(text) is not None:
        return False
    if _PRODUCT.fullmatch(text) or text.casefold() in _NEVER_NAMES:
        return text in _KNOWN_WORDS
    node = tree_of(text)
    if node is not None and not symbols(node):  # \max(3, 4) has a value
        return False
    return bool(_LABEL.fullmatch(text) or _LENGTH.fullmatch(text)) or is_phrase(text)


@lru_cache(maxsize=2048)
def is_name(text: str) -> bool:
    """Return whether the left side of an answer names the value on the right: a label, or an expression in letters."""
    text = text.strip()
    if is_label(text):
        return True
    if not text or len(text) > MAX_CHARS:
        return False
    if bars := _BARS.fullmatch(text):
        # |x| = 6 is an equation for x; |z|, |a - b| and \lfloor x \rfloor are values.
        return not _UNKNOWN.fullmatch((bars["bars"] or "").strip()) and number_in(bars["bars"] or "") is None
    node = tree_of(text)
    if _TRIGONOMETRIC.fullmatch(text):
        return node is None or bool(symbols(node))
    return node is not None and len(symbols(node)) > 1 and not _has_constant_term(node)


def _has_constant_term(node: Node) -> bool:
    """Return whether a sum has a summand without symbols."""
    if node[0] == "add":
        return _has_constant_term(node[1]) or _has_constant_term(node[2])
    return _has_constant_term(node[1]) if node[0] == "neg" else not symbols(node)


def is_phrase(text: str) -> bool:
    r"""Return whether words, bare or in \text, only name a quantity, as in "Area of the triangle"."""
    words = " ".join(unwrap_text(text).split())
    if not _WORDS.fullmatch(words):
        return False
    parts = [word for word in re.split(r"[^A-Za-z]+", words) if word]
    # Capital letters name points, people and figures, as in "Area of ABC".
    known = [word.lower() in _KNOWN_WORDS for word in parts]
    named = all(ok or (word.isupper() and len(word) <= 5) for ok, word in zip(known, parts, strict=True))
    if len(parts) == 1 and len(words) > 3:  # the name of what is counted, as in eggs = 18
        return parts[0].casefold() not in _NEVER_NAMES
    return named and any(word.lower() in _NOUNS.split() for word in parts)


def without_lead(text: str) -> str:
    r"""Return ``\text{The area is } 12`` and ``\text{Total: 12}`` as ``12``; any other string is unchanged."""
    match = _LEAD.match(text)
    if match:
        return normalize(text[match.end() :]) if is_phrase(match[1]) else text
    match = _LEAD_INSIDE.fullmatch(text)
    return normalize(match[2]) if match and is_phrase(match[1]) else text


def count_names(sides: tuple[str, ...], signs: tuple[str, ...]) -> int:
    """Return how many sides at the start of an answer name its value; the last side is never one.

    Args:
        sides: The sides of a chain of equations and approximations.
        signs: The signs between them.
    """
    count = 0
    for side, sign in zip(sides[:-1], signs, strict=False):
        if not is_name(side) or (sign != "=" and (count or len(signs) > 1)):
            break
        count += 1
    return count


def same_label(a: str, b: str) -> bool:
    """Return whether two labels are the same: |AB|, \\overline{BA} and AB name one length."""
    return _label_key(a) == _label_key(b)


def _label_key(text: str) -> str:
    key = unwrap_text(text).replace(" ", "").replace("{", "").replace("}", "").casefold() if len(text) > 1 else text
    points = re.fullmatch(
        r"\|?(?:\\overline)?([A-Z])([A-Z])\|?", text.replace(" ", "").replace("{", "").replace("}", "")
    )
    return "".join(sorted(points.groups())) if points else key
