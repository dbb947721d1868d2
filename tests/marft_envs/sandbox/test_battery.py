"""Every attack is contained at every level, as root and as an ordinary user, with and without namespaces.

The attacks run in the sandbox under test, in a separate process in a private mount namespace (``battery.py``).
"""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PRIVATE = ["unshare", "-m", "--propagation", "private"]
if os.geteuid() != 0:
    PRIVATE = ["unshare", "-U", "--map-current-user", *PRIVATE[1:]]
AS_USER = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
REFUSED = [str(HERE / "without_namespaces.py")]
VARIANTS = {
    "landlock": ("landlock", "landlock", False, False),
    "namespace": ("namespace", "namespace", False, False),
    "landlock-user": ("landlock", "landlock", True, False),
    "namespace-user": ("namespace", "namespace", True, False),
    "refused": ("strongest", "landlock", False, True),
    "refused-user": ("strongest", "landlock", True, True),
}
"""Name -> level requested, level expected, whether as an ordinary user, whether namespaces are refused."""
GROUPS = ["network", "reading", "writing", "processes", "signals", "kernel", "memory", "time", "output", "returned"]


def python_for_everybody():
    """Return an interpreter of this version that an ordinary user can read, None if there is none."""
    version = f"python3.{sys.version_info.minor}"
    for path in (sys._base_executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        if path and all(folder.stat().st_mode & 1 for folder in Path(path).resolve().parents):
            return path
    return None


def command(level, as_user, refused):
    """Return the command line of one variant; skip the test if this host does not support it."""
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        pytest.skip("needs Linux and unshare")
    if subprocess.run([*PRIVATE, "true"], capture_output=True).returncode:
        pytest.skip("no private mount namespace can be made here")
    python = sys.executable
    words = list(PRIVATE)
    if as_user and os.geteuid() == 0:
        python = python_for_everybody()
        if python is None or not shutil.which("setpriv"):
            pytest.skip("no interpreter of this version that an ordinary user can read, or no setpriv")
        words += AS_USER
    if refused:
        words += [python, *REFUSED]
    return [*words, python, str(HERE / "battery.py"), level]


@functools.cache
def started(name):
    """Start the process of one variant, once. Several variants run at the same time."""
    level, _, as_user, refused = VARIANTS[name]
    path = os.pathsep.join([str(ROOT), str(Path(numpy.__file__).parents[1])])
    return subprocess.Popen(
        command(level, as_user, refused),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
    )


@functools.cache
def result(name):
    out, err = started(name).communicate(timeout=300)
    assert started(name).returncode == 0, err[-2000:]
    return json.loads(out)


SLOW = ("landlock", "namespace-user", "refused-user")
MAX_S = 30  # ten times the wall limit of 2 s, for a busy program on a loaded machine, and a margin


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in VARIANTS])
def battery(request):
    for name in VARIANTS:  # those that are not slow run at the same time
        if name not in SLOW:
            with contextlib.suppress(pytest.skip.Exception):
                started(name)
    return request.param, result(request.param)


def test_the_level_is_the_expected_one_and_the_sandbox_still_works(battery):
    name, found = battery
    assert found["level"] == VARIANTS[name][1]
    assert found["still_works"]
    assert found["left"] == [], "processes outlive the sandbox"


@pytest.mark.parametrize("group", GROUPS)
def test_contained(battery, group):
    rows = [row for row in battery[1]["rows"] if row["attack"].startswith(f"{group}/")]
    assert len(rows) >= 6
    assert [row for row in rows if row["escaped"] or row["harm"]] == []
    assert [row for row in rows if row["status"] == "fault"] == []
    assert [row for row in rows if row["seconds"] > MAX_S or row["stdout_bytes"] > 4 << 20] == []


TIMES = [
    "loop",
    "loop_in_c",
    "regular_expression",
    "loops_in_threads",
    "sleep",
    "stopped",
    "ignores_signals",
    "waits_for_input",
]
STATUSES = {f"time/{name}": "timeout" for name in [*TIMES, "exit_handler", "thread_left"]} | {
    "memory/one_process": "memory", "output/stdout": "output_limit", "output/stderr": "output_limit",
    "output/raw": "output_limit", "output/crash": "runtime_error", "returned/flood": "output_limit",
    "returned/deep": "runtime_error", "returned/raw_digits": "wrong", "returned/raw_brackets": "wrong",
}  # fmt: skip


def test_programs_that_exceed_a_limit_get_the_status_of_that_limit(battery):
    found = {row["attack"]: row["status"] for row in battery[1]["rows"]}
    assert {attack: found[attack] for attack in STATUSES} == STATUSES
