"""A cache of the session's own, so that no test reads or writes the user's."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("MARFT_CACHE", str(folder))
        yield folder
