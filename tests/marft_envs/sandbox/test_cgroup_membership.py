"""The cgroup of this process, which it finds, and that of a child, which starts in it."""

import os
import sys
from pathlib import Path

import pytest

from marft_envs.sandbox import cgroups
from marft_envs.sandbox.inside.cgroup import Cgroup
from tests.marft_envs.sandbox.quick_run import run_stdin

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")

HYBRID = """\
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"""
UNIFIED = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
PART = "30 25 0:26 /machine /mnt/part rw - cgroup2 cgroup2 rw"


@pytest.mark.parametrize(
    ("membership", "mounts", "folder"),
    [
        ("0::/\n", UNIFIED, "/sys/fs/cgroup"),
        ("0::/user.slice/a.scope\n", UNIFIED, "/sys/fs/cgroup/user.slice/a.scope"),
        ("8:pids:/x\n4:memory:/y\n0::/z\n", HYBRID, "/sys/fs/cgroup/unified/z"),
        ("0::/machine/a\n", PART, "/mnt/part/a"),
        ("0::/machine/a\n", f"{PART}\n{UNIFIED}", "/mnt/part/a"),
    ],
)
def test_the_folder_of_the_own_cgroup(membership, mounts, folder):
    assert cgroups.own_folder(membership, mounts) == Path(folder)


@pytest.mark.parametrize(
    ("membership", "mounts"),
    [
        ("4:memory:/y\n", HYBRID),  # version 1 only
        ("0::/../b\n", UNIFIED),  # outside the cgroup namespace
        ("0::/user.slice\n", PART),  # outside the part that is mounted
        ("0::/\n", "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"),
    ],
)
def test_a_process_without_a_reachable_cgroup(membership, mounts):
    with pytest.raises(cgroups.CgroupUnavailable):
        cgroups.own_folder(membership, mounts)


def test_a_child_starts_in_the_cgroup(cgroup_parent):
    """Without a move, for which the kernel waits."""
    cgroup = cgroups.create()
    inside = Cgroup(cgroup.folder, 64)
    reader, writer = os.pipe()
    pid = inside.fork()
    if pid == 0:
        os.write(writer, Path("/proc/self/cgroup").read_bytes())
        os._exit(0)
    os.waitpid(pid, 0)
    membership = os.read(reader, 4096).decode()
    for descriptor in (reader, writer):
        os.close(descriptor)
    cgroup.remove()
    assert membership.splitlines()[-1].endswith(f"/{cgroup.folder.name}")


def test_the_main_thread_of_a_program_is_known_to_the_c_library(cgroup_box):
    """A signal to a thread needs the thread id that the C library has stored."""
    program = (
        "import os, signal, threading\nsignal.signal(signal.SIGUSR1, lambda *_: print('signal'))\n"
        "main = threading.main_thread()\n"
        "t = threading.Thread(target=lambda: signal.pthread_kill(main.ident, signal.SIGUSR1))\nt.start()\nt.join()\n"
        "print(threading.get_native_id() == os.getpid())"
    )
    run = run_stdin(cgroup_box, program)
    assert run.stdout == "signal\nTrue\n", run.detail
