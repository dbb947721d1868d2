"""Tests keep out of the user's cache: converted data sets and models go to a folder of this run."""

import os
import tempfile
from pathlib import Path

_CACHE = tempfile.TemporaryDirectory(prefix="marft-tests-")
if "MARFT_CACHE" not in os.environ:
    os.environ["MARFT_CACHE"] = _CACHE.name

_SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
if "MARFT_DATA" not in os.environ and _SHARED.is_dir():
    os.environ["MARFT_DATA"] = str(_SHARED)
