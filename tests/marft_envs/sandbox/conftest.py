"""Fixtures of the sandbox tests. Hostile programs run in the sandbox only, and pytest in a private mount namespace."""

import pytest

from marft_envs.sandbox import LocalSandbox, SandboxUnavailable


@pytest.fixture(scope="session", autouse=True)
def _private_mounts(private_mount_namespace):
    """See tests/conftest.py."""


@pytest.fixture(scope="session", params=["namespace", "landlock"])
def sandbox(request, private_mount_namespace):
    """A sandbox of each isolation level, shared by all tests; skips the levels that this host does not have."""
    shared = LocalSandbox(request.param)
    try:
        assert shared.level == request.param
    except SandboxUnavailable as reason:
        if "self-test" in str(reason):  # the level does not isolate: that is a failure, not a missing feature
            raise
        pytest.skip(str(reason))
    yield shared
    shared.close()
