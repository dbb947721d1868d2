"""Checkpoints are complete or absent: killed writers, full disks, corrupt files."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from baselines.runs import checkpoint
from baselines.runs.checkpoint import CheckpointError, newest, read, write

ROOT = Path(__file__).resolve().parents[3]
FILES = {"adapters/a_0/weights": b"w" * 5000, "state.pt": b"s" * 3000}


def save(parent, update, keep=2):
    return write(parent, update, {k: v + str(update).encode() for k, v in FILES.items()}, {"note": update}, keep=keep)


def names(parent):
    return sorted(p.name for p in parent.iterdir())


def test_the_newest_checkpoints_are_kept_and_read_back(tmp_path):
    for update in (1, 2, 10):
        save(tmp_path, update)
    assert names(tmp_path) == ["000002", "000010"]
    found = newest(tmp_path)
    assert found.checkpoint.update == 10 and found.checkpoint.manifest["note"] == 10 and found.skipped == []
    assert (found.checkpoint.folder / "state.pt").read_bytes() == FILES["state.pt"] + b"10"
    assert set(found.checkpoint.manifest["files"]) == set(FILES)


def test_a_repeated_update_replaces_its_checkpoint(tmp_path):
    save(tmp_path, 1)
    save(tmp_path, 1)
    assert names(tmp_path) == ["000001"] and newest(tmp_path).checkpoint.update == 1


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


def other_schema(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": "marft-checkpoint/9"}))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("state.pt", flip, "the SHA-256 of state.pt differs from its manifest"),
        ("adapters/a_0/weights", halve, "the SHA-256 of adapters/a_0/weights differs from its manifest"),
        ("adapters/a_0/weights", Path.unlink, "is incomplete: weights is missing"),
        ("manifest.json", Path.unlink, "is incomplete: manifest.json is missing"),
        ("manifest.json", halve, "manifest.json cannot be read"),
        ("manifest.json", lambda p: p.write_text("[]"), "manifest.json cannot be read"),
        (
            "manifest.json",
            lambda p: p.write_text('{"schema": "marft-checkpoint/1"}'),
            "cannot be read (KeyError('files'))",
        ),
        ("state.pt", replace_by_folder, "state.pt cannot be read: Is a directory"),
        ("manifest.json", other_schema, "schema='marft-checkpoint/9', expected 'marft-checkpoint/1'"),
    ],
)
def test_a_corrupt_checkpoint_is_reported_and_the_previous_one_used(tmp_path, name, damage, message):
    save(tmp_path, 1)
    damage(save(tmp_path, 2) / name)
    found = newest(tmp_path)
    assert found.checkpoint.update == 1
    (reason,) = found.skipped
    assert str(tmp_path / "000002") in reason and message in reason
    with pytest.raises(CheckpointError, match="000002"):
        read(tmp_path / "000002")


def test_no_checkpoint_at_all(tmp_path):
    assert newest(tmp_path / "nowhere").checkpoint is None
    halve(save(tmp_path, 1) / "state.pt")
    assert newest(tmp_path).checkpoint is None and len(newest(tmp_path).skipped) == 1


# --- kill -9


def killed_at(call, parent, update):
    """Save in a child process that is killed at its ``call``-th file operation. Return whether it was."""
    child = os.fork()
    if child == 0:
        calls = 0

        def dying(name, real):
            def step(*arguments, **keywords):
                nonlocal calls
                calls += 1
                if calls == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **keywords)

            setattr(*name, step)

        for owner, name in (
            (os, "fsync"),
            (os, "rename"),
            (os, "mkdir"),
            (os, "rmdir"),
            (os, "unlink"),
            (Path, "rename"),
        ):
            dying((owner, name), getattr(owner, name))
        save(parent, update)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_a_writer_killed_at_any_file_operation_leaves_a_complete_checkpoint(tmp_path):
    seen = set()
    for call in range(1, 60):
        parent = tmp_path / str(call)
        save(parent, 1)
        save(parent, 2)
        died = killed_at(call, parent, 3)
        found = newest(parent)
        assert found.skipped == [] and found.checkpoint.update in (2, 3), f"killed at call {call}"
        assert all(read(parent / n) for n in names(parent) if n.isdigit())  # no checkpoint is partly deleted
        seen.add(found.checkpoint.update if died else "finished")
        save(parent, 4)  # the next writer deletes what the killed one left
        assert [n for n in names(parent) if not n.isdigit()] == [] and newest(parent).checkpoint.update == 4
        if not died:
            break
    assert seen == {2, 3, "finished"}


# --- a full disk


@pytest.mark.parametrize("file", [1, 2, 3])
def test_a_full_disk_is_reported_and_the_previous_checkpoint_is_intact(tmp_path, monkeypatch, file):
    save(tmp_path, 1)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    real, written = checkpoint.write_synced, []

    def full(path, data):
        written.append(path)
        if len(written) == file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(checkpoint, "write_synced", full)
    with pytest.raises(CheckpointError, match=r"No space left on device; the one of update 1 is intact\. Make room"):
        save(tmp_path, 2)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_another_disk_error_is_not_reported_as_a_full_disk(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"Not a directory; .*\. Fix the cause, then resume the run$"):
        save(tmp_path / "file" / "checkpoints", 1)


REALLY_FULL = """
import sys
from pathlib import Path
from baselines.runs.checkpoint import CheckpointError, newest, write
parent = Path(sys.argv[1])
write(parent, 1, {"state.pt": bytes(30_000)}, {}, keep=2)
try:
    write(parent, 2, {"state.pt": bytes(300_000)}, {}, keep=2)
except CheckpointError as error:
    print(error)
print(newest(parent).checkpoint.update, [p.name for p in parent.iterdir()])
"""


def test_a_disk_that_is_really_full(tmp_path):
    program = f"mount -t tmpfs -o size=128k none {tmp_path} && exec {sys.executable} -c '{REALLY_FULL}' {tmp_path}/c"
    if not shutil.which("unshare"):
        pytest.skip("no unshare: cannot make a small disk")
    run = subprocess.run(["unshare", "-rm", "sh", "-c", program], capture_output=True, text=True, cwd=ROOT)
    if "unshare" in run.stderr or "mount:" in run.stderr:
        pytest.skip(f"cannot make a small disk: {run.stderr.strip()}")
    message, after = run.stdout.splitlines()
    assert "No space left on device; the one of update 1 is intact" in message and after == "1 ['000001']", run.stderr
