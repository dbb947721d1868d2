"""Equal and different forms of a gold, made with SymPy from the tree of the grader's own parser."""

import re
from fractions import Fraction

import sympy

from marft_envs.mathematics.grader.expression_parser import Unreadable, parse
from marft_envs.mathematics.grader.normalization import normalize
from marft_envs.mathematics.grader.parse_answer import without_unit
from marft_envs.mathematics.grader.special_answers import read_choice
from marft_envs.mathematics.grader.tree_value import has

FUNCTIONS = {
    "arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan, "abs": sympy.Abs, "ceil": sympy.ceiling,
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp",
                                               "floor")},
}  # fmt: skip
MAX_CHARS = 400
_FRACTION = re.compile(r"(?<![\d ])\\[dt]?frac ?\{(\w+)\} ?\{(\w+)\}")


def expression_of(gold):
    """Return the SymPy expression of a gold; None if it is not an expression, or is more than one."""
    text = without_unit(normalize(gold), is_gold=True)[0]
    try:
        tree = parse(text)
        if has(tree, "inf", "deg", "pct", "call", "fact2", "binom"):
            return None
        value = converted(tree)
        sympy.latex(sympy.expand(value))  # a ValueError for numbers of more than 4,300 digits
        return value
    except (Unreadable, KeyError, ValueError, TypeError, ZeroDivisionError):
        return None


def converted(node):
    kind, *parts = node
    if kind == "num":
        return sympy.Rational(Fraction(parts[0]).numerator, Fraction(parts[0]).denominator)
    if kind == "sym":
        return sympy.Symbol(parts[0].lstrip("\\"))
    if kind == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I}[parts[0]]
    if kind == "fn":
        return FUNCTIONS[parts[0]](converted(parts[1]))
    values = [converted(part) for part in parts]
    if kind == "root":
        return sympy.root(values[1], values[0])
    if kind == "log":
        return sympy.log(values[1], values[0])
    operations = {"add": sympy.Add, "mul": sympy.Mul, "pow": sympy.Pow, "fact": sympy.factorial}
    if kind == "neg":
        return -values[0]
    return values[0] / values[1] if kind == "div" else operations[kind](*values)


def equal_forms(gold):
    """Return notations of the same answer that differ from the gold's own."""
    forms = [
        gold.replace(r"\frac", r"\dfrac"),
        _FRACTION.sub(r"(\1)/(\2)", gold),
        gold.replace(r"\left", "").replace(r"\right", ""),
        f"${gold}$",
    ]
    value = expression_of(gold)
    if value is not None and value.is_finite is not False and not value.has(sympy.zoo, sympy.nan):
        forms += [
            sympy.latex(sympy.expand(value)),
            sympy.latex(sympy.factor(value)),
            sympy.latex(value, order="rev-lex"),
            sympy.latex(value, fold_short_frac=True),
            sympy.latex(sympy.together(value), mul_symbol="dot"),
        ]
    return [form for form in dict.fromkeys(forms) if form != gold and len(form) < MAX_CHARS]


def different_forms(gold):
    """Return answers with another value than the gold."""
    choice = read_choice(normalize(gold)) is not None  # (D) plus one is a choice with the text of its option
    forms = [f"{gold} \\text{{ {words}}}" for words in ("is wrong",) if choice]
    forms += [f"{gold} \\text{{ {words}}}" for words in ("plus one", "is wrong", "or more", "squared") if not choice]
    value = expression_of(gold)
    if value is None or value.is_finite is False or value.has(sympy.zoo, sympy.nan):
        return forms
    others = [value + 1, value - sympy.Rational(1, 1000)]
    if value != 0:
        others += [2 * value, -value]
    names = sorted(value.free_symbols, key=str)
    if len(names) > 1:
        others.append(value.subs({names[0]: names[1], names[1]: names[0]}, simultaneous=True))
    if names:
        others += [value + names[0], value * names[-1]]
    return forms + [sympy.latex(other) for other in others if sympy.expand(other - value) != 0]
