"""Honest programs give the same output and exit code in the sandbox as with ``python program.py``."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from marft_envs.sandbox import Limits, LocalSandbox, RunStatus, Stdin
from tests.marft_envs.sandbox.honest_programs import GROUPS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")

LIMITS = Limits(cpu_s=5, memory_mib=256)
PROGRAMS = {f"{group}/{name}": case for group, cases in GROUPS.items() for name, case in cases.items()}
FAST = (
    "exit/atexit_to_the_original_stdout", "exit/open_1", "exit/open_1_in_a_class", "exit/stdout_none_unflushed",
    "exit/stdout_closed", "exit/del_with_functions", "exit/exit_code_huge", "exit/stderr_none_and_exit_message",
    "input/carriage_returns", "input/lone_carriage_return", "numbers/many_digits", "numbers/many_digits_read",
    "process/file", "process/getsource", "process/devnull", "process/configparser", "threads/sixty_alive",
    "threads/thread_pool", "threads/rlock", "files/temporary_file", "files/shared_value",
)  # fmt: skip
MODULES = sorted(
    name
    for name in sys.stdlib_module_names
    # idlelib, turtledemo, ensurepip and lib2to3 are not readable; antigravity and this do more than define names.
    if name not in ("idlelib", "turtledemo", "ensurepip", "lib2to3", "antigravity", "this", "__main__")
    and not name.startswith("_")
)


def as_python(program, text, folder):
    """Return (exit code, stdout) of a Python process that runs the program with files as standard streams."""
    (folder / "program.py").write_bytes(program.encode())
    (folder / "stdin").write_bytes(text.encode())
    words = [sys.executable, "-X", "utf8", "-X", "int_max_str_digits=0", str(folder / "program.py")]
    environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(Path(numpy.__file__).parents[1]), "PYTHONPYCACHEPREFIX": ""}
    with (folder / "stdin").open("rb") as stdin, (folder / "stdout").open("wb+") as stdout:
        done = subprocess.run(
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            cwd=folder,
            timeout=60,
        )
    return done.returncode, (folder / "stdout").read_bytes().decode("utf-8", "replace")


def case_of(name):
    case = PROGRAMS[name]
    return case if isinstance(case, tuple) else (case, "")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in FAST)) for n in PROGRAMS])
def test_a_program_behaves_as_in_a_python_process(sandbox, name, tmp_path):
    if sandbox.level != "namespace" and name.startswith("files/"):
        pytest.skip("only the level namespace has a folder for temporary files")
    program, text = case_of(name)
    code, stdout = as_python(program, text, tmp_path)
    run = sandbox.run(program, [Stdin(text)], LIMITS).runs[0]
    assert (run.status is RunStatus.DONE, run.stdout) == (code == 0, stdout), run.detail


def test_there_are_two_hundred_programs():
    assert len(PROGRAMS) >= 200


@pytest.mark.slow
def test_every_module_of_the_standard_library_imports_as_in_a_python_process(sandbox, tmp_path):
    program = f"for name in {MODULES!r}:\n    try: __import__(name)\n    except ImportError: print(name)\n"
    code, stdout = as_python(program, "", tmp_path)
    run = sandbox.run(program, [Stdin("")], Limits(cpu_s=30, memory_mib=512)).runs[0]
    assert (run.status, code) == (RunStatus.DONE, 0), run.detail
    assert run.stdout == stdout


def test_modules_import_without_compiled_files(tmp_path):
    """The importer of a child must find the source files too: an installation may have no .pyc files."""
    program = "import configparser, fileinput, sched, colorsys\nprint('imported')"
    script = f"""
import sys
from marft_envs.sandbox import LocalSandbox, Stdin, fork_server
fork_server._ENVIRONMENT["PYTHONPYCACHEPREFIX"] = {str(tmp_path)!r}
for level in ("namespace", "landlock"):
    sandbox = LocalSandbox(level)
    try: print(sandbox.run({program!r}, [Stdin("")]).runs[0].stdout, end="")
    except Exception as error: print(error)
    sandbox.close()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line != "imported"] == [] or "level" in lines[0], done.stderr
    assert "imported" in lines


def test_a_line_that_ends_in_crlf_reaches_input_without_the_carriage_return(sandbox):
    """Unlike Python on Linux: such tests come from Windows, where a right program never sees it."""
    program = "import sys\nprint(repr(input()), repr(sys.stdin.readline()))"
    assert sandbox.run(program, [Stdin("ab\r\ncd\r\n")]).runs[0].stdout == "'ab' 'cd\\r\\n'\n"


def test_a_run_finds_no_file_of_the_run_before():
    box = LocalSandbox("namespace")
    leave = "import os\nfor n in range(99): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('x', 'w').write('secret')"
    look = "import os\nprint(os.listdir('.'), os.listdir('/tmp'))"
    outputs = [box.run(program, [Stdin("")]).runs[0].stdout for program in (look, leave, look)]
    box.close()
    assert outputs == ["[] []\n", "", "[] []\n"]
