"""The model card of an exported team: README.md with the metadata that the Hugging Face hub reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marft_envs
from baselines.models.card import CARD
from baselines.models.sources import SHIPPED
from baselines.models.wheel_models import WHEEL_MODELS
from baselines.runs.checkpoint import Checkpoint
from baselines.runs.evaluation import Row, item_interval
from baselines.runs.run import ADAPTERS
from baselines.runs.run_config import RunConfig
from marft_envs.coding.datasets.specs import SPECS as CODE_SPECS
from marft_envs.mathematics.datasets.specs import SPECS as MATH_SPECS

_LICENCES = {"Apache-2.0": "apache-2.0", "MIT": "mit"}
_GEMMA = "Gemma Terms of Use"


@dataclass(frozen=True)
class Base:
    """The base model of an agent.

    Attributes:
        hub_name: Its name on the hub; None if it is known as a folder only.
        folder: The folder with its files on this machine.
        commit: The commit on the hub that the folder holds; None if it is not known.
        name: Its name in the run's manifest.
        tokenizer: Its tokenizer.
    """

    hub_name: str | None
    folder: Path
    commit: str | None
    name: str
    tokenizer: Any

    @property
    def path(self) -> str:
        """What ``from_pretrained`` loads: the name on the hub, else the folder."""
        return self.hub_name or str(self.folder)


@dataclass(frozen=True)
class Evaluations:
    """Evaluations of a run that belong to a checkpoint.

    Attributes:
        update: The last evaluated update that is not after the checkpoint; None without one.
        rows: Their rows by (task, mode).
        before: The rows of update 0 by (task, mode), if that is another update.
    """

    update: int | None
    rows: Mapping[tuple[str, str], Row]
    before: Mapping[tuple[str, str], Row]


def read_evaluations(path: Path, update: int) -> Evaluations:
    """Read the evaluations of a run from its rows.

    Args:
        path: The file rows.jsonl. It need not exist.
        update: The update of the checkpoint.
    """
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the last line of a run that was killed
            continue
    rows = [row for row in rows if row.get("kind") == "eval" and row["update"] <= update and row["n"]]
    if not rows:
        return Evaluations(None, {}, {})
    last = max(row["update"] for row in rows)
    at = {number: {(r["task"], r["mode"]): r for r in rows if r["update"] == number} for number in (0, last)}
    return Evaluations(last, at[last], at[0] if last else {})


def licence_of(base: Base) -> str | None:
    """Return the hub's identifier of a base model's licence; None if its files do not name one."""
    if base.folder in SHIPPED.values():
        return "mit"
    model = next((model for model in WHEEL_MODELS.values() if model.hub_name == base.hub_name), None)
    if model is not None:
        return _identifier(model.licence)
    readme = base.folder / "README.md"
    if readme.is_file() and readme.read_text(encoding="utf-8", errors="replace").startswith("---"):
        from huggingface_hub import ModelCard

        try:
            found = ModelCard.load(readme).data.license
        except ValueError:  # no metadata, or metadata that the hub would refuse
            found = None
        if isinstance(found, str):
            return found
    card = base.folder / CARD
    stored = json.loads(card.read_text(encoding="utf-8")).get("license") if card.is_file() else None
    return _identifier(stored) if isinstance(stored, str) else None


def _identifier(licence: str) -> str:
    return "gemma" if licence.startswith(_GEMMA) else _LICENCES.get(licence, licence.lower())


@dataclass(frozen=True)
class Card:
    """A model card.

    Attributes:
        title: Name of the export.
        checkpoint: The exported checkpoint.
        config: Configuration of the run.
        bases: Base model by agent, without scripted agents.
        evaluations: The run's evaluations.
        licence: The hub's identifier of the licence; None for that of the base model.
        has_team: Whether the export has team.yaml.
    """

    title: str
    checkpoint: Checkpoint
    config: RunConfig
    bases: Mapping[str, Base]
    evaluations: Evaluations
    licence: str | None = None
    has_team: bool = True

    def text(self) -> str:
        """Return the content of README.md."""
        parts = [f"---\n{self._metadata()}\n---\n", f"# {self.title}", self._introduction(), self._agents()]
        parts += [self._scores(), self._use(), self._training(), self._licence_text()]
        return "\n\n".join(parts).replace("---\n\n\n", "---\n\n") + "\n"

    # ---- metadata

    def _metadata(self) -> str:
        from huggingface_hub import ModelCardData

        names = list(dict.fromkeys(base.hub_name for base in self.bases.values() if base.hub_name))
        full = self.config.tuning == "full"
        data = ModelCardData(
            base_model=(names[0] if len(names) == 1 else names) or None,
            base_model_relation=("finetune" if full else "adapter") if names else None,
            library_name="transformers" if full else "peft",
            pipeline_tag="text-generation",
            license=self._licence(),
            datasets=self._datasets() or None,
            tags=["marft-envs", "multi-agent", "reinforcement-learning", *([] if full else ["lora"])],
            model_name=self.title if self.evaluations.rows else None,
            eval_results=self._results() or None,
        )
        return str(data.to_yaml()).rstrip()

    def _results(self) -> list[Any]:
        from huggingface_hub import EvalResult

        return [
            EvalResult(
                task_type="text-generation",
                dataset_type=task,
                dataset_name=task,
                dataset_split="test",
                metric_type="accuracy",
                metric_name=f"accuracy of the team, {mode} decoding, in %",
                metric_value=round(100 * row["accuracy"], 1),
            )
            for (task, mode), row in self.evaluations.rows.items()
        ]

    def _datasets(self) -> list[str]:
        name = str(self.config.environment_arguments.get("dataset"))
        spec = MATH_SPECS.get(name) or CODE_SPECS.get(name)
        return [spec.hub.repository] if spec is not None and spec.hub is not None else []

    def _licence(self) -> str | None:
        found = {self.licence} if self.licence else {licence_of(base) for base in self.bases.values()}
        return found.pop() if len(found) == 1 else None

    # ---- text

    def _introduction(self) -> str:
        config = self.config
        arguments = json.dumps(without_path(config.environment_arguments))
        agents = self.checkpoint.manifest["agents"]
        return (
            f"A team of {len(agents)} {'agent' if len(agents) == 1 else 'agents'}, trained with marft-envs "
            f"{marft_envs.__version__} ([MARFT](https://arxiv.org/abs/2504.16129)): arm `{config.arm}` on "
            f"`{config.task}` (environment `{config.environment}` with `{arguments}`), after update "
            f"{self.checkpoint.update}."
        )

    def _agents(self) -> str:
        lines = ["| agent | weights | base model |", "|---|---|---|"]
        for agent in self.checkpoint.manifest["agents"]:
            if agent in self.config.scripted:
                lines.append(f"| `{agent}` | none: a script | |")
                continue
            adapter, base = self.config.sharing.get(agent, agent), self.bases[agent]
            saved = (self.checkpoint.folder / ADAPTERS / adapter).is_dir()
            weights = f"`{ADAPTERS}/{adapter}/`" if saved else "those of the base model"
            frozen = " (not trained)" if agent in self.config.frozen else ""
            lines.append(f"| `{agent}` | {weights}{frozen} | {self._base_text(base)} |")
        team = "`team.yaml` has the roles, their instructions, and who reads whose messages." if self.has_team else ""
        return "## Agents\n\n" + "\n".join(lines) + (f"\n\n{team}" if team else "")

    def _base_text(self, base: Base) -> str:
        if base.hub_name:
            return f"[{base.hub_name}](https://huggingface.co/{base.hub_name})"
        return f"`{base.name}`, which is not on the hub: pass it to `PeftModel.from_pretrained`"

    def _scores(self) -> str:
        evaluations = self.evaluations
        if not evaluations.rows:
            return "## Scores\n\nThe run has no evaluation of this checkpoint."
        lines = ["| data | decoding | before training | after | items |", "|---|---|---|---|---|"]
        for key, row in evaluations.rows.items():
            before = evaluations.before.get(key)
            cells = [*key, "" if before is None else _accuracy(before), _accuracy(row), str(row["n"])]
            lines.append("| " + " | ".join(cells) + " |")
        faults = sum(row["not_graded"] for row in evaluations.rows.values())
        return (
            f"## Scores\n\nAccuracy of the team in % on problems of the test split, after update {evaluations.update}, "
            "with the 95 % Wilson interval over items. The interval is about this team on other items, not about other "
            f"training seeds. Items that could not be graded: {faults}.\n\n" + "\n".join(lines)
        )

    def _use(self) -> str:
        agent, base = next(iter(self.bases.items()))
        folder = f"{self.title}/{ADAPTERS}/{self.config.sharing.get(agent, agent)}"
        class_name = "AutoModelForCausalLM" if self.config.tuning == "full" else "AutoPeftModelForCausalLM"
        package = "transformers" if self.config.tuning == "full" else "peft"
        lines = [
            f"from {package} import {class_name}",
            "from transformers import AutoTokenizer",
            "",
            f'model = {class_name}.from_pretrained("{folder}")  # one agent; the base model is {base.name}',
            f'tokenizer = AutoTokenizer.from_pretrained("{folder}")  # with the chat template of the training',
        ]
        team = ["import baselines", "", f'team = baselines.load_team("{self.title}")  # the team, in a BatchRunner']
        return "## Use\n\n```python\n" + "\n".join(lines) + "\n```\n\n```python\n" + "\n".join(team) + "\n```"

    def _training(self) -> str:
        config, learner = self.config, self.config.learner()
        lora = f", LoRA of rank {config.lora.rank} and alpha {config.lora.alpha}" if config.tuning == "lora" else ""
        return (
            f"## Training\n\n{self.checkpoint.update} updates of {config.episodes} episodes, seed {config.seed}, "
            f"learning rate {learner.learning_rate:g}, sampled at temperature {config.decoding.temperature:g} with at "
            f"most {self.checkpoint.manifest['max_new_tokens']} new tokens per reply{lora}. `manifest.json` has every "
            "setting."
        )

    def _licence_text(self) -> str:
        found = self._licence()
        text = f"`{found}`" if found else "Not stated by the base model's files"
        return f"## Licence\n\n{text}. The terms of the base model and of the training data apply as well."


def _accuracy(row: Row) -> str:
    low, high = item_interval(row["item_score"])
    return f"{100 * row['accuracy']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def without_path(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment's arguments without the path of the data on this machine."""
    return {key: value for key, value in arguments.items() if key != "path"}
