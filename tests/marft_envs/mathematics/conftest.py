"""What the tests of this folder share: the case file and the data beside the repository, and what they do without."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[4] / "shared"


@pytest.fixture(scope="session")
def data_folder():
    place = Path(os.environ.get("MARFT_DATA") or SHARED / "data")
    if not place.is_dir():
        pytest.skip(f"NO REAL DATA at {place}: set MARFT_DATA to a folder with gsm8k/, math/, ... in it")
    return place


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("MARFT_CACHE", str(folder))
        yield folder
