"""Files in every format; a corrupt file raises an error that names it, and the line."""

import gzip
import sys

import pytest

from marft_envs.datasets.files import SUFFIXES, DataError, check_columns, read_rows
from tests.marft_envs.datasets.gsm8k_rows import ROWS, write_rows


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_rows(tmp_path, suffix):
    assert read_rows(write_rows(tmp_path / f"a{suffix}", ROWS)) == ROWS


CORRUPT = {
    "a.jsonl": (b'{"question": "q", "answer": "#### 1"}\n{"question": ', "a.jsonl, line 2: not valid JSON"),
    "b.jsonl": (b"5\n", "b.jsonl, line 1: got int, expected an object"),
    "c.json": (b'[{"question": "q"}', "c.json: not valid JSON"),
    "d.json": (b'["q"]', "d.json: item 0: got str, expected an object"),
    "e.jsonl.gz": (b"no gzip", "e.jsonl.gz: not a readable gzip file"),
    "f.jsonl.gz": (gzip.compress(b"{}" * 99)[:-12], "f.jsonl.gz: not a readable gzip file"),
    "g.jsonl": (b"\xff\xfe{}", "g.jsonl: not UTF-8 text"),
    "h.jsonl": (b"", "h.jsonl: the file is empty"),
    "i.json": (b"[]", "i.json: the file is empty"),
    "j.csv": (b"a,b", "j.csv: unknown file format"),
    "k.jsonl": (b'{"a":' + b"[" * 200_000, "k.jsonl, line 1: not valid JSON"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_file_is_named(tmp_path, name):
    content, message = CORRUPT[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_rows(tmp_path / name)
    assert message in str(error.value)


def test_a_corrupt_parquet_file_is_named(tmp_path):
    pytest.importorskip("pyarrow", reason="parquet needs pyarrow: pip install '.[data]'")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no parquet")
    with pytest.raises(DataError, match=r"a\.parquet: not a readable parquet file"):
        read_rows(tmp_path / "a.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[data\]'"):
        read_rows(tmp_path / "a.parquet")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.jsonl: no such file"):
        read_rows(tmp_path / "a.jsonl")


def test_a_missing_column_is_named_with_the_columns_found():
    rows = [{"question": "q", "answer": "5"}, {"question": "q", "reply": "5"}]
    with pytest.raises(DataError, match="gsm8k: row 1 lacks answer; columns found: question, reply"):
        check_columns(rows, ("question", "answer"), "gsm8k")
    with pytest.raises(DataError, match="row 0 lacks answer"):
        check_columns([{"question": "q", "answer": None}], ("question", "answer"), "gsm8k")
