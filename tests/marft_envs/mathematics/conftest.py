"""Fixtures for real data sets and for a cache folder of the tests' own."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[4] / "shared"


@pytest.fixture(scope="session")
def data_folder():
    folder = Path(os.environ.get("MARFT_DATA") or SHARED / "data")
    if not folder.is_dir():
        pytest.skip(f"NO REAL DATA at {folder}: set MARFT_DATA to a folder that contains gsm8k/, math/, ...")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("MARFT_CACHE", str(folder))
        yield folder
