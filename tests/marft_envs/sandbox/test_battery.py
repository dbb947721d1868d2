"""Every attack is contained at every level, as root and as an ordinary user, with and without namespaces.

The attacks run in the sandbox under test, in a separate process in a private mount namespace (``battery.py``).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tests.marft_envs.sandbox.attacks import GROUPS, RETURNED

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
SLOW = ("landlock", "namespace-user", "refused", "refused-user")
MAX_S = 30  # ten times the wall limit of 2 s, for a busy program on a loaded machine, and a margin
TIMES = [
    "loop",
    "loop_in_c",
    "regular_expression",
    "loops_in_threads",
    "sleep",
    "stopped",
    "ignores_signals",
    "waits_for_input",
    "sleep_to_one_tick",
    "short_sleeps_in_threads",
    "wakes_its_threads",
    "yields",
]
STATUSES = {f"time/{name}": "timeout" for name in [*TIMES, "exit_handler", "thread_left"]} | {
    "memory/one_process": "memory", "memory/beyond_the_limit": "memory",
    "memory/beyond_the_limit_for_a_moment": "memory",
    "memory/beyond_the_limit_in_threads": "memory", "output/stdout": "output_limit", "output/stderr": "output_limit",
    "output/raw": "output_limit", "output/crash": "runtime_error", "returned/flood": "output_limit",
    "returned/deep": "runtime_error", "returned/raw_digits": "wrong", "returned/raw_brackets": "wrong",
}  # fmt: skip


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


def run_battery(name):
    """Return the results of all attacks in one variant."""
    level, _, as_user, refused = VARIANTS[name]
    path = os.pathsep.join([str(ROOT), str(Path(numpy.__file__).parents[1])])
    done = subprocess.run(
        command(level, as_user, refused),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        cwd="/",
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in VARIANTS])
def test_every_attack_is_contained(name):
    """One test per variant, so that each variant runs once, also when the tests are spread over processes."""
    found = run_battery(name)
    assert found["level"] == VARIANTS[name][1]
    assert found["still_works"], "the sandbox no longer runs a correct program"
    assert found["left"] == [], "processes outlive the sandbox"
    rows = {row["attack"]: row for row in found["rows"]}
    groups = {**GROUPS, "returned": RETURNED}
    assert set(rows) == {f"{group}/{attack}" for group, attacks in groups.items() for attack in attacks}
    assert [row for row in rows.values() if row["escaped"] or row["harm"]] == []
    assert [row for row in rows.values() if row["status"] == "fault"] == []
    assert [row for row in rows.values() if row["seconds"] > MAX_S or row["stdout_bytes"] > 4 << 20] == []
    assert {attack: rows[attack]["status"] for attack in STATUSES} == STATUSES
