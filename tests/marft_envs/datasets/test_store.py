"""The cache of converted rows: mapped into memory, never outdated, and not needed."""

import json
import pickle
import shutil
import time

import pytest

from marft_envs.coding import datasets as programs
from marft_envs.datasets import cache, store
from marft_envs.mathematics import datasets
from marft_envs.mathematics.datasets import load

ROWS = [{"question": f"What is {i}?\ud800é", "answer": f"#### {i}"} for i in range(7_500)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file of 60 rows, and an empty cache."""
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "cache"))
    return write(tmp_path / "train.jsonl", ROWS[:60])


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def golds(task):
    return [task.problem(i).gold for i in (0, 1, task.size - 1)]


def entries():
    return sorted(entry.name for entry in store.store_folder().iterdir())


def test_the_second_load_is_quick_and_reads_no_row(path, monkeypatch):
    write(path, ROWS)
    first = load("gsm8k", path=path, split="train")
    monkeypatch.setattr("marft_envs.datasets.source.read_rows", None)  # a call would raise
    started = time.perf_counter()
    second = load("gsm8k", path=path, split="train")
    assert time.perf_counter() - started < 0.5
    assert golds(first) == golds(second) == ["0", "1", "7499"]
    assert second.problem(5).prompt == "What is 5?\ud800é"
    assert type(second._usable_rows.store.blob).__name__ == "memmap"


def test_programs_are_cached_too_and_come_back_unchanged(tmp_path, monkeypatch):
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "cache"))
    row = {
        "task_id": 11,
        "text": "Add \ud800é.",
        "code": "def add(a, b): return a + b",
        "test_list": ["assert add(1, 2) == 3"],
    }
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(row))
    first = programs.load("mbpp", path=tmp_path)
    assert len(entries()) == 1
    monkeypatch.setattr("marft_envs.datasets.source.read_rows", None)
    assert programs.load("mbpp", path=tmp_path).problem(0) == first.problem(0)


def test_a_changed_file_and_another_split_are_other_entries(path):
    load("gsm8k", path=path, split="train")
    path.write_text(json.dumps({"question": "q", "answer": "#### 5"}))
    assert load("gsm8k", path=path, split="train").size == 1
    other = path.with_name("other.jsonl")
    other.write_text(path.read_text())
    assert load("gsm8k", path=other, split="test").split == "test"
    assert len(entries()) == 3


@pytest.mark.parametrize("name", ["grader/gold_check.py", "datasets/row_readers.py"])
def test_changed_code_is_another_entry(path, tmp_path, monkeypatch, name):
    """A copy of the mathematics package stands for it; hash_code reads it anew, as another process would."""
    code = tmp_path / "mathematics"
    shutil.copytree(datasets.CODE[0], code)
    monkeypatch.setattr(datasets, "CODE", (code,))
    load("gsm8k", path=path, split="train")
    load("gsm8k", path=path, split="train")
    assert len(entries()) == 1
    (code / name).write_text((code / name).read_text() + "# changed\n")
    store.hash_code.cache_clear()
    load("gsm8k", path=path, split="train")
    assert len(entries()) == 2


def test_the_key_covers_names_contents_and_this_package(tmp_path):
    def key():
        store.hash_code.cache_clear()
        return store.key_of("gsm8k", code=(tmp_path,))

    (tmp_path / "a.py").write_text("x = 1")
    keys = [key()]
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    keys.append(key())
    (tmp_path / "c.py").write_text("")
    keys.append(key())
    assert len(set(keys)) == 3
    (tmp_path / "notes.txt").write_text("not code")
    assert key() == keys[-1]
    assert store.key_of("gsm8k", code=()) != store.key_of("svamp", code=())


@pytest.mark.parametrize("subject", [datasets, programs], ids=["mathematics", "coding"])
def test_every_module_that_converts_rows_is_in_the_key(subject):
    """The records below hold no rule about rows; any other module must be in this package or in the subject's CODE."""
    grimp = pytest.importorskip("grimp", reason="comes with import-linter: pip install '.[dev]'")
    records = {"arguments", "sandbox", "task", "transcript", "verdict"}
    modules = grimp.build_graph("marft_envs").find_upstream_modules(f"{subject.__name__}.specs") - {"marft_envs"}
    hashed = (subject.CODE[0].name, "datasets")
    assert {module.split(".")[1] for module in modules} <= {*records, *hashed}


@pytest.mark.parametrize("damage", ["items.bin", "offsets.npy", "meta.json"])
@pytest.mark.parametrize("how", ["truncated", "deleted"])
def test_a_damaged_entry_is_built_again(path, damage, how):
    load("gsm8k", path=path, split="train")
    (file,) = store.store_folder().glob(f"*/{damage}")
    if how == "truncated":
        file.write_bytes(file.read_bytes()[:-50])
    else:
        file.unlink()
    assert golds(load("gsm8k", path=path, split="train")) == ["0", "1", "59"]


def test_without_a_writable_cache_rows_stay_in_memory(path, monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "a file" / "cache"))
    assert golds(load("gsm8k", path=path, split="train")) == ["0", "1", "59"]


def test_a_task_can_be_pickled(path):
    task = pickle.loads(pickle.dumps(load("gsm8k", path=path, split="train", seed=1)))
    assert task.problem(3) == load("gsm8k", path=path, split="train", seed=1).problem(3)


def test_the_cache_folder_follows_its_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "own"
    assert store.store_folder() == tmp_path / "own" / "datasets"
    monkeypatch.delenv("MARFT_CACHE")
    assert cache.cache_folder() == tmp_path / "marft_envs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == tmp_path / ".cache" / "marft_envs"


def test_writing_leaves_no_drafts(path):
    load("gsm8k", path=path, split="train")
    assert [name for name in entries() if name.startswith(".")] == []
