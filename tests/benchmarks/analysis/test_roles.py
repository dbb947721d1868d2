"""Diagnostics of the roles of a team, from rows whose figures are known, and their tables."""

import pytest

from benchmarks.analysis.roles import roles
from benchmarks.analysis.summary import summarise
from benchmarks.analysis.training_runs import group_runs
from benchmarks.tables.html_report import render_html
from benchmarks.tables.layout import WIDTH
from benchmarks.tables.report_text import render_text
from tests.benchmarks.made_rows import change_rows, make_rows

MESSAGES = {"replies": 10, "empty": 0.1, "repeated": 0.2, "distinct": 0.5}


def with_roles(rows):
    """Add what the roles need: the solver writes three times as much as the judge, and has most of the gradient."""

    def train(row):
        late = row["update"] > 5
        shares = {"reasoner_0": 0.9 if late else 0.7, "actor_0": 0.1 if late else 0.3}
        row["agents"] = {agent: {**figures, "grad_share": shares[agent], "advantage_std": 2.0 if late else 1.0}
                         for agent, figures in row["agents"].items()}  # fmt: skip
        row["messages"] = {"reasoner_0": MESSAGES | {"tokens": 30}, "actor_0": MESSAGES | {"tokens": 10}}
        row["advantage_variance_by_position"] = {"1": 4.0 if row["update"] > 7 else 1.0, "2": 0.25, "10": None}

    def evaluate(row):
        row["messages"] = {"reasoner_0": MESSAGES | {"tokens": 30}, "actor_0": MESSAGES | {"tokens": 10, "empty": 0.0}}
        if row["mode"] == "sampled":
            drop = 0.2 if row["update"] else 0.1
            row["cooperation"] = {
                "reasoner_0": {"accuracy": 0.1, "drop": drop + row["seed"] / 10, "unmoved": 0.0, "ignored": 0.25}
            }

    return change_rows(change_rows(rows, "train", train), "eval", evaluate)


def test_the_figures_of_each_role():
    (runs,) = [[run for run in group if run.arm == "marft"] for group in group_runs(with_roles(make_rows())).values()]
    found = roles(runs)
    assert list(found) == ["reasoner_0", "actor_0"]
    solver, judge = found["reasoner_0"], found["actor_0"]
    assert solver["gradient_share"] == pytest.approx(0.8) and judge["gradient_share"] == pytest.approx(0.2)
    assert solver["advantage_variance"] == pytest.approx(2.5)  # of standard deviations 1 and 2
    assert solver["drop"]["mean"] == pytest.approx(0.3) and judge["drop"] is None  # nobody reads the judge
    assert solver["ignored"] == 0.25 and judge["ignored"] is None
    assert (solver["empty"], judge["empty"], solver["repeated"]) == pytest.approx((0.1, 0.0, 0.2))
    assert (solver["tokens"], solver["token_share"]) == (300.0, 0.75)  # of ten updates


def test_both_reports_have_the_roles_and_the_cliff_of_the_team():
    rows = with_roles(make_rows())
    summary = summarise(rows)
    text = render_text(summary)
    lines = [line.split() for line in text.splitlines()]
    assert any(line[:4] == ["marft", "reasoner_0", "80.0", "2.5"] for line in lines)
    assert any(line[:2] == ["marft", "team"] and line[-1] == "+10.0" for line in lines)  # 9 of 10 to 6 in one seed of 3
    assert any("300 (75.0%)" in " ".join(line) for line in lines)
    start = text.index("Advantage variance by position")
    assert text[start:].splitlines()[2].split() == ["ippo", "4", "0.25"]
    assert max(map(len, text.splitlines())) <= WIDTH
    page = render_html(summary, rows)
    assert '<h2 id="roles">Roles</h2>' in page and 'href="#roles"' in page and "<td>80.0</td>" in page


def test_rows_without_diagnostics_have_no_table_of_roles():
    text = render_text(summarise(make_rows()))
    assert "reasoner_0  " not in text.partition("Roles: ")[2].partition("Budget")[0]
    assert "Advantage variance by position" not in text
