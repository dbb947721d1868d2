"""Head of the report: configuration, provenance, warnings, and the fields in which the arms differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.analysis.intervals import FEW_SEEDS
from benchmarks.analysis.pairs import Summary
from benchmarks.tables.layout import NOTHING, Table, percent, plain, rate, table, wrapped

_LONGEST = 60  # characters of an environment argument


def head(summary: Summary) -> str:
    """Return everything above the first task."""
    lines = ["COMPARISON OF LEARNERS"]
    lines += few_seeds(summary["tasks"])
    provenance = summary["provenance"]
    if provenance.get("config_hash"):
        lines.append(f"  configuration {provenance['config_hash']}")
    for session in provenance.get("sessions") or ():
        lines += _session(session)
    tasks = summary["config"].get("tasks", {})
    for task, config in tasks.items():
        lines += wrapped(f"{task}: {_task_settings(config)}", "  ")
    for task, models in (provenance.get("models") or {}).items():
        names = ", ".join(f"{model['name']} {model['revision']} (sha256 {model['sha256'][:12]})" for model in models)
        lines += wrapped(f"{task}: model {names}{_data(provenance, task)}", "  ")
    for note in summary["notes"]:
        lines += wrapped(f"NOTE: {note}", "  ")
    for failure in summary["failures"]:
        lines += wrapped(f"FAILED: {failure_sentence(failure)}", "  ")
    return "\n\n".join(["\n".join(lines), *_arms(tasks)])


def failure_sentence(failure: Summary) -> str:
    """Return which run failed, where it resumes, and the last line of its error."""
    error = next((line for line in reversed(failure["error"].splitlines()) if line.strip()), "no message")
    at = "" if failure["learning_rate"] is None else f" lr {rate(failure['learning_rate'])}"
    return (
        f"{failure['task']}, {failure['arm']}{at} seed {failure['seed']}, last checkpoint after update "
        f"{failure['update']}: {_ascii(error)}"
    )


def few_seeds(tasks: Mapping[str, Any]) -> list[str]:
    """Return a warning if an arm of a task has fewer than FEW_SEEDS finished seeds."""
    fewest = {}
    for task, figures in tasks.items():
        counts = [len(block["seeds"]) for mode in figures["modes"].values() for block in mode["arms"].values()]
        if counts and min(counts) < FEW_SEEDS:
            fewest[task] = _seeds(min(counts))
    if not fewest:
        return []
    same = len(fewest) == len(tasks) and len(set(fewest.values())) == 1
    listed = next(iter(fewest.values())) if same else ", ".join(f"{task} {seeds}" for task, seeds in fewest.items())
    return wrapped(f"{listed}: enough to show that training runs; a claim needs five or more", "  ")


def _seeds(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"


def provenance_tables(summary: Summary) -> list[Table]:
    """Return what is needed to repeat the comparison: sessions, settings, models, problems, and what the arms are."""
    provenance, tasks = summary["provenance"], summary["config"].get("tasks", {})
    sessions = [
        [session["started"], session["hardware"], session["sources"], str(session.get("commit") or NOTHING),
         plain(session["versions"]), session.get("command") or NOTHING] for session in provenance.get("sessions") or ()
    ]  # fmt: skip
    settings = [[task, _task_settings(config)] for task, config in tasks.items()]
    models = [
        [task, f"{model['name']} {model['revision']}", model["sha256"][:12], _data(provenance, task).removeprefix("; ")]
        for task, used in (provenance.get("models") or {}).items()
        for model in used
    ]
    tables = [
        Table("Sessions", ["started", "machine", "code", "commit", "versions", "command"], sessions),
        Table("Settings", ["task", "settings"], settings),
        Table("Models and problems", ["task", "model", "sha256", "problems"], models),
        *_fields_by_task(tasks),
    ]
    return [each for each in tables if each.rows]


def _fields_by_task(tasks: Mapping[str, Any]) -> list[Table]:
    """Return tables of the learner's fields that differ between arms; tasks with the same table share it."""
    names: dict[str, list[str]] = {}
    found = {task: _fields(config.get("learners", {})) for task, config in tasks.items()}
    for task, fields in found.items():
        names.setdefault(str(fields), []).append(task)
    return [
        Table(f"Fields of the learner in which the arms differ ({', '.join(group)})", *fields)
        for group in names.values()
        if (fields := found[group[0]])
    ]


def _session(session: Mapping[str, Any]) -> list[str]:
    """Return the lines of one session: when, where and with which code the comparison was started."""
    commit = f", commit {session['commit']}" if session.get("commit") else ""
    lines = wrapped(f"started {session['started']} on {session['hardware']}; code {session['sources']}{commit}; "
                    f"{plain(session['versions'])}", "  ")  # fmt: skip
    if session.get("command"):
        lines += wrapped(f"command: {_ascii(session['command'])}", "    ", whole_words=True)
    return lines


def _task_settings(config: Mapping[str, Any]) -> str:
    """Return the settings of a task, as in ``30 updates, 128 episodes per update, ...; math_v0(dataset=relay)``."""
    decoding, single = config.get("decoding", {}), "single" in config.get("learners", {})
    parts = [
        ("{} updates", config.get("updates")),
        ("{} episodes per update", config.get("episodes")),
        ("temperature {:g}", decoding.get("temperature")),
        (
            "at most {} tokens per reply" + " (single: of the whole team together)" * single,
            decoding.get("max_new_tokens"),
        ),
        ("{} held-out problems", config.get("evaluation_items")),
    ]
    numbers = ", ".join(words.format(value) for words, value in parts if value is not None)
    arguments = ", ".join(f"{key}={_short(value)}" for key, value in config.get("environment_arguments", {}).items())
    return f"{numbers}; {config.get('environment', '')}({arguments})"


def _short(value: Any) -> str:
    text = _ascii(str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _data(provenance: Summary, task: str) -> str:
    """Return the hashes of a task's problems, and the score of a team that answers nothing."""
    data = (provenance.get("data") or {}).get(task)
    if not data:
        return ""
    hashes = ", ".join(f"{split} {data[split]['sha256']}" for split in ("train", "test"))
    score = data["negative_control"]
    words = f"; problems (sha256): {hashes}; a team that answers nothing scores {percent(score)} %"
    return words + ("" if score == 0 else " (EXPECTED 0: do not trust this grader)")


def _arms(tasks: Mapping[str, Any]) -> list[str]:
    """Return tables of the learner's fields that differ between arms; tasks with the same table share it."""
    found: dict[str, list[str]] = {}
    for task, config in tasks.items():
        text = _differing(config.get("learners", {}))
        if text:
            found.setdefault(text, []).append(task)
    return [
        f"Fields of the learner in which the arms differ, except the learning rate ({', '.join(names)})\n{text}"
        for text, names in found.items()
    ]


def _differing(learners: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with a row per arm and a column per field that differs; empty if none does."""
    found = _fields(learners)
    return table(*found) if found else ""


def _fields(learners: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[list[str]]] | None:
    """Return headings and rows of the fields in which learners differ; None if there are none."""
    names = dict.fromkeys(name for learner in learners.values() for name in learner)
    fields = [name for name in names if len({str(learner.get(name)) for learner in learners.values()}) > 1]
    rows = [[arm, *(_short(learner.get(name)) for name in fields)] for arm, learner in learners.items()]
    return (["arm", *fields], rows) if fields else None
