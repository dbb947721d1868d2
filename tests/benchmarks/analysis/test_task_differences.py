"""Differences between the tasks of a study: what is paired, with what, and where the report shows it."""

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.headline import headlines
from benchmarks.tables.html_report import render_html
from benchmarks.tables.report_text import render_text
from tests.benchmarks.made_rows import make_rows

# Items solved of 10 at updates 0, 5, 10. With edges, marft ends with 7, 8, 8, without them with 5, 6, 7.
CHAIN = {("marft", 0): (3, 5, 7), ("marft", 1): (3, 5, 8), ("marft", 2): (3, 5, 8), ("ippo", 0): (3, 5, 5)}
NONE = {("marft", 0): (3, 5, 5), ("marft", 1): (3, 5, 6), ("marft", 2): (3, 5, 7)}


def study(reference="none"):
    rows = make_rows(NONE, task="none", modes=("sampled",), reference=reference)
    rows += make_rows(CHAIN, task="chain", modes=("sampled",))[1:]
    rows += make_rows(CHAIN, task="gsm8k (trained on chain)", modes=("sampled",))[1:]
    return rows + make_rows(CHAIN, task="gsm8k (trained on none)", modes=("sampled",))[1:]


def test_a_task_is_compared_with_the_reference_for_each_arm_of_both():
    pair, *transfer = summarise(study())["task_differences"]
    assert (pair["first"], pair["second"], pair["arm"], pair["mode"]) == ("chain", "none", "marft", "sampled")
    # differences 0.2, 0.2, 0.1: mean 1/6, standard error 0.1 / 3, and t = 4.302653 with two degrees of freedom
    assert pair["mean"] == pytest.approx(1 / 6)
    assert (pair["low"], pair["high"]) == pytest.approx((1 / 6 - 0.4302653 / 3, 1 / 6 + 0.4302653 / 3), abs=1e-6)
    assert pair["seeds"] == [0, 1, 2] and pair["verdict"] == "chain ahead"
    assert pair["p_holm"] == pair["p"] and pair["holm_tasks"] == 1
    found = {(each["first"], each["second"], each["arm"], each["verdict"]) for each in transfer}
    names = ("gsm8k (trained on chain)", "gsm8k (trained on none)")
    assert found == {(*names, arm, "identical") for arm in ("marft", "ippo")}


def test_without_a_reference_nothing_is_compared():
    assert summarise(study(""))["task_differences"] == []
    assert "Differences between tasks" not in render_text(summarise(study("")))


def test_holm_is_over_the_tasks_that_are_compared_with_the_reference():
    rows = study() + make_rows(CHAIN, task="star", modes=("sampled",))[1:]
    chain, star = [pair for pair in summarise(rows)["task_differences"] if pair["second"] == "none"]
    assert chain["holm_tasks"] == star["holm_tasks"] == 2
    assert chain["p_holm"] == pytest.approx(2 * chain["p"])


def test_the_report_shows_them():
    summary = summarise(study())
    row = next(line for line in render_text(summary).splitlines() if line.startswith("  sampled  chain - none"))
    assert row.split()[4:8] == ["marft", "+16.7", "[+2.3,", "+31.0]"] and "chain ahead" in row
    remark = "Identical on every item of every seed (sampled ippo gsm8k (trained on chain) - gsm8k (trained on none)"
    assert remark in " ".join(render_text(summary).split())
    page = render_html(summary, study())
    section = page.split('id="differences-between-tasks"')[1].split("</section>")[0]
    assert "chain - none" in section and "+16.7" in section and 'data-arms="marft"' in section
    text = headlines(summary)
    assert text["chain"].endswith(
        "Compared with none, marft has a difference +16.7 points [+2.3, +31.0]. "
        "chain is better; chance is an unlikely explanation."
    )
    assert "Compared with" not in text["none"]
