"""Isolation levels: the self-test of a server, the refusal to run programs, the unsafe level, and the limits."""

import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from marft_envs.sandbox import (
    Limits,
    LocalSandbox,
    RunStatus,
    SandboxUnavailable,
    Stdin,
    UnsafeSandboxWarning,
    self_check,
    server_pool,
)
from marft_envs.sandbox.fork_server import ForkServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")


def test_a_failed_self_test_names_what_a_program_could_do(monkeypatch, tmp_path):
    """With a probe that reports two successful attempts, no server is used."""
    source = Path(self_check._PROBE).read_text().replace("    could = []\n", "    could = ['read_file', 'tcp']\n")
    probe = tmp_path / "probe.py"
    probe.write_text(source)
    monkeypatch.setattr(self_check, "_PROBE", probe)
    message = "cannot be isolated on this host, so none is run.*a confined program could: read_file, tcp.*sandbox="
    with pytest.raises(SandboxUnavailable, match=message):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_the_self_test_finds_missing_isolation():
    """On a server without Landlock and seccomp the probe really reads, writes, connects and forks."""
    server = ForkServer("rlimits")
    try:
        with pytest.raises(SandboxUnavailable) as refusal:
            self_check.check_server(server)
    finally:
        server.close()
    for attempt in (
        "read_file",
        "read_environment",
        "list_folder",
        "write_file",
        "overwrite_file",
        "tcp",
        "udp",
        "fork",
    ):
        assert attempt in str(refusal.value)


def test_a_kernel_without_landlock_is_refused_with_a_clear_message(monkeypatch):
    def start(level, kind):
        raise SandboxUnavailable(f"level {level}: the kernel has no Landlock")

    monkeypatch.setattr(server_pool, "_start", start)
    with pytest.raises(SandboxUnavailable, match=r"namespace.*Landlock.*landlock.*5\.13.*allow_unsafe=True"):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_another_operating_system_is_refused_and_the_message_names_the_external_runner(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    message = r"needs Linux, this is darwin.*marft_envs\.sandbox\.runner.*docs/grading\.md"
    with pytest.raises(SandboxUnavailable, match=message):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_the_unsafe_level_must_be_requested_and_warns_at_every_run(caplog):
    with pytest.raises(ValueError, match="allow_unsafe=True"):
        LocalSandbox("rlimits")
    sandbox = LocalSandbox("rlimits", allow_unsafe=True)
    for _ in range(3):
        with pytest.warns(UnsafeSandboxWarning, match="can harm this host"):
            assert sandbox.run("print(1)", [Stdin("")]).isolation == "rlimits"
    sandbox.close()
    assert [record.message[-22:] for record in caplog.records] == ["and can harm this host"] * 3


def test_allow_unsafe_still_uses_the_strongest_available_level():
    sandbox = LocalSandbox(allow_unsafe=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sandbox.run("print(1)", [Stdin("")]).isolation in ("namespace", "landlock")
    sandbox.close()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"cpu_s": 0}, "cpu_s=0: expected a positive number"),
        ({"cpu_s": float("inf")}, "cpu_s=inf: expected a positive number"),
        ({"memory_mib": -1}, "memory_mib=-1: expected a positive number"),
        ({"output_mib": True}, "output_mib=True: expected a positive number"),
        ({"memory_mib": 512.5}, "memory_mib=512.5: expected a positive integer"),
        ({"output_mib": 1.0}, "output_mib=1.0: expected a positive integer"),
    ],
)
def test_limits_are_validated(limits, message):
    with pytest.raises(ValueError, match=message):
        Limits(**limits)


def test_an_unknown_level_is_named():
    with pytest.raises(ValueError, match="level='docker': expected one of namespace, landlock, rlimits or None"):
        LocalSandbox("docker")


def test_packages_below_the_folder_for_temporary_files(monkeypatch):
    """As in a checkout below /tmp: numpy is found there, and temporary files go to another folder."""
    real = server_pool.numpy_folder()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for name in ("numpy", "numpy.libs"):
            Path(folder, name).symlink_to(real / name)
        monkeypatch.setattr(server_pool, "numpy_folder", lambda: Path(folder))
        sandbox = LocalSandbox(level="namespace")
        program = (
            "import tempfile\nimport numpy\nwith tempfile.TemporaryFile('w+') as file:\n    file.write('7')\n"
            "    file.seek(0)\n    print(numpy.arange(4).sum(), file.read(), numpy.__file__.startswith('/tmp'))"
        )
        (run,) = sandbox.run(program, [Stdin("")]).runs
        assert (run.status, run.stdout) == (RunStatus.DONE, "6 7 True\n"), run.detail
