"""Reading from the hub: pinned commits, the cache without a network, and errors within seconds."""

import os
import re
import subprocess
import sys
import time
import types

import pytest

from marft_envs.coding.datasets import SPECS as PROGRAMS
from marft_envs.coding.datasets import load as load_programs
from marft_envs.datasets.dataset_spec import HubDataset
from marft_envs.datasets.files import DataError
from marft_envs.datasets.hub import read_hub
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.datasets.specs import SPECS
from tests.marft_envs.datasets.gsm8k_rows import ROWS


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path_factory, no_data_folder):
    monkeypatch.setenv("MARFT_CACHE", str(tmp_path_factory.mktemp("cache")))


class FakeDataset(list):
    """Rows with a fingerprint, in place of a ``datasets.Dataset``."""

    _fingerprint = "f00d"


def fake_hub(monkeypatch, *, answers, cached=True):
    """Replace both libraries by a hub that answers or not; returns the list of calls of ``load_dataset``."""
    calls = []
    library = types.SimpleNamespace(config=types.SimpleNamespace(HF_HUB_OFFLINE=False))
    hub = types.SimpleNamespace(constants=types.SimpleNamespace(HF_HUB_OFFLINE=False))

    def load_dataset(repository, config=None, *, split, revision=None, data_files=None):
        config = data_files or config
        calls.append((repository, config, split, revision, library.config.HF_HUB_OFFLINE, hub.constants.HF_HUB_OFFLINE))
        if not cached and not answers:
            raise ConnectionError("Couldn't reach it")
        return FakeDataset(ROWS)

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


def test_revision_replaces_the_pinned_one(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    assert load("gsm8k", revision="abc").origin == "openai/gsm8k (c0ffee)"
    assert calls[0][3] == "abc"


def test_the_files_of_a_repository_are_read_at_the_revision(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    rows, commit = read_hub("mine", HubDataset("a/b", revision="c", files="{split}.jsonl"), ("test",))
    assert calls[0][:3] == ("json", "hf://datasets/a/b@c/test.jsonl", "train")
    assert (rows, commit) == (ROWS, "c0ffee")


@pytest.mark.parametrize(
    ("name", "arguments", "config", "split", "revision"),
    [
        (
            "apps",
            {},
            "hf://datasets/codeparrot/apps@21e74ddf8de1a21436da12e3e653065c5213e9d1/test.jsonl",
            "train",
            None,
        ),
        ("code_contests", {"split": "validation", "revision": "abc"}, "default", "valid", "abc"),
        ("deepcoder", {"part": "taco"}, "taco", "test", "177913a7bd43791646ef6a43645caa3c871ab3db"),
        ("mbpp", {}, "full", "train", "4bb6404fdc6cacfda99d4ac4205087b89d32030c"),
    ],
)
def test_programs_are_read_from_their_config_and_split(monkeypatch, name, arguments, config, split, revision):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    with pytest.raises(DataError, match=f"{PROGRAMS[name].hub.repository}: row 0 lacks "):
        load_programs(name, **arguments)
    assert calls[0][1:4] == (config, split, revision)
    assert len(calls) == (4 if name == "mbpp" else 1)  # mbpp computes the split of each row, so all splits are read


def test_every_data_set_of_the_hub_is_pinned():
    """The commits are those that public evaluation suites name; for cmath we know of none."""
    hubs = {name: spec.hub for name, spec in {**SPECS, **PROGRAMS}.items() if spec.hub}
    assert len(hubs) == 19
    assert {name for name, hub in hubs.items() if hub.revision is None} == {"cmath"}
    assert all(re.fullmatch("[0-9a-f]{40}", hub.revision) for hub in hubs.values() if hub.revision)


def test_the_cache_is_read_offline_if_the_hub_does_not_answer(monkeypatch):
    calls, library, hub = fake_hub(monkeypatch, answers=False)
    assert load("gsm8k").origin == "openai/gsm8k (cache f00d)"
    assert calls[0][-2:] == (True, True)
    assert not library.config.HF_HUB_OFFLINE and not hub.constants.HF_HUB_OFFLINE  # as before


def test_math_is_read_from_all_its_configs(monkeypatch):
    calls, _, _ = fake_hub(monkeypatch, answers=True)
    with pytest.raises(DataError, match="EleutherAI/hendrycks_math: row 0 lacks problem, solution"):
        load("math")
    assert len({config for _, config, *_ in calls}) == 7


@pytest.mark.parametrize(("load_it", "name", "repository"), [
    (load, "gsm8k", "openai/gsm8k"), (load_programs, "humaneval", "openai/openai_humaneval"),
])  # fmt: skip
def test_data_that_is_neither_in_files_nor_on_the_hub_is_described(monkeypatch, tmp_path, load_it, name, repository):
    fake_hub(monkeypatch, answers=False, cached=False)
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))
    with pytest.raises(DataError) as error:
        load_it(name)
    offline = (
        f"{repository}: the hub did not answer (ConnectionError: Name or service not known) and nothing is cached."
    )
    assert f"dataset='{name}', split='test' was not found. Tried: MARFT_DATA: {tmp_path}: no " in str(error.value)
    assert f"; {offline} To get it: pass path= with a file or folder, or set MARFT_DATA to" in str(error.value)
    assert str(error.value).endswith(", or run once with access to the hub, which fills its cache")


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[data\]'"):
        load("gsm8k")


def test_the_real_library_without_a_network_fails_within_seconds(tmp_path):
    pytest.importorskip("datasets", reason="needs datasets: pip install '.[data]'")
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    script = "from marft_envs.mathematics.datasets import load\nload('gsm8k')"
    started = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert "DataNotFound: dataset='gsm8k', split='test' was not found. Tried: MARFT_DATA is not set" in result.stderr
    assert time.perf_counter() - started < 20
