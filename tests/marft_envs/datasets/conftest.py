"""A cache folder for the session, so that no test reads or writes the user's; no test sees the user's MARFT_DATA."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("MARFT_CACHE", str(folder))
        yield folder


@pytest.fixture
def no_data_folder(monkeypatch):
    monkeypatch.delenv("MARFT_DATA", raising=False)
