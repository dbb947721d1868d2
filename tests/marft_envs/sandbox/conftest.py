"""Fixtures of the sandbox tests. Hostile programs run in the sandbox only, and pytest in a private mount namespace."""

import pytest

from marft_envs.sandbox import LocalSandbox, SandboxUnavailable, Stdin, cgroups


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


@pytest.fixture
def cgroup_parent():
    """Folder below which this process creates cgroups; skips where it may not."""
    try:
        cgroup = cgroups.create()
    except cgroups.CgroupUnavailable as reason:
        pytest.skip(f"no cgroup can be created here: {reason}")
    cgroup.remove()
    return cgroup.folder.parent


@pytest.fixture(params=["namespace", "landlock"])
def cgroup_box(request, cgroup_parent, private_mount_namespace):
    """A sandbox of each level, of which a server with a cgroup is idle."""
    box = LocalSandbox(request.param)
    assert box.limited_by == "cgroup"
    assert box.run("print(1)", [Stdin("")]).runs[0].stdout == "1\n"
    yield box
    box.close()
