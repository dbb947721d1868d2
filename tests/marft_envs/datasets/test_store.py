"""The cache: mapped into memory, never stale, never in the way."""

import json
import pickle
import time

import pytest

from marft_envs.datasets import store
from marft_envs.datasets.progress import shown
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.datasets.specs import SPECS

ROWS = [{"question": f"What is {i}?\ud800é", "answer": f"#### {i}"} for i in range(7_500)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def golds(task):
    return [task.problem(i).gold for i in (0, 1, task.size - 1)]


def test_the_second_time_is_quick_and_reads_no_row(path, monkeypatch):
    first = load("gsm8k", path=path, split="train")
    monkeypatch.setitem(SPECS, "gsm8k", SPECS["gsm8k"])
    monkeypatch.setattr("marft_envs.datasets.source.read_rows", None)  # a call would raise
    started = time.perf_counter()
    second = load("gsm8k", path=path, split="train")
    assert time.perf_counter() - started < 0.5
    assert golds(first) == golds(second) == ["0", "1", "7499"]
    assert second.problem(5).prompt == "What is 5?\ud800é"
    assert type(second._store.blob).__name__ == "memmap"


def test_a_changed_file_or_split_is_another_entry(path):
    load("gsm8k", path=path, split="train")
    path.write_text(json.dumps({"question": "q", "answer": "#### 5"}))
    assert load("gsm8k", path=path, split="train").size == 1
    other = path.with_name("other.jsonl")
    other.write_text(path.read_text())
    assert load("gsm8k", path=other, split="test").split == "test"


def test_changed_code_is_another_entry(monkeypatch):
    before = store.key_of("a")
    monkeypatch.setattr(store, "_code", lambda: "other")
    assert store.key_of("a") != before


@pytest.mark.parametrize("damage", ["items.bin", "offsets.npy", "meta.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_damaged_entry_is_built_again(path, damage, how):
    load("gsm8k", path=path, split="train")
    (file,) = store.cache_folder().glob(f"*/{damage}")
    if how == "cut":
        file.write_bytes(file.read_bytes()[:-50])
    else:
        file.unlink()
    assert golds(load("gsm8k", path=path, split="train")) == ["0", "1", "7499"]


def test_a_cache_that_cannot_be_written_is_done_without(path, monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "a file" / "cache"))
    assert golds(load("gsm8k", path=path, split="train")) == ["0", "1", "7499"]


def test_a_task_travels_to_another_process(path):
    task = pickle.loads(pickle.dumps(load("gsm8k", path=path, split="train", seed=1)))
    assert task.problem(3) == load("gsm8k", path=path, split="train", seed=1).problem(3)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("MARFT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / "marft_envs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / ".cache" / "marft_envs"


def test_progress_is_shown_once_it_takes_long(monkeypatch, capsys):
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr("marft_envs.datasets.progress.time.monotonic", lambda: float(next(clock)))
    assert list(shown("gsm8k train", list(range(6)))) == list(range(6))
    assert "gsm8k train: 2 of 6 rows" in capsys.readouterr().err
    quick = iter([0.0, 0.3, 0.6, 0.9])
    monkeypatch.setattr("marft_envs.datasets.progress.EVERY_S", 0.01)
    monkeypatch.setattr("marft_envs.datasets.progress.time.monotonic", lambda: next(quick))
    list(shown("gsm8k train", list(range(3))))
    assert capsys.readouterr().err == ""


def test_no_leftovers(path):
    load("gsm8k", path=path, split="train")
    assert [entry for entry in store.cache_folder().iterdir() if entry.name.startswith(".")] == []
