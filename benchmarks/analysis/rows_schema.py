"""Schema of rows.jsonl: the kinds of rows, their keys, the types of the values and when a key is present.

``check_row`` validates a row against ``ROW_KINDS``. ``markdown_tables`` writes the same tables for
docs/reference/rows.md, so the page and the validator cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MODES = ("sampled", "greedy")
ACCURACY_ROUNDING = 1e-3  # a writer may round; a larger gap between the accuracy and its items is an error

Row = dict[str, Any]


class ReportError(ValueError):
    """Results that cannot be reported; the message is one line for the user."""


@dataclass(frozen=True)
class Key:
    """A key of a row.

    Attributes:
        type: Name of the value's type, a key of ``TYPES``.
        meaning: Meaning and unit of the value.
        when: Condition under which the key is present; empty: always.
        entries: Keys of each entry, where the value is an object or a list of objects.
    """

    type: str
    meaning: str
    when: str = ""
    entries: Mapping[str, Key] | None = None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1  # False for NaN


def _is_list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _or_null(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "string or null": lambda value: value is None or isinstance(value, str),
    "integer >= 0": _is_count,
    "number": _is_number,
    "number or null": _or_null(_is_number),
    "number in [0, 1]": _is_share,
    "list of integers >= 0": _is_list_of(_is_count),
    "list of numbers in [0, 1]": _is_list_of(_is_share),
    "list of strings": _is_list_of(lambda value: isinstance(value, str)),
    "object": lambda value: isinstance(value, dict),
    "list of objects": _is_list_of(lambda value: isinstance(value, dict)),
    "object of objects": lambda value: isinstance(value, dict) and all(isinstance(v, dict) for v in value.values()),
    "object of numbers": lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    "object of numbers or null": lambda value: (
        isinstance(value, dict) and all(map(_or_null(_is_number), value.values()))
    ),
    '"sampled" or "greedy"': lambda value: value in MODES,
}
_CRITIC = "a critic read the batch"
_BY_POSITION = "object of numbers or null"

# An agent's or speaker's entry in the objects below.
MESSAGE_STATISTICS = {
    "replies": Key("integer >= 0", "number of the agent's replies"),
    "tokens": Key("integer >= 0", "tokens that the agent generated in all replies"),
    "empty": Key("number in [0, 1]", "share of replies that are only white space"),
    "repeated": Key(
        "number in [0, 1]", "share of replies that equal an earlier reply of the same episode, of any agent"
    ),
    "distinct": Key("number in [0, 1]", "number of different replies in the batch, divided by `replies`"),
    "dropped": Key(
        "integer >= 0",
        "messages that the agent's prompts left out, oldest first",
        "a prompt was longer than `decoding.max_prompt_tokens`",
    ),
}
COOPERATION = {
    "accuracy": Key(
        "number or null", "accuracy with the speaker's messages shuffled between episodes; null: no graded item"
    ),
    "drop": Key("number or null", "`accuracy` of the row minus this accuracy, as a fraction"),
    "unmoved": Key("number in [0, 1]", "share of the speaker's messages that no other episode could exchange"),
    "ignored": Key(
        "number in [0, 1]",
        "share of the episodes that read another text of the speaker in which every reply stayed the same",
        "an episode read another text",
    ),
}
SESSION = {
    "command": Key("string", "the command as typed"),
    "sources": Key("string", "first 12 hexadecimal digits of the SHA-256 of all modules"),
    "commit": Key("string or null", "git commit, with `-dirty` if files differ; null outside a repository"),
    "versions": Key("object", "package -> version"),
    "hardware": Key("string", "cores, architecture and operating system"),
    "started": Key("string", "local time, `YYYY-MM-DD HH:MM:SS`"),
}
MODEL = {
    "name": Key("string", "name of the base model"),
    "revision": Key("string", "revision of the base model"),
    "sha256": Key("string", "SHA-256 of its weights"),
    "device": Key("string", "device of the base model"),
    "dtype": Key("string", "type of its weights"),
    "quantization": Key("string", "`none`, or `4bit` if its linear layers are stored in 4 bits"),
}

_LABEL = {
    "arm": Key("string", "name of the arm"),
    "task": Key("string", "name of the task in the preset; a transfer data set is called `DATASET (trained on TASK)`"),
    "seed": Key("integer >= 0", "training seed"),
}
_NOT_OF_EVALUATE = "not in rows of `baselines.evaluate`"
_RATE = Key("number or null", "learning rate of the run; null: the arm does not learn", _NOT_OF_EVALUATE)
_UPDATE = Key("integer >= 0", "number of updates so far")

ROW_KINDS: dict[str, dict[str, Key]] = {
    "comparison": {
        "config": Key("object", "resolved configuration: `arms`, `seeds`, `reference` if the preset has one, and "
                      "for each of `tasks` all settings"),
        "config_hash": Key("string", "hash of what a resumed comparison must have of `config`"),
        "data": Key("object", "task -> hashes of its problems, and the score of a team that answers nothing"),
        "sessions": Key("list of objects", "one entry for each time the comparison was started", entries=SESSION),
    },
    "run": {
        **{name: Key(key.type, key.meaning, "in the file of a comparison") for name, key in _LABEL.items()},
        "learning_rate": Key("number or null", _RATE.meaning, "in the file of a comparison"),
        "config": Key("object", "resolved configuration of the run", "in the run's own folder"),
        "config_hash": Key("string", "hash of the run's configuration"),
        "models": Key("object of objects", "base models by the name in the configuration", entries=MODEL),
        "pass_gib": Key("number", "memory of a forward and backward pass of an update, in GiB"),
        "versions": Key("object", "package -> version"),
        "hardware": Key("string", "cores, architecture and operating system"),
        "threads": Key("integer >= 0", "threads of torch"),
        "started": Key("string", "local time, `YYYY-MM-DD HH:MM:SS`"),
    },
    "train": {
        **_LABEL,
        "learning_rate": _RATE,
        "update": Key("integer >= 0", "number of this update, from 1"),
        "reward": Key("number or null", "mean score of the batch's graded episodes, in [0, 1]; null: none was graded"),
        "episodes": Key("integer >= 0", "episodes so far"),
        "not_graded": Key("integer >= 0", "episodes without a verdict so far"),
        "truncated": Key("integer >= 0", "episodes so far that `max_turns` ended"),
        "prompt_tokens": Key("integer >= 0", "tokens read by the models so far"),
        "generated_tokens": Key("integer >= 0", "tokens generated in training so far"),
        "trained_tokens": Key("integer >= 0", "action tokens in backward passes so far"),
        "agents": Key("object of objects", "agent -> metrics of its training"),
        "messages": Key("object of objects", "agent -> statistics of its replies", entries=MESSAGE_STATISTICS),
        "seconds": Key("object of numbers", "stage -> seconds"),
        "wall_s": Key("number", "duration of the update, in seconds"),
        "skipped": Key("string", "reason why this batch trained no policy", "it trained none"),
        "explained_variance": Key("number or null", "moving average of the critic's explained variance", _CRITIC),
        "explained_variance_by_position": Key(_BY_POSITION, "of this batch, by position in the round", _CRITIC),
        "explained_variance_ceiling": Key(_BY_POSITION, "explained variance of the label of `Task.progress`",
                                          "a critic read the batch and the task defines `progress`"),
        "advantage_variance_by_position": Key(_BY_POSITION, "variance of the advantages before whitening, by position "
                                              "in the round", "the batch trained policies"),
    },
    "eval": {
        **_LABEL,
        "learning_rate": _RATE,
        "update": _UPDATE,
        "mode": Key('"sampled" or "greedy"', "decoding"),
        "accuracy": Key("number or null", "mean of `item_score`; null: no item was graded"),
        "n": Key("integer >= 0", "number of graded items"),
        "answers": Key("integer >= 0", "answers with a verdict; several per item if several agents answer"),
        "no_answer": Key("integer >= 0", "answers in which the grader found no answer"),
        "not_graded": Key("integer >= 0", "items without a verdict (a fault of the grader); in no accuracy"),
        "item_index": Key("list of integers >= 0", "index of each graded problem"),
        "item_score": Key("list of numbers in [0, 1]", "the team's score on each of them"),
        "messages": Key("object of objects", "agent -> statistics of its replies", _NOT_OF_EVALUATE,
                        entries=MESSAGE_STATISTICS),
        "cooperation": Key("object of objects", "speaker -> effect of shuffling its messages",
                           "sampled decoding on the own task, with `cooperation` on", entries=COOPERATION),
        "generation_out_of_memory": Key("integer >= 0", "out-of-memory errors while replies were generated, so far",
                                        _NOT_OF_EVALUATE),
    },
    "episodes": {
        **_LABEL,
        "learning_rate": Key("number or null", _RATE.meaning),
        "update": _UPDATE,
        "mode": Key('"sampled" or "greedy"', "decoding"),
        "header": Key("object", "the header of the trace, see [traces](../traces.md)"),
        "episodes": Key("list of objects", "its episodes, by the same schema: the first problems of the evaluation"),
    },
    "failure": {
        **_LABEL,
        "learning_rate": Key("number or null", _RATE.meaning),
        "update": Key("integer >= 0", "update of the run's last checkpoint, from which `--resume` continues"),
        "error": Key("string", "message of the error"),
        "traceback": Key("list of strings", "lines of the traceback; empty if the run's process died without one"),
        "failed": Key("string", "local time of the failure, `YYYY-MM-DD HH:MM:SS`"),
    },
}  # fmt: skip


def check_row(row: Any, where: str) -> Row:
    """Validate a row against the schema.

    Keys that the schema does not name are allowed: the metrics of a learner (docs/metrics.md) are an open set.

    Args:
        row: A parsed line of rows.jsonl.
        where: File and line number, for the message.

    Returns:
        The row. The accuracy of an eval row without graded items is set to None, whatever was written.

    Raises:
        ReportError: The row does not fit; the message is one line.
    """
    kind = kind_of(row, where)
    _check_keys(row, ROW_KINDS[kind], f"{where}: {kind} row")
    if kind == "eval":
        _check_items(row, f"{where}: eval row")
    return row


def kind_of(row: Any, where: str) -> str:
    """Return the kind of a row. Raise ReportError, naming ``where``, if it has no known kind."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        raise ReportError(f"{where}: expected an object with a 'kind' ({', '.join(ROW_KINDS)})")
    kind: str = row["kind"]
    if kind not in ROW_KINDS:
        raise ReportError(f"{where}: kind={kind!r}: expected one of {', '.join(ROW_KINDS)}")
    return kind


def _check_keys(found: Mapping[str, Any], keys: Mapping[str, Key], where: str) -> None:
    missing = [name for name, key in keys.items() if not key.when and name not in found]
    if missing:
        raise ReportError(f"{where} without {', '.join(missing)}; see docs/reference/rows.md")
    for name, key in keys.items():
        if name not in found:
            continue
        value = found[name]
        if not TYPES[key.type](value):
            raise ReportError(f"{where}: {_mismatch(name, key.type, value)}")
        if key.entries:
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for label, entry in entries:
                _check_keys(entry, key.entries, f"{where}: {name}[{label!r}]")


def _check_items(row: Row, where: str) -> None:
    """Compare the accuracy of an eval row with its items."""
    index, score = row["item_index"], row["item_score"]
    if not len(index) == len(score) == row["n"]:
        raise ReportError(
            f"{where}: item_index and item_score must have n={row['n']} entries each, got {len(index)} and {len(score)}"
        )
    if not score:
        row["accuracy"] = None
        return
    accuracy, mean = row["accuracy"], sum(score) / len(score)
    if not _is_share(accuracy):
        raise ReportError(f"{where}: accuracy must be a number in [0, 1], got {accuracy!r}")
    if abs(accuracy - mean) > ACCURACY_ROUNDING:
        raise ReportError(f"{where}: accuracy {accuracy} is not the mean of its item scores, {mean:.6f}")


def _mismatch(name: str, expected: str, value: Any) -> str:
    """Describe a value of the wrong type; of a list, its first wrong entry."""
    if isinstance(value, list) and expected.startswith("list of "):
        position = next(i for i, entry in enumerate(value) if not TYPES[expected]([entry]))
        name, value = f"entry {position} of {name}", value[position]
        expected = expected.removeprefix("list of ").replace("integers", "integer").replace("numbers", "number")
    article = "" if expected.startswith('"') else "an " if expected[0] in "aeio" else "a "
    text = repr(value)
    return f"{name} must be {article}{expected}, got {text if len(text) <= 60 else text[:57] + '...'}"


def markdown_tables() -> dict[str, str]:
    """Return the schema as Markdown tables: one for each kind of row and each nested entry, by name."""
    tables = {f"`{kind}`": keys for kind, keys in ROW_KINDS.items()}
    tables |= {
        "Entry of `sessions`": SESSION,
        "Entry of `models`": MODEL,
        "Entry of `messages`": MESSAGE_STATISTICS,
        "Entry of `cooperation`": COOPERATION,
    }
    return {name: _markdown_table(keys) for name, keys in tables.items()}


def _markdown_table(keys: Mapping[str, Key]) -> str:
    lines = ["| key | type | present | meaning |", "|---|---|---|---|"]
    for name, key in keys.items():
        present = (
            "always" if not key.when else key.when if key.when.startswith(("in ", "not in ")) else f"if {key.when}"
        )
        lines.append(f"| `{name}` | {key.type} | {present} | {key.meaning} |")
    return "\n".join(lines)
