"""Headless Chromium for the pages. ``make test-browser`` runs these tests."""

import os
import shutil
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """A browser: the one that CHROMIUM names, or else one on the path."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "no Chromium: expected one on the path (apt-get install chromium), or CHROMIUM=PATH"
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's own sandbox refuses to work for root
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=shutil.which(program), args=arguments)
        yield running
        running.close()


class Opened:
    """A page, with what went wrong in it and what it asked of the network."""

    def __init__(self, page, path):
        self.page, self.errors, self.requests = page, [], []
        page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        started = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("#episode-list option", state="attached")
        self.seconds = time.perf_counter() - started  # until the episodes are listed
        self.requests = [url for url in self.requests if url != path.as_uri()]


@pytest.fixture
def open_page(browser):
    """Open a file: ``open_page(path, width=390, scheme="dark")``."""
    contexts = []

    def opened(path, width=1280, scheme="light"):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        contexts[-1].set_default_timeout(10_000)
        return Opened(contexts[-1].new_page(), path)

    yield opened
    for context in contexts:
        context.close()
