"""Rows from the Hugging Face hub or its cache, through the optional library ``datasets``.

The hub is queried once, for a few seconds at most. If it does not answer, only its cache is read: without this, the
library retries for a minute on a machine without a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marft_envs.datasets.dataset_spec import HubDataset
from marft_envs.datasets.files import DataError, Row

PROBE_TIMEOUT_S = 5.0


def read_hub(name: str, hub: HubDataset, splits: tuple[str, ...]) -> tuple[list[Row], str]:
    """Read a data set from the hub, or from its cache if the hub does not answer.

    Args:
        name: Our name of the data set, for error messages.
        hub: Where it is on the hub.
        splits: The hub's names of the splits to read.

    Returns:
        The rows of all configurations and splits, and the commit (from the cache: its fingerprint).

    Raises:
        DataError: The data is neither on the hub nor in its cache.
        ImportError: The library ``datasets`` is not installed.
    """
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise ImportError(f"{name}: reading from the hub needs: pip install '.[data]' in the repository") from error
    commit, fault = _query_commit(huggingface_hub, hub)
    try:
        if commit:
            loaded = _load(datasets, hub, splits)
        else:
            with _offline(datasets, huggingface_hub):
                loaded = _load(datasets, hub, splits)
    except (OSError, ValueError) as error:  # unreachable, not cached, no such config: they have no common base class
        reason = f"the hub did not answer ({fault}) and nothing is cached" if fault else str(error)
        raise DataError(f"{hub.repository}: {reason}") from error
    rows = [dict(row) for dataset in loaded for row in dataset]
    return rows, commit or "cache " + loaded[0]._fingerprint


def _query_commit(huggingface_hub: Any, hub: HubDataset) -> tuple[str, str]:
    """Return (commit, ""), or ("", reason) if the hub does not answer within PROBE_TIMEOUT_S."""
    try:
        info = huggingface_hub.HfApi().dataset_info(hub.repository, revision=hub.revision, timeout=PROBE_TIMEOUT_S)
    except Exception as error:  # errors of several HTTP libraries; the cache is tried next, and the reason is reported
        return "", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    return str(info.sha), ""


def _load(datasets: Any, hub: HubDataset, splits: tuple[str, ...]) -> list[Any]:
    if hub.files:
        url = f"hf://datasets/{hub.repository}@{hub.revision or 'main'}/{hub.files}"
        # A JSON file that is read by its address has the single split "train".
        return [datasets.load_dataset("json", data_files=url.format(split=split), split="train") for split in splits]
    return [
        datasets.load_dataset(hub.repository, config, split=split, revision=hub.revision)
        for config in hub.configs
        for split in splits
    ]


@contextmanager
def _offline(datasets: Any, huggingface_hub: Any) -> Iterator[None]:
    """Switch both libraries offline. They read the environment variables only when they are imported."""
    switches = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in switches]
    for module in switches:
        module.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for module, value in zip(switches, before, strict=True):
            module.HF_HUB_OFFLINE = value
