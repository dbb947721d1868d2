"""Tests of this folder run programs that try to cheat, so the process moves to a private mount namespace."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _isolated(private_mount_namespace):
    """See tests/conftest.py."""
