"""Rows from the hub or its cache, through the ``datasets`` library, imported only here and only when needed.

The hub is asked once, for at most a few seconds; where it does not answer only the cache is read, so that a machine
without a network gets an answer at once instead of after a minute of retries.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marft_envs.datasets.files import DataError, Row
from marft_envs.datasets.specs import HubSource

PROBE_TIMEOUT_S = 5.0


def read_hub(name: str, hub: HubSource, parts: tuple[str, ...]) -> tuple[list[Row], str]:
    """(rows of all configs and ``parts``, commit or cache fingerprint). DataError where the data cannot be had."""
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise ImportError(f"{name}: reading from the hub needs: pip install marft-envs[data]") from error
    commit, fault = _ask(huggingface_hub, hub)
    try:
        if commit:
            loaded = _load(datasets, hub, parts)
        else:
            with _offline(datasets, huggingface_hub):
                loaded = _load(datasets, hub, parts)
    except (OSError, ValueError) as error:  # unreachable, not cached, no such config: no common base
        reason = f"the hub did not answer ({fault}) and nothing is cached" if fault else str(error)
        raise DataError(f"{hub.repository}: {reason}") from error
    rows = [dict(row) for part in loaded for row in part]
    return rows, commit or "cache " + loaded[0]._fingerprint


def _ask(huggingface_hub: Any, hub: HubSource) -> tuple[str, str]:
    """(commit, "") or ("", why not), within PROBE_TIMEOUT_S."""
    try:
        info = huggingface_hub.HfApi().dataset_info(hub.repository, revision=hub.revision, timeout=PROBE_TIMEOUT_S)
    except Exception as error:  # whatever it is, the cache is the next resort, and the text is reported
        return "", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    return str(info.sha), ""


def _load(datasets: Any, hub: HubSource, parts: tuple[str, ...]) -> list[Any]:
    if hub.files:
        place = f"hf://datasets/{hub.repository}@{hub.revision or 'main'}/{hub.files}"
        return [datasets.load_dataset("json", data_files=place.format(part=part), split="train") for part in parts]
    return [
        datasets.load_dataset(hub.repository, config, split=part, revision=hub.revision)
        for config in hub.configs
        for part in parts
    ]


@contextmanager
def _offline(datasets: Any, huggingface_hub: Any) -> Iterator[None]:
    """Both libraries' offline switch; the environment variables are read only when they are imported."""
    switches = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in switches]
    for module in switches:
        module.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for module, value in zip(switches, before, strict=True):
            module.HF_HUB_OFFLINE = value
