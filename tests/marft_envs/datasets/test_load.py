"""Loading by name from every kind of file, and each kind of bad data with its own clear error."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
import types

import pytest

from marft_envs.datasets.duplicates import duplicates
from marft_envs.datasets.files import DataError
from marft_envs.datasets.hub import read_hub
from marft_envs.datasets.specs import HubSource
from marft_envs.mathematics import datasets
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.datasets.specs import SPECS
from marft_envs.verdict import Outcome

ROWS = [{"question": f"What is {i} + 1? ", "answer": f"{i} + 1 = {i + 1}\n#### {i + 1:,}"} for i in range(997, 1003)]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("MARFT_DATA", raising=False)
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path_factory.mktemp("cache")))


def write(path, rows):
    """Rows in the format that the name of ``path`` says."""
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow", reason="parquet needs pyarrow: pip install marft-envs[data]")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = json.dumps(rows) if ".json" in path.suffixes else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.json.gz", "a.parquet"])
def test_every_kind_of_file(tmp_path, name):
    task = load("gsm8k", path=write(tmp_path / name, ROWS))
    assert (task.name, task.size, task.rows, task.excluded) == ("gsm8k", 6, 6, {})
    problem = task.problem(3)
    assert (problem.prompt, problem.gold) == ("What is 1000 + 1?", "1001")  # 1,001 in the file
    assert dict(problem.notes) == {"row": 3, "split": "test"}
    assert task.grade(r"\boxed{1001}", problem).outcome is Outcome.CORRECT
    assert task.grade("1001.", problem).outcome is Outcome.CORRECT
    assert task.grade(r"\boxed{1000}", problem).outcome is Outcome.WRONG
    assert str(tmp_path / name) in task.origin and "sha256" in task.origin


@pytest.mark.parametrize("place", ["gsm8k/train.jsonl", "train.jsonl"])
def test_a_folder_and_the_variable(tmp_path, monkeypatch, place):
    (tmp_path / "gsm8k").mkdir()
    if place == "train.jsonl":
        (tmp_path / "gsm8k").rmdir()
    write(tmp_path / place, ROWS)
    assert load("gsm8k", path=tmp_path, split="train").size == 6
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))  # read at call time
    assert load("gsm8k", split="train").size == 6


def test_limit_and_seed(tmp_path):
    path = write(tmp_path / "a.jsonl", ROWS)
    golds = [load("gsm8k", path=path, limit=4).problem(i).gold for i in range(4)]
    assert golds == ["998", "999", "1000", "1001"]
    shuffled = [[load("gsm8k", path=path, seed=seed).problem(i).gold for i in range(6)] for seed in (1, 1, 2)]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[0], key=int) == [str(n) for n in range(998, 1004)]
    assert [load("gsm8k", path=path, seed=1, limit=2).problem(i).gold for i in range(2)] == shuffled[0][:2]


def test_svamp_rows(tmp_path):
    rows = [
        {"ID": f"chal-{i}", "Body": "Ann has 8 pens. ", "Question": "How many?", "Answer": answer, "Type": "Sum"}
        for i, answer in enumerate([8.0, "145.0", 14.5, -2.0, 7] * 4)
    ]
    path = write(tmp_path / "all.jsonl", rows)
    parts = {split: load("svamp", path=path, split=split) for split in ("train", "test")}
    golds = {s: [t.problem(i).gold for i in range(t.size)] for s, t in parts.items()}
    assert set(golds["train"]) <= {"8", "145", "29/2", "-2", "7"}
    ids = [t.problem(i).notes["id"] for t in parts.values() for i in range(t.size)]
    assert sorted(ids) == sorted(row["ID"] for row in rows)  # each row in one split
    assert parts["train"].problem(0).prompt == "Ann has 8 pens. How many?"


def test_math_keeps_usable_golds_and_lists_the_rest(tmp_path, caplog):
    solutions = [
        r"so $\boxed{\frac{3}{4}}$",
        r"$\boxed{x+1}$",
        r"\boxed{}",
        r"\boxed 9$.",
        r"no \boxed{1, then \boxed{-2}",
        r"\boxed{\frac{1}{7}\triangle ABC}",
    ]
    rows = [{"problem": "p", "solution": s, "level": "Level 1", "type": "Algebra"} for s in solutions]
    with caplog.at_level("WARNING"):
        task = load("math", path=write(tmp_path / "test.jsonl", rows))
    assert [task.problem(i).gold for i in range(task.size)] == [r"\frac{3}{4}", "x+1", "9", "-2"]
    assert task.excluded == {"no layer reads the gold answer": 1, r"no answer in a balanced \boxed": 1}
    assert task.unusable == ((2, r"no answer in a balanced \boxed"), (5, "no layer reads the gold answer"))
    assert dict(task.problem(2).notes) == {"level": 1, "subject": "Algebra", "row": 3, "split": "test"}
    assert task.grade(r"\boxed{1+x}", task.problem(1)).outcome is Outcome.CORRECT
    assert "2 of 6 rows left out" in caplog.text


def message(kind, name="gsm8k", **arguments):
    with pytest.raises(kind) as caught:
        load(name, **arguments)
    return str(caught.value)


def test_unknown_names_and_arguments(tmp_path):
    path = write(tmp_path / "a.jsonl", ROWS)
    text = message(DataError, "gsm8")
    assert "dataset='gsm8': unknown, expected one of gsm8k, svamp, math" in text and "did you mean 'gsm8k'?" in text
    assert "got int, expected str" in message(TypeError, 5)
    assert "split='validation': gsm8k has train, test" in message(ValueError, path=path, split="validation")
    assert "limit=0: expected at least 1" in message(ValueError, path=path, limit=0)
    assert "limit='3': got str, expected int" in message(TypeError, path=path, limit="3")
    assert "seed=-1: expected at least 0" in message(ValueError, path=path, seed=-1)


def test_index_out_of_range(tmp_path):
    task = load("gsm8k", path=write(tmp_path / "a.jsonl", ROWS))
    for index in (-1, 6):
        with pytest.raises(IndexError, match=rf"gsm8k \(size 6\)={index}: expected 0 to 5"):
            task.problem(index)
    with pytest.raises(TypeError, match="expected int"):
        task.problem(1.0)


def test_missing_places(tmp_path, monkeypatch):
    assert "nowhere.jsonl: no such file or folder" in message(FileNotFoundError, path=tmp_path / "nowhere.jsonl")
    assert "no test.* for gsm8k" in message(FileNotFoundError, path=tmp_path)
    monkeypatch.setenv("MARFT_DATA", str(tmp_path / "gone"))
    assert "gone': no such folder" in message(FileNotFoundError)


def test_the_other_split_by_its_name(tmp_path):
    path = write(tmp_path / "train.jsonl", ROWS)
    assert "by its name the split 'train', expected a file of split='test'" in message(DataError, path=path)


def test_wrong_columns_name_what_was_found(tmp_path):
    path = write(tmp_path / "a.jsonl", [*ROWS, {"question": "q", "reply": "5"}])
    text = message(DataError, path=path)
    assert "row 6 lacks answer; columns found: question, reply" in text and str(path) in text
    assert "lacks ID, Body, Question, Answer" in message(DataError, "svamp", path=write(tmp_path / "s.jsonl", ROWS))


def test_corrupt_files_are_named(tmp_path):
    def spoil(name, raw):
        (tmp_path / name).write_bytes(raw)
        return message(DataError, path=tmp_path / name)

    assert "a.jsonl, line 2: not valid JSON" in spoil(
        "a.jsonl", b'{"question": "q", "answer": "#### 1"}\n{"question": '
    )
    assert "b.jsonl, line 1: got int, expected an object" in spoil("b.jsonl", b"5\n")
    assert "c.json: not valid JSON" in spoil("c.json", b'[{"question": "q"}')
    assert "d.json: item 0: got str, expected an object" in spoil("d.json", b'["q"]')
    assert "e.jsonl.gz: not a readable gzip file" in spoil("e.jsonl.gz", b"no gzip")
    assert "f.jsonl.gz: not a readable gzip file" in spoil("f.jsonl.gz", gzip.compress(b"{}" * 99)[:-12])
    assert "g.jsonl: not UTF-8 text" in spoil("g.jsonl", b"\xff\xfe{}")
    assert "h.jsonl: the file is empty" in spoil("h.jsonl", b"")
    assert "i.json: the file is empty" in spoil("i.json", b"[]")
    assert "j.csv: unknown kind of file" in spoil("j.csv", b"a,b")
    assert "k.jsonl, line 1: not valid JSON" in spoil("k.jsonl", b"[" * 0 + b'{"a":' + b"[" * 200_000)
    pytest.importorskip("pyarrow", reason="parquet needs pyarrow: pip install marft-envs[data]")
    assert "l.parquet: not a readable parquet file" in spoil("l.parquet", b"PAR1 no parquet")


def test_no_usable_row(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"question": "q", "answer": "five"}])
    assert "no usable row among 1: 1 no #### in the answer" in message(DataError, path=path)


HUB_ONLY = {  # name: rows in the published columns, golds, unusable rows
    "aime2025": (
        [{"problem": "P", "answer": "070", "id": "1"}, {"problem": "Q", "answer": 588, "id": "2"}],
        ["70", "588"], 0,
    ),
    "deepscaler": (
        [{"problem": "P", "answer": "-\\frac{2}{3}", "solution": ""}, {"problem": "Q", "answer": "0", "solution": "s"}],
        [r"-\frac{2}{3}", "0"], 0,
    ),
    "minerva_math": (
        [{"question": "Power?", "answer": "4.5e33"}, {"problem": "Angle?", "solution": r"\boxed{\arcsin{0.3}}."}],
        ["4.5e33", r"\arcsin{0.3}"], 0,
    ),
    "numina": (
        [
            {"problem": "P", "solution": r"so \boxed{3}", "answer": None, "source": "olympiads"},
            {"problem": "Q", "solution": "...", "answer": "proof", "problem_type": "Algebra"},
            {"problem": "R", "solution": "...", "answer": "x=1, y=2", "problem_type": "Algebra"},
            {"problem": "S", "solution": "nothing", "answer": "", "problem_type": "Algebra"},
        ],
        ["3", "x=1, y=2"], 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HUB_ONLY)
def test_data_sets_that_are_only_on_the_hub(tmp_path, name):
    rows, golds, unusable = HUB_ONLY[name]
    split = SPECS[name].splits[0]
    task = load(name, path=write(tmp_path / f"{split}.jsonl", rows), split=split)
    assert [task.problem(i).gold for i in range(task.size)] == golds
    assert len(task.unusable) == unusable
    for index, gold in enumerate(golds):
        assert task.grade(rf"\boxed{{{gold}}}", task.problem(index)).outcome is Outcome.CORRECT
        assert task.grade(r"\boxed{12345}", task.problem(index)).outcome is Outcome.WRONG


def test_minerva_accepts_what_is_within_one_per_cent(tmp_path):
    task = load("minerva_math", path=write(tmp_path / "test.jsonl", [{"question": "q", "answer": "4.5e33"}]))
    replies = [r"\boxed{4.46 \times 10^{33}}", r"\boxed{4.4 \times 10^{33}}"]
    assert [task.grade(reply, task.problem(0)).score for reply in replies] == [1.0, 0.0]


def test_olympiadbench_rows(tmp_path):
    rows = [
        {
            "question": "Q",
            "context": None,
            "final_answer": ["$(6,3),(9,3)$"],
            "error": None,
            "answer_type": "Tuple",
            "id": 1,
        },
        {
            "question": "Q",
            "context": "C",
            "final_answer": ["$\\frac{1}{2}$", "3"],
            "error": None,
            "subfield": "Algebra",
        },
        {"question": "Q", "context": None, "final_answer": ["3.1"], "error": "1e-1"},
    ]
    task = load("olympiadbench", path=write(tmp_path / "test.jsonl.gz", rows))
    assert [task.problem(i).gold for i in range(task.size)] == ["(6,3),(9,3)", r"\frac{1}{2}, 3"]
    assert task.problem(1).prompt == "C\n\nQ"
    assert task.grade(r"\boxed{(9,3), (6,3)}", task.problem(0)).outcome is Outcome.CORRECT
    assert task.excluded == {"the answer is an approximation with a tolerance of its own": 1}


MINE = [{"ask": f"What is {i} squared?", "result": i * i, "hard": i % 3 + 1, "field": "powers"} for i in range(100)]
COLUMNS = {"prompt": "ask", "answer": "result", "level": "hard", "subject": "field"}


def test_your_own_rows_with_a_column_map(tmp_path):
    path = write(tmp_path / "mine.parquet", MINE)
    parts = {split: load("custom", path=path, split=split, columns=COLUMNS) for split in ("train", "test", "all")}
    assert parts["all"].size == 100 == parts["train"].size + parts["test"].size
    assert parts["all"].problem(7).gold == "49"
    assert dict(parts["all"].problem(7).notes) == {"level": 2, "subject": "powers", "row": 7, "split": "all"}
    assert duplicates(parts["train"], parts["test"]) == []
    assert len(duplicates(parts["train"], parts["all"])) == parts["train"].size
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "train.jsonl", MINE[:30])
    write(folder / "test.jsonl", MINE[25:])
    train = load("custom", path=folder, split="train", columns=COLUMNS)
    assert (train.size, train.excluded) == (25, {"the same problem is in the test split": 5})
    assert load("custom", path=folder, split="test", columns=COLUMNS).size == 75


def test_wrong_column_maps_are_named(tmp_path):
    path = write(tmp_path / "mine.jsonl", MINE)
    assert "row 0 lacks prompt, answer; columns found: ask, result" in message(DataError, "custom", path=path)
    assert "unknown roles ['gold']" in message(ValueError, "custom", path=path, columns={"gold": "result"})
    assert "only name='custom' takes a column map" in message(ValueError, path=path, columns=COLUMNS)
    assert "dataset='custom', split='test' was not found" in message(DataError, "custom")


def test_filters(tmp_path):
    path = write(tmp_path / "mine.jsonl", [*MINE, {"ask": "Half?" * 20, "result": "1/2", "hard": 3, "field": "parts"}])

    def size(**filters):
        return load("custom", path=path, split="all", columns=COLUMNS, **filters).size

    assert size() == 101
    assert size(level=1) == 34 and size(level=[1, 3]) == 68 and size(level="Level 3") == 34
    assert size(subject="Parts") == 1 and size(subject=("parts", "powers")) == 101
    assert size(integer=True) == 100 and size(integer=False) == 1
    assert size(max_chars=50) == 100 and size(max_chars=18) == 10
    assert size(level=3, subject="powers", integer=True, limit=5, seed=1) == 5
    text = message(DataError, "custom", path=path, split="all", columns=COLUMNS, level=9)
    assert "no problem passes" in text and "levels: ['1', '2', '3'], subjects: ['parts', 'powers']" in text
    assert "max_chars=0: expected at least 1" in message(ValueError, path=path, max_chars=0)
    assert "integer='yes': expected True, False or None" in message(TypeError, path=path, integer="yes")


def test_missing_extras_are_named(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    for module in ("pyarrow", "datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "pip install marft-envs[data]" in message(ImportError, path=path)
    assert "pip install marft-envs[data]" in message(ImportError)


class Part(list):
    """Stands for a ``datasets.Dataset``: rows and a fingerprint."""

    _fingerprint = "f00d"


def fake_hub(monkeypatch, *, answers, cached=True):
    """The two libraries with a hub that answers or not; returns the calls of ``load_dataset``."""
    calls = []
    library = types.SimpleNamespace(config=types.SimpleNamespace(HF_HUB_OFFLINE=False))
    hub = types.SimpleNamespace(constants=types.SimpleNamespace(HF_HUB_OFFLINE=False))

    def load_dataset(repository, config=None, *, split, revision=None, data_files=None):
        config = data_files or config
        calls.append((repository, config, split, revision, library.config.HF_HUB_OFFLINE, hub.constants.HF_HUB_OFFLINE))
        if not cached and not answers:
            raise ConnectionError("Couldn't reach it")
        return Part(ROWS)

    def dataset_info(repository, *, revision, timeout):
        assert timeout <= 10
        if not answers:
            raise ConnectionError("Name or service not known")
        return types.SimpleNamespace(sha="c0ffee")

    library.load_dataset = load_dataset
    hub.HfApi = lambda: types.SimpleNamespace(dataset_info=dataset_info)
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    return calls, library, hub


def test_the_hub_is_read_at_the_pinned_revision(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    task = load("gsm8k", split="train")
    assert calls == [("openai/gsm8k", "main", "train", SPECS["gsm8k"].hub.revision, False, False)]
    assert task.origin == "openai/gsm8k (c0ffee)"


def test_another_revision_is_a_setting(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    assert load("gsm8k", revision="abc").origin == "openai/gsm8k (c0ffee)"
    assert calls[0][3] == "abc"
    for revision, name, words in (("abc", "custom", "custom is not read from the hub"), ("", "gsm8k", "revision=''")):
        with pytest.raises(ValueError, match=words):
            load(name, revision=revision)


def test_files_of_a_repository_are_read_at_the_revision(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    rows, commit = read_hub("mine", HubSource("a/b", revision="c", files="{part}.jsonl"), ("test",))
    assert calls[0][:3] == ("json", "hf://datasets/a/b@c/test.jsonl", "train")
    assert (rows, commit) == (ROWS, "c0ffee")


def test_every_data_set_of_the_hub_is_pinned():
    """The commits are those that public evaluation suites name; of cmath none is known to us."""
    from marft_envs.coding.datasets import SPECS as PROGRAMS

    hubs = {name: spec.hub for name, spec in {**SPECS, **PROGRAMS}.items() if spec.hub}
    assert len(hubs) == 19
    assert {name for name, hub in hubs.items() if hub.revision is None} == {"cmath"}
    assert all(re.fullmatch("[0-9a-f]{40}", hub.revision) for hub in hubs.values() if hub.revision)


def test_what_is_left_out_is_told_in_words(tmp_path, caplog):
    rows = [
        {"question": "What?", "answer": "#### 3"},
        {"question": "Q", "answer": "none"},
        *[{"question": "Q", "answer": "#### "}] * 2,
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    load("gsm8k", path=tmp_path)
    assert caplog.messages == ["gsm8k test: 3 of 4 rows left out: 3 no #### in the answer"]


def test_the_cache_is_read_offline_when_the_hub_is_out_of_reach(monkeypatch):
    calls, library, hub = fake_hub(monkeypatch, answers=False)
    assert load("gsm8k").origin == "openai/gsm8k (cache f00d)"
    assert calls[0][-2:] == (True, True)
    assert not library.config.HF_HUB_OFFLINE and not hub.constants.HF_HUB_OFFLINE  # as before


def test_math_is_read_from_all_its_configs(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    with pytest.raises(DataError, match="EleutherAI/hendrycks_math: row 0 lacks problem, solution"):
        load("math")
    assert len({config for _, config, *_ in calls}) == 7


def test_neither_file_nor_hub_says_what_was_tried(monkeypatch, tmp_path):
    fake_hub(monkeypatch, answers=False, cached=False)
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))
    text = message(DataError)
    for part in ("no test.* for gsm8k", "openai/gsm8k", "Name or service not known", "path=", "MARFT_DATA"):
        assert part in text


def test_the_real_library_out_of_reach_fails_within_seconds(tmp_path):
    pytest.importorskip("datasets", reason="needs datasets: pip install marft-envs[data]")
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    script = "from marft_envs.mathematics.datasets import load\nload('gsm8k')"
    started = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert "DataError: dataset='gsm8k', split='test' was not found. Tried: MARFT_DATA is not set" in result.stderr
    assert time.perf_counter() - started < 20


def test_names_are_documented():
    assert all(f"| {name} |" in datasets.__doc__ for name in datasets.NAMES)


def test_a_gold_of_zero_is_a_gold():
    row = {"problem": "3 - 3 = ?", "question": "3 - 3 = ?", "final_answer": 0, "golden": None}
    assert SPECS["cmath"].read(row).gold == SPECS["cmath"].read(row | {"final_answer": None, "golden": 0}).gold == "0"
