"""The search for rows: path=, MARFT_DATA, then the hub; errors describe what was tried."""

import pytest

from marft_envs.datasets.dataset_spec import DatasetSpec
from marft_envs.datasets.files import DataError
from marft_envs.datasets.source import LocalFiles, find_source, sibling_files
from marft_envs.mathematics.datasets import load
from tests.marft_envs.datasets.gsm8k_rows import ROWS, write_rows

pytestmark = pytest.mark.usefixtures("no_data_folder")
SPEC = DatasetSpec("mine", "MIT", "us", ("question",), read=dict, hub=None)
SHARDS = DatasetSpec("mine", "MIT", "us", ("question",), read=dict, hub=None, files=("Mine", "{split}*"))


def files(spec, split, path):
    source = find_source(spec, split, path)
    assert isinstance(source, LocalFiles)
    return [file.relative_to(path).as_posix() for file in source.files]


@pytest.mark.parametrize("name", ["gsm8k/train.jsonl", "train.jsonl"])
def test_a_folder_is_read_from_path_and_from_the_variable(tmp_path, monkeypatch, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    write_rows(tmp_path / name, ROWS)
    assert load("gsm8k", path=tmp_path, split="train").size == 6
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))  # read when load is called
    assert load("gsm8k", split="train").size == 6


def test_a_file_in_several_formats_is_read_once(tmp_path):
    for name in ("test.json", "test.jsonl", "test.jsonl.gz", "train.json"):
        write_rows(tmp_path / name, ROWS)
    assert files(SPEC, "test", tmp_path) == ["test.jsonl"]


def test_a_pattern_matches_all_shards_in_order_and_an_earlier_name_wins(tmp_path):
    for name in ("test2.jsonl", "test.jsonl", "test2.json", "test3.json.gz", "train.jsonl"):
        write_rows(tmp_path / name, ROWS)
    assert files(SHARDS, "test", tmp_path) == ["test.jsonl", "test2.jsonl", "test3.json.gz"]
    write_rows(tmp_path / "Mine.jsonl", ROWS)
    assert files(SHARDS, "test", tmp_path) == ["Mine.jsonl"]


def test_sibling_files_are_those_of_another_split_in_a_folder(tmp_path):
    train, test = (write_rows(tmp_path / f"{split}.jsonl", ROWS) for split in ("train", "test"))
    assert sibling_files(SPEC, "test", tmp_path) == (test,)
    assert sibling_files(SPEC, "test", train) == ()  # a file stands alone
    assert sibling_files(SPEC, "test", None) == ()


def test_missing_files_and_folders_are_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl: no such file or folder"):
        find_source(SPEC, "test", tmp_path / "nowhere.jsonl")
    with pytest.raises(FileNotFoundError, match=r"no test\.\* for mine, expected one ending in \.parquet"):
        find_source(SPEC, "test", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no Mine\.\* or test\* for mine"):
        find_source(SHARDS, "test", tmp_path)
    monkeypatch.setenv("MARFT_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="gone': no such folder"):
        find_source(SPEC, "test", None)


def test_a_file_named_after_another_split_is_refused(tmp_path):
    path = write_rows(tmp_path / "train.jsonl", ROWS)
    with pytest.raises(DataError, match="its name is that of split='train', expected a file of split='test'"):
        find_source(SPEC, "test", path)


def test_data_that_no_source_has_is_described(tmp_path, monkeypatch):
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))
    with pytest.raises(DataError) as error:
        find_source(SHARDS, "test", None).read()
    formats = ".parquet, .jsonl, .jsonl.gz, .json, .json.gz"
    assert str(error.value) == (
        f"dataset='mine', split='test' was not found. Tried: MARFT_DATA: {tmp_path}: no Mine.* or test* for mine, "
        f"expected one ending in {formats}; mine is not read from the hub. To get it: pass path= with a file or "
        f"folder, or set MARFT_DATA to a folder that holds mine/Mine.* or mine/test*, ending in {formats}"
    )
