r"""LaTeX commands that change the layout of an answer and not its value, and rare spellings of common notations.

``without_layout`` drops colours, fonts, spaces, tags and proof marks, and rewrites ``{3 \over 4}``, ``{5 \choose 2}``,
``\nicefrac``, ``\num``, ``0.\bar3``, ``\overline{3+4i}`` and ``A^\top``. A string that contains none of these commands
is returned after one search. Every rewriting takes linear time. A command that changes a value, such as ``\not`` or
``\cancel``, is kept.
"""

from __future__ import annotations

import re

_SIZES = "tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge"
_FONT_SWITCHES = (
    "bf rm it tt sf sc em sl bfseries mdseries itshape slshape upshape scshape rmfamily sffamily ttfamily normalfont "
    "boldmath unboldmath"
)
_STYLES = "textstyle scriptstyle scriptscriptstyle displaystyle limits nolimits"
_CLASSES = "mathopen mathclose mathord mathrel mathbin mathinner mathpunct middle"
_INVISIBLE = "nonumber notag relax protect centering noindent strut mathstrut null leavevmode nobreak displaylimits"
_BLANKS = (
    "hfill hfil hss enspace enskip thinspace medspace thickspace negthinspace negmedspace negthickspace newline par "
    "linebreak allowbreak break space nobreakspace smallskip medskip bigskip"
)
_WITH_ARGUMENT = "hspace vspace mspace phantom hphantom vphantom tag label"
_BOXES = (
    "it tt sf sc em sl underline uline emph boldsymbol bm pmb ensuremath mathnormal texttt mathtt textsc textup textmd "
    "textsl"
)
_MATH_FONTS = "mathbf mathrm mathit mathsf textbf textit textsf textrm"
_COLOURS = "textcolor color colorbox fcolorbox"
_FRACTIONS = "nicefrac sfrac flatfrac xfrac textfrac"
_OTHERS = (
    "over choose num SI qty bar overline top intercal textsuperscript textsubscript textdegree lbrace rbrace lbrack "
    "rbrack lparen rparen vert textdollar mathop textquotedbl"
)
_END_MARKS = "square Box blacksquare qed qedsymbol QED checkmark blacktriangle"
_START_MARKS = "therefore Rightarrow implies Longrightarrow rightarrow longrightarrow"
_NAMES = frozenset(
    " ".join([
        _SIZES, _FONT_SWITCHES, _STYLES, _CLASSES, _INVISIBLE, _BLANKS, _WITH_ARGUMENT, _BOXES, _MATH_FONTS, _COLOURS,
        _FRACTIONS, _OTHERS, _END_MARKS, _START_MARKS,
    ]).split()
)  # fmt: skip


def _either(names: str) -> str:
    return rf"\\(?:{'|'.join(names.split())})(?![A-Za-z])"


_COMMAND = re.compile(r"\\([A-Za-z]+)")
_COLOUR = re.compile(r"\\(?:fcolorbox\s?\{[^{}]*\}|textcolor|color|colorbox)\s?(?:\[[^\[\]{}]*\])?\s?\{[^{}]*\}\s?")
_WORDS_IN_FONT = re.compile(rf"\{{\s?{_either(_FONT_SWITCHES)}\s*([A-Za-z][A-Za-z .'-]*[A-Za-z.])\s?\}}")
_DROPPED = re.compile(rf"{_either(' '.join([_SIZES, _FONT_SWITCHES, _STYLES, _CLASSES, _INVISIBLE]))}\s?(?!\s?\{{)")
_SWITCH_BEFORE_BRACE = re.compile(rf"{_either(' '.join([_SIZES, _STYLES, _CLASSES, _INVISIBLE]))}\s?(?=\{{)")
_BLANK = re.compile(_either(_BLANKS))
_ARGUMENT = re.compile(rf"{_either(_WITH_ARGUMENT)}\*?\s?\{{[^{{}}]*\}}")
_TAGGED = re.compile(r"\\(?:tag|label)\*?\s?\{[^{}]*\}")
_WORDS = r"\{\s?(?:[A-Za-z]|~)[A-Za-z ~.,'-]*\}"
_BOXED_WORDS = re.compile(rf"{_either(_BOXES)}\s?(?={_WORDS})")
_BOX = re.compile(rf"{_either(_BOXES)}\s?(?=\{{)|{_either('boldsymbol bm pmb')}\s?(?=[A-Za-z\d\\])")
_FONT_OF_MATHEMATICS = re.compile(rf"{_either(_MATH_FONTS)}\s?(?=\{{\s?(?:[-+]?\d[\d.,/ ]*[^\d.,/ }}]|\\[A-Za-z]))")
_FRACTION = re.compile(_either(_FRACTIONS))
_NUMBER = re.compile(r"\\num\s?(?:\[[^\[\]]*\])?\{([^{}]*)\}")
_QUANTITY = re.compile(r"\\(?:SI|qty)\s?(?:\[[^\[\]]*\])?\{([^{}]*)\}\s?\{([^{}]*)\}")
_RECURRING = re.compile(r"(\.\d*)\\(?:bar|overline)\s?(?:\{\s?(\d+)\s?\}|(\d))")
_REAL_PARTS = r"[\d.+\-*/()^ ie]|\\(?:[dt]?frac|sqrt|pi|cdot|times)(?![A-Za-z])"
_CONJUGATE = re.compile(rf"\\overline\s?\{{((?:{_REAL_PARTS}|\{{(?:{_REAL_PARTS})*+\}})++)\}}")
_IMAGINARY = re.compile(r"(?<![A-Za-z\\])i(?![A-Za-z])")
_BAR = re.compile(r"\\bar(?=\s?\{)")
_TRANSPOSED = re.compile(
    r"\^\s?(?:\{\s?)?\\(?:top|intercal|(?:mathsf|mathrm|mathbf|text|textsf)\s?(?:\{\s?T\s?\}|T))(?![A-Za-z])(?:\s?\})?"
)
_SCRIPTS = {r"\textsuperscript": "^", r"\textsubscript": "_"}
_SCRIPT = re.compile(r"\\text(?:super|sub)script(?=\s?\{)")
_BRACKETS = {
    "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")", "vert": "|",
    "textdollar": r"\$", "textdegree": "°", "mathop": "",
}  # fmt: skip
_BRACKET = re.compile(rf"{_either(' '.join(_BRACKETS))}\s?")
_INFIX = re.compile(r"\\(?:over|choose)(?![A-Za-z])|\\.|[{}]", re.DOTALL)
_START = re.compile(rf"[\s$]*+(?:{_either(_START_MARKS)}(?:[\s$]|\\[,;: ])*+)++")
_END_MARK = re.compile(_either(_END_MARKS))


def without_layout(text: str) -> str:
    """Return ``text`` without commands of layout, with rare commands replaced by common ones."""
    names = set(_COMMAND.findall(text))
    if names.isdisjoint(_NAMES):
        return text
    if not names.isdisjoint(_COLOURS.split()):
        text = _COLOUR.sub("", text)
    text = _WORDS_IN_FONT.sub(r"\\text{\1}", text)
    text = _SWITCH_BEFORE_BRACE.sub("", _DROPPED.sub("", text))
    text = _ARGUMENT.sub(r"\\quad ", _TAGGED.sub("", text))
    text = _BLANK.sub(r"\\quad ", text)
    text = _FONT_OF_MATHEMATICS.sub("", _BOX.sub("", _BOXED_WORDS.sub(r"\\text", text)))
    return _without_marks(_rare_spellings(text, names))


def _rare_spellings(text: str, names: set[str]) -> str:
    if not names.isdisjoint(_FRACTIONS.split()):
        text = _FRACTION.sub(r"\\frac", text)
    if not names.isdisjoint(["num", "SI", "qty"]):
        text = _QUANTITY.sub(r"\1 \\text{\2}", _NUMBER.sub(r"\1", text))
    if not names.isdisjoint(["bar", "overline"]):
        text = _BAR.sub(r"\\overline", _RECURRING.sub(lambda m: rf"{m[1]}\overline{{{m[2] or m[3]}}}", text))
        text = _CONJUGATE.sub(_conjugate, text)
    if "^" in text:
        text = _TRANSPOSED.sub("^T", text)
    if not names.isdisjoint(["textsuperscript", "textsubscript"]):
        text = _SCRIPT.sub(lambda m: _SCRIPTS[m.group()], text)
    if not names.isdisjoint(_BRACKETS):
        text = _BRACKET.sub(lambda m: _BRACKETS[m.group().strip()[1:]], text)
    return _prefix_operators(text) if not names.isdisjoint(["over", "choose"]) else text


def _conjugate(match: re.Match[str]) -> str:
    r"""Write the conjugate of an expression in i and numbers, \overline{3+4i}, with -i in place of i."""
    conjugate, count = _IMAGINARY.subn("(-i)", match[1])
    return f"({conjugate})" if count else match.group()


def _without_marks(text: str) -> str:
    r"""Drop \therefore and arrows at the start, and the end of a proof at the end."""
    start = _START.match(text)
    text = text[start.end() :] if start else text
    end = text.rstrip("\n\t $.")
    # From the last command backwards: a search for the first mark of a run would take quadratic time.
    while (at := end.rfind("\\")) >= 0 and _END_MARK.fullmatch(end, at):
        before = end[:at].rstrip("\n\t $.")
        if before.endswith(("^", "_", "{")):
            break
        text = end = before
    return text


def _prefix_operators(text: str) -> str:
    r"""Write the operators of TeX between two operands, as in ``{3 \over 4}``, as ``\frac{3}{4}`` and ``\binom``.

    The operands are everything before and after the operator in its group. A group with two operators is an error in
    TeX, and the string is returned unchanged.
    """
    edits: dict[int, str] = {}
    ends: dict[int, int] = {}
    groups: list[list[re.Match[str] | int]] = [[0]]  # the start of each open group, then its operator
    tokens = list(_INFIX.finditer(text))
    for token in tokens:
        word = token.group()
        if word == "{":
            groups.append([token.end()])
        elif word in ("\\over", "\\choose"):
            groups[-1].append(token)
        elif word == "}" and len(groups) > 1 and not _close(groups.pop(), token.start(), edits, ends):
            return text
    if len(groups) != 1 or not _close(groups.pop(), len(text), edits, ends):
        return text
    result, at = [], 0
    for position in sorted(edits):
        result += [text[at:position], edits[position]]
        at = ends.get(position, position)
    return "".join([*result, text[at:]])


def _close(group: list[re.Match[str] | int], end: int, edits: dict[int, str], ends: dict[int, int]) -> bool:
    """Record the edits of a group that ends at ``end``; False if it has two operators."""
    if len(group) == 1:
        return True
    start, operator, *more = group
    if more or not isinstance(start, int) or not isinstance(operator, re.Match) or operator.start() == start:
        return False
    name = "\\frac{" if operator.group() == "\\over" else "\\binom{"
    edits[start] = name + edits.get(start, "")
    edits[operator.start()] = "}{"
    ends[operator.start()] = operator.end()
    edits[end] = edits.get(end, "") + "}"
    return True
