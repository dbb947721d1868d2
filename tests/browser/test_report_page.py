"""report.html in headless Chromium: no errors, readable on a phone, usable by keyboard, accessible."""

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.html_report import render_html
from tests.benchmarks.made_episodes import episodes_row, run_row
from tests.benchmarks.made_rows import SOLVED, make_rows

pytestmark = pytest.mark.browser
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of two tasks with long names, three seeds, and episodes of every evaluation."""
    rows = [*make_rows(), *make_rows(task="report_of_eight")[1:]]
    rows += [run_row(arm, seed, task) for arm, seed in SOLVED for task in ("relay", "report_of_eight")]
    rows += [episodes_row(arm, seed, update, task, mode) for arm, seed in SOLVED for update in (0, 5, 10)
             for task in ("relay", "report_of_eight") for mode in ("greedy", "sampled")]  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(summarise(rows), rows), encoding="utf-8")
    return path


def scroll_through(page):
    """Scroll to the end, so that every figure is drawn, and back."""
    page.evaluate(
        "async () => { for (let y = 0; y < document.body.scrollHeight; y += 700) {"
        " scrollTo(0, y); await new Promise(requestAnimationFrame); } scrollTo(0, 0); }"
    )


def cells(page, table, column):
    """The texts of the visible cells of a column."""
    rows = page.locator(f"[aria-label^='{table}'] tbody tr:visible")
    return [row.locator("th, td").nth(column).inner_text() for row in rows.all()]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_opens_without_an_error_without_network_and_fits(report, open_page, width, scheme):
    opened = open_page(report, width, scheme)
    scroll_through(opened.page)
    opened.page.wait_for_function("document.querySelectorAll('canvas').length > 4")
    assert opened.errors == [] and opened.requests == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_axe_finds_no_serious_fault(report, open_page, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(report, width, scheme).page
    scroll_through(page)
    page.get_by_role("button", name="Two arms").click()
    found = Axe().run(page).response["violations"]
    serious = {v["id"]: v["nodes"][0]["html"] for v in found if v["impact"] in ("serious", "critical")}
    assert not serious


def test_a_heading_sorts_by_mouse_and_by_keyboard(report, open_page):
    page = open_page(report).page
    heading = page.locator("[aria-label^='Final accuracy of each seed'] th button", has_text="s0")
    heading.click()
    values = cells(page, "Final accuracy of each seed", 3)
    assert values == sorted(values, key=float) and len(set(values)) > 2
    heading.press("Enter")
    assert cells(page, "Final accuracy of each seed", 3) == sorted(values, key=float, reverse=True)
    assert page.locator("[aria-sort=descending]").inner_text().startswith("s0")


def test_boxes_and_choices_filter_rows_and_figures(report, open_page):
    page = open_page(report).page
    page.get_by_label("Filter rows: Team accuracy").fill("greedy MARFT")
    assert cells(page, "Team accuracy", 2) == ["marft", "marft"]
    page.locator("#show-task").select_option("relay")
    page.locator("#show-mode").select_option("sampled")
    assert cells(page, "Team accuracy", 0) == []
    page.get_by_label("Filter rows: Team accuracy").fill("")
    assert cells(page, "Team accuracy", 0) == ["relay", "relay"]
    assert page.locator("#curve-figures figure:visible").count() == 1 and page.locator(".headline:visible").count() == 1
    page.locator("#show-arm").select_option("ippo")
    assert cells(page, "Team accuracy", 2) == ["ippo"] and cells(page, "Paired difference", 2) == ["marft - ippo"]


def test_a_heading_is_explained_on_hover_and_on_focus(report, open_page):
    page = open_page(report).page
    button = page.locator("[aria-label^='Paired difference'] th button", has_text="MDE")
    tooltip = page.get_by_role("tooltip")
    button.focus()
    assert "smallest true difference" in tooltip.inner_text()
    page.keyboard.press("Escape")
    assert not tooltip.is_visible()
    button.hover()
    assert tooltip.is_visible() and page.locator("[aria-describedby=help]").count() == 1


def test_the_legend_hides_an_arm_by_keyboard_and_seeds_can_be_shown(report, open_page):
    opened = open_page(report)
    page = opened.page
    page.wait_for_selector("canvas")
    shown = """(arm) => drawn[0].plot.series.slice(1)
        .filter((series, i) => series.show && drawn[0].chart.series[i].arm === arm).length"""
    assert page.evaluate(shown, "ippo") == 3  # the mean and the edges of its band
    page.locator("#show-seeds").check()
    assert page.evaluate(shown, "ippo") == 6
    name = page.locator("#curve-figures figure").first.get_by_role("button", name="ippo")
    name.press("Enter")
    assert page.evaluate(shown, "ippo") == 0 and page.evaluate(shown, "marft") == 6
    assert name.get_attribute("aria-pressed") == "false" and opened.errors == []


def test_two_arms_and_before_and_after_are_side_by_side(report, open_page):
    page = open_page(report).page
    panels = page.locator(".episode")
    assert panels.count() == 1 and "correct" in panels.inner_text()
    page.get_by_role("button", name="Two arms").click()
    assert [panel.locator("h3").inner_text() for panel in panels.all()] == [
        "ippo, seed 0, update 10, sampled", "marft, seed 0, update 10, sampled"
    ]  # fmt: skip
    page.get_by_role("button", name="Before and after training").click()
    assert [panel.locator("h3").inner_text() for panel in panels.all()] == [
        "ippo, seed 0, update 0, sampled", "ippo, seed 0, update 10, sampled"
    ]  # fmt: skip
    assert page.locator("#episode-list option").first.inner_text() == "0: wrong → correct"
    assert "value" not in panels.first.inner_text() and "advantage +0.75" in panels.last.inner_text()
    assert panels.last.get_by_role("img").get_attribute("aria-label").endswith("D: actor_0 sees reasoner_0")
    page.locator("#episode-list").press("ArrowDown")
    assert "Add 1 and 0." in panels.first.inner_text() and "Add 1 and 0." in panels.last.inner_text()
