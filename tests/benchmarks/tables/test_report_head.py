"""Head of the report: what was run, and in which fields the arms differ."""

import sys

from benchmarks import report
from benchmarks.experiment.grid import load_preset
from benchmarks.experiment.results_folder import session
from benchmarks.tables.layout import WIDTH
from benchmarks.tables.report_head import head
from tests.benchmarks.made_rows import SESSION, SOLVED, make_rows


def head_of(**config):
    rows = make_rows(**config)
    rows[0]["sessions"] = [SESSION | {"command": "python benchmarks/compare.py --preset ladder"}]
    return head(report.summarise(rows))


def test_few_seeds_are_flagged():
    def warning(seeds, **more):
        rows = make_rows({key: value for key, value in SOLVED.items() if key[1] < seeds})
        lines = head(report.summarise(rows + [row for r in more.values() for row in r])).splitlines()
        return lines[1]

    words = ": enough to show that training runs; a claim needs five or more"
    assert warning(2) == "  2 seeds" + words and warning(1) == "  1 seed" + words
    assert "claim" not in warning(3)
    assert warning(1, other=make_rows(SOLVED, task="other")[1:]) == "  relay 1 seed" + words


def test_the_head_names_the_command_and_the_settings():
    text = head_of(**load_preset("ladder").resolved())
    assert "    command: python benchmarks/compare.py --preset ladder\n" in text
    joined = " ".join(text.split())
    assert ("relay: 30 updates, 128 episodes per update, temperature 1, at most 6 tokens per reply, "
            "512 held-out problems; math_v0(dataset=relay, style=symbols, team=duo)") in joined  # fmt: skip
    assert text.isascii() and max(map(len, text.splitlines())) <= WIDTH


def test_the_table_has_the_fields_in_which_the_arms_differ_and_no_other():
    text = head_of(**load_preset("ladder").resolved())
    lines = text[text.index("Fields of the learner") :].splitlines()
    assert lines[0].endswith("in which the arms differ, except the learning rate (relay, report_8)")
    assert lines[1].split() == ["arm", "critic", "bootstrap", "update", "factor"]
    assert ["marft_nofactor", "central", "successor", "sequential", "off"] in [line.split() for line in lines]


def test_tasks_whose_arms_differ_in_other_fields_have_tables_of_their_own():
    learners = {"ippo": {"clip": 0.1, "lam": 1}, "marft": {"clip": 0.2, "lam": 1}}
    same = {"ippo": {"clip": 0.1}, "marft": {"clip": 0.1}}
    text = head_of(tasks={"a": {"learners": learners}, "b": {"learners": same}})
    assert "except the learning rate (a)" in text and "lam" not in text and "(b" not in text


def test_a_long_argument_is_shortened_and_escaped():
    text = head_of(tasks={"a": {"environment": "math_v0", "environment_arguments": {"team": "\u00e9" * 500}}})
    assert text.isascii() and " ...)" in text and len(text) < 600


def test_a_session_holds_the_command_as_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks/compare.py", "--preset", "my grid.toml"])
    assert session()["command"].endswith(" benchmarks/compare.py --preset 'my grid.toml'")
