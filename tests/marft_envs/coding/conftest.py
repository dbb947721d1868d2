"""Programs that try to cheat run in the sandbox under test, and this whole process in a private mount namespace."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _apart(private_mount_namespace):
    """See tests/conftest.py."""
