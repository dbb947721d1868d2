"""report.html: everything in one file, every table of the text, and text of models that cannot become markup."""

import base64
import gzip
import json
import re

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.html_report import render_html
from benchmarks.tables.html_tables import html_table
from benchmarks.tables.layout import Table
from benchmarks.tables.report_text import render_text
from tests.benchmarks.made_episodes import episodes_row, run_row
from tests.benchmarks.made_rows import make_rows


def page_of(rows):
    return render_html(summarise(rows), rows)


def script(page, name):
    return re.search(rf'<script[^>]* id="{name}">(.*?)</script>', page, re.S)[1]


@pytest.fixture(scope="module")
def rows():
    return [*make_rows(), run_row("ippo", 0), episodes_row("ippo", 0, 0), episodes_row("marft", 1, 10)]


def test_the_page_loads_nothing(rows):
    page = page_of(rows)
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import""", markup)
    assert "uPlot" in page and "<!-- " not in markup and "/* include" not in page


def test_every_number_of_the_text_is_in_a_table(rows):
    text, page = render_text(summarise(rows)), page_of(rows)
    cells = set(re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", page))
    assert {"+10.0", "[-55.7, +75.7]", "inconclusive", "5/2/30", "2 cores"} <= cells
    tables = text.split("Words\n")[0].split("TASK relay")[1]
    missing = {n for n in re.findall(r"(?<=\s)\d+\.\d+(?=\s)", tables) if not any(n in cell for cell in cells)}
    assert not missing


def test_the_figures_have_a_band_from_three_seeds_on_and_all_seeds(rows):
    charts = json.loads(script(page_of(rows), "charts"))
    (sampled,) = [chart for chart in charts["curves"] if chart["mode"] == "sampled"]
    assert sampled["x"] == [0, 5, 10]
    of = {(s["arm"], s["role"], s.get("label")): s["y"] for s in sampled["series"]}
    assert of["marft", "mean", "marft"] == [30.0, 73.33333, 80.0] and of["ippo", "seed", "ippo, seed 2"] == [20, 50, 60]
    assert of["ippo", "low", None][2] < 70.0 < of["ippo", "high", None][2]
    few = json.loads(script(page_of([row for row in rows if row.get("seed", 0) < 2]), "charts"))
    assert {s["role"] for s in few["curves"][0]["series"]} == {"mean", "seed"}
    panels = {chart["title"]: chart for chart in charts["stability"]}
    entropy = panels["relay: entropy of the policy"]  # 1 - update / 20 for both agents, in every seed
    assert entropy["series"][0]["y"][0] == pytest.approx(0.95) and len(entropy["x"]) == 10


def test_the_episodes_are_those_of_the_rows_and_the_page_is_the_same_each_time(rows):
    page = page_of(rows)
    groups = json.loads(gzip.decompress(base64.b64decode(script(page, "episodes"))))
    assert [(g["arm"], g["seed"], g["update"]) for g in groups] == [("ippo", 0, 0), ("marft", 1, 10)]
    assert groups[0]["episodes"] == rows[-2]["episodes"] and groups[0]["header"] == rows[-2]["header"]
    assert page == page_of(rows)
    assert base64.b64decode(script(page, "episodes"))[4:8] == bytes(4)  # gzip's time of writing


def test_text_cannot_become_markup():
    evil = "<img src=x onerror=alert(1)></script>"
    rows = [{**row, "task": evil} if "task" in row else row for row in make_rows(task=evil)]
    page = page_of(rows)
    assert "<img" not in page and "&lt;img" in page
    assert json.loads(script(page, "charts"))["curves"][0]["task"] == evil
    assert "<b>" not in html_table(Table("<b>", ["<b>"], [["<b>"]], notes=["<b>"]))


def test_without_episodes_there_is_a_report():
    assert json.loads(gzip.decompress(base64.b64decode(script(page_of(make_rows()), "episodes")))) == []
