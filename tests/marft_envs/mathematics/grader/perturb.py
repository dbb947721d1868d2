"""Construction of a wrong answer that has the form of a gold of the real data sets."""

import re


def perturb(gold):
    """Return ``gold`` with another digit, choice or word; if it has none of these, add 7 to it."""
    for match in re.finditer(r"\d", gold):
        before = gold[: match.start()]
        if re.search(r"\\(?:text|mbox|mathrm)\s?\{[^{}]*(?:\}\s?\^\s?\{?)?$", before):
            continue  # part of a unit
        return before + str(int(match.group()) % 9 + 1) + gold[match.end() :]
    if re.fullmatch(r"\\text\s?\{\s?\(?[A-H]\)?\s?\}|\(?[A-H]\)?", gold.strip()):
        return re.sub(r"(?<![A-Za-z])[A-H](?![A-Za-z])", lambda m: chr(ord(m.group()) + 1), gold)
    word = re.search(r"\\text\s?\{([^{}]*[A-Za-z]{2}[^{}]*)\}|^([A-Za-z ]{3,})$", gold)
    if word:
        old = word.group(1) or word.group(2)
        return gold.replace(old, old + "x", 1)
    return ("2" if re.fullmatch(r"\\[A-Za-z]+", gold.strip()) else "7+") + gold
