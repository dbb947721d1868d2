"""The page of a trace in headless Chromium: the command, its speed, its search, and text that stays text."""

import json

import pytest

import marft_envs
from marft_envs.__main__ import main
from marft_envs.batch import BatchRunner
from marft_envs.traces import Recorder
from tests.benchmarks.made_episodes import episode, header

pytestmark = pytest.mark.browser
EPISODES, LIMIT_S = 5_000, 2.0


def page_of(path, rows):
    """Write a trace and its page."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["show", str(path)]) == 0
    return path.with_suffix(".html")


def test_5000_episodes_open_in_two_seconds(tmp_path, open_page):
    words = "the half of the sum that I know and pass on to the next agent, step by step, is " * 4
    rows = [header(update=7, dataset=""), *(episode(i, i % 3 == 0, words) for i in range(EPISODES))]
    path = page_of(tmp_path / "run.jsonl", rows)
    opened = open_page(path)
    assert opened.seconds < LIMIT_S, f"{opened.seconds:.2f} s"
    assert f"{EPISODES} episodes of math_v0, arguments {{}}; update 7" in opened.page.locator("main").inner_text()
    options = opened.page.locator("#episode-list option")
    assert options.count() == 500 and "5000 of 5000 recorded" in opened.page.get_by_role("status").inner_text()
    opened.page.get_by_role("button", name="List all").click()
    assert options.count() == EPISODES and opened.errors == []
    opened.page.get_by_label("Search in text").fill("add 4711 ")
    assert options.all_inner_texts() == ["4711: ✗ wrong"]


def test_the_list_is_searched_and_filtered_by_keyboard(tmp_path, open_page):
    rows = [header(), *(episode(i, i % 2 == 0, "it is" if i < 6 else "perhaps") for i in range(9))]
    page = open_page(page_of(tmp_path / "run.jsonl", rows)).page
    options = page.locator("#episode-list option")
    page.locator("label", has_text="Verdict").locator("select").select_option("✗ wrong")
    assert options.all_inner_texts() == [f"{i}: ✗ wrong" for i in (1, 3, 5, 7)]
    page.get_by_label("Search in text").press_sequentially("PERHAPS")
    assert options.all_inner_texts() == ["7: ✗ wrong"] and "1 of 9 recorded" in page.get_by_role("status").inner_text()
    assert "Add 7 and 0." in page.locator(".episode").inner_text()
    page.get_by_label("Token probabilities").press("Space")
    token = page.locator(".token").first
    assert token.inner_text() == "perhaps" and token.get_attribute("title") == "90.5 %"  # exp(-0.1)


def test_an_episode_shows_observations_replies_and_rewards_of_a_real_environment(tmp_path, open_page, capsys):
    env = marft_envs.math_v0.env(team="trio", rounds=2, dataset="relay")
    runner = BatchRunner(env, 2)
    with Recorder(tmp_path / "run.jsonl", env, observations=True, with_gold=True) as recorder:
        for played in runner.stream(lambda requests: [f"I say {r.turn}" for r in requests], episodes=2, seed=0):
            recorder.record(played)
    assert main(["show", str(tmp_path / "run.jsonl"), "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'page.html'}; open it in a browser\n"
    opened = open_page(tmp_path / "page.html", width=390)
    turns = opened.page.locator(".turn")
    assert turns.count() == 6 and "I say 5" in turns.last.inner_text() and "round 2" in turns.last.inner_text()
    turns.last.locator("summary").press("Enter")
    assert "I say 4" in turns.last.inner_text()  # what the last agent read
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390 and opened.errors == []


def test_text_of_a_model_stays_text(tmp_path, open_page):
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    opened = open_page(page_of(tmp_path / "run.jsonl", [header(), episode(1, True, evil)]))
    assert evil in opened.page.locator(".turn").first.inner_text()
    assert opened.page.locator("img").count() == 0 and opened.errors == []


def test_axe_finds_no_serious_fault(tmp_path, open_page):
    from axe_playwright_python.sync_playwright import Axe

    path = page_of(tmp_path / "run.jsonl", [header(), *(episode(i, i % 2 == 0) for i in range(4))])
    for scheme in ("light", "dark"):
        page = open_page(path, scheme=scheme).page
        page.get_by_label("Token probabilities").check()
        found = Axe().run(page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
