"""What runs need and this machine does not have, for a plan that is made elsewhere than the runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from baselines.models.devices import choose_device
from baselines.models.load import check_model
from baselines.models.sources import ModelNotFound
from baselines.runs.evaluation import make_environment
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.grid import TEAM_ARGUMENTS
from marft_envs.datasets.files import DataNotFound


@dataclass(frozen=True)
class Missing:
    """What a run needs and this machine does not have.

    Attributes:
        data: One sentence for each data set that was not found.
        others: One sentence for the device, or for each model.
    """

    data: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All sentences."""
        return (*self.others, *self.data)


def missing_parts(runs: Iterable[RunConfig], *, allow_wheel: bool = False) -> dict[tuple[str, str], Missing]:
    """Return (task, arm) -> what the run needs and this machine does not have.

    Each data set is searched once. Models are searched only if the device is here, because they are downloaded.

    Args:
        runs: A run of each task and arm.
        allow_wheel: See ``load_model``.
    """
    known: dict[str, str] = {}
    return {
        (run.task, run.arm): Missing(
            data=tuple(dict.fromkeys(filter(None, (_searched(*wanted, known) for wanted in _data_sets(run))))),
            others=tuple(_device(run)) or tuple(_models(run, allow_wheel)),
        )
        for run in runs
    }


def without_data(run: RunConfig) -> RunConfig:
    """Return the run on the environment's default data set, with the same team and rounds, and without transfer."""
    team = {name: value for name, value in run.environment_arguments.items() if name in TEAM_ARGUMENTS}
    return replace(run, environment_arguments=team, transfer={})


def _device(run: RunConfig) -> Iterator[str]:
    try:
        choose_device(run.device)
    except ValueError as error:
        yield str(error)


def _models(run: RunConfig, allow_wheel: bool) -> Iterator[str]:
    for name in dict.fromkeys((run.model, *run.bases.values())):
        try:
            check_model(name, allow_wheel=allow_wheel)
        except ModelNotFound as error:
            yield str(error)


def _data_sets(run: RunConfig) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (environment, split, arguments) of each data set of a run."""
    for split in ("train", "test"):
        yield run.environment, split, run.environment_arguments
    for arguments in run.transfer.values():
        yield run.environment, "test", arguments


def _searched(environment: str, split: str, arguments: Mapping[str, Any], known: dict[str, str]) -> str:
    """Return why a data set was not found, or ""; ``known`` holds the answers so far."""
    data = {name: value for name, value in arguments.items() if name not in TEAM_ARGUMENTS}
    key = repr((environment, split, sorted(data.items())))
    if key not in known:
        try:
            make_environment(environment, split, arguments)
            known[key] = ""
        except (DataNotFound, ImportError) as error:
            known[key] = str(error)
    return known[key]
