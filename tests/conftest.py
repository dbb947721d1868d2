"""Settings of all tests: a temporary cache folder in place of the user's, and two profiles for hypothesis.

Neither has a deadline, which would turn a busy machine into a failure. ``--hypothesis-profile thorough`` tries 2,500
examples of every property (``make test-fuzz``).
"""

import ctypes
import os
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("quick", deadline=None)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2500)
hypothesis.settings.load_profile("quick")

_CACHE = tempfile.TemporaryDirectory(prefix="marft-tests-")
if "MARFT_CACHE" not in os.environ:
    os.environ["MARFT_CACHE"] = _CACHE.name

_SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
if "MARFT_DATA" not in os.environ and _SHARED.is_dir():
    os.environ["MARFT_DATA"] = str(_SHARED)


@pytest.fixture
def clean_registry(monkeypatch):
    """Undo the registration of environments, in all registries, after the test.

    Modules that were imported in the test and registered a task are forgotten, so that another import registers it.
    """
    import gymnasium
    import pettingzoo

    import marft_envs
    from marft_envs.registry import is_versioned, registry

    ids, modules = set(pettingzoo.aec_registry), set(sys.modules)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    before = dict(registry._REGISTERED)
    monkeypatch.setattr(registry, "_REGISTERED", dict(before))
    yield
    new_tasks = {r.task.__module__ for name, r in registry._REGISTERED.items() if name not in before}
    for key in set(pettingzoo.aec_registry) - ids:
        del pettingzoo.aec_registry[key]
    for name in set(sys.modules) - modules:
        if is_versioned(name.removeprefix("marft_envs.")):
            del sys.modules[name]
            vars(marft_envs).pop(name.removeprefix("marft_envs."), None)
        elif name in new_tasks:
            del sys.modules[name]


CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


@pytest.fixture(scope="session")
def private_mount_namespace():
    """As root, move this process to a private mount namespace; an ordinary user cannot change mounts anyway."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        pytest.skip(f"no private mount namespace for programs that cheat: {os.strerror(ctypes.get_errno())}")
