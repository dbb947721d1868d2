"""Other software as sides of the comparison, each in a child process with the Python of an environment of its own.

llama.cpp and vLLM generate with the LoRA adapters of the team; TRL makes steps of GRPO.
"""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path

import torch

from baselines.models.load import LoadedModel
from baselines.policies.policy import SharedBasePolicy
from benchmarks.speed.child import ChildSide, Settings
from benchmarks.speed.gguf_files import write_adapter, write_base
from benchmarks.speed.workload import Workload

_FOLDER = Path(__file__).parent
_VLLM = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # a second process would wait busily while other sides run
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else each process pins its threads to cores of its own choice
    "HF_HUB_OFFLINE": "1",
}


class TeamFiles:
    """Files of a team for other software, in a temporary folder that ``close`` deletes.

    They are written at the first use.

    Args:
        policy: The policies, with ordinary adapters.
        base_name: Name of the base model in the adapters' configuration.
    """

    def __init__(self, policy: SharedBasePolicy, base_name: str) -> None:
        self._policy, self._base_name = policy, base_name
        self._folder = tempfile.TemporaryDirectory()

    @cached_property
    def peft(self) -> dict[str, str]:
        """Folder of each agent's adapter for peft."""
        found = {}
        for agent in self._policy.agents:
            folder = Path(self._folder.name, "peft", agent)
            folder.mkdir(parents=True)
            for name, data in self._policy.weights.files(agent, self._base_name).items():
                (folder / name).write_bytes(data)
            found[agent] = str(folder)
        return found

    @cached_property
    def gguf_base(self) -> str:
        """The base model for llama.cpp."""
        path = Path(self._folder.name, "base.gguf")
        write_base(path, self._policy)
        return str(path)

    @cached_property
    def gguf(self) -> dict[str, str]:
        """File of each agent's adapter for llama.cpp."""
        found = {}
        for agent in self._policy.agents:
            path = Path(self._folder.name, f"{agent}.gguf")
            write_adapter(path, self._policy, agent)
            found[agent] = str(path)
        return found

    def close(self) -> None:
        """Delete the files."""
        self._folder.cleanup()


def llama_cpp_side(python: Path, work: Workload, loaded: LoadedModel, files: TeamFiles) -> ChildSide:
    """Return a side that generates all actions of a cell with llama.cpp, one agent after another.

    Args:
        python: The Python of an environment that has llama-cpp-python.
        work: The work.
        loaded: The base model.
        files: The team's files.
    """

    def settings() -> Settings:
        return {**_generation(work, loaded), "base": files.gguf_base, "adapters": files.gguf}

    return ChildSide(python, _FOLDER / "llama_cpp_generation.py", settings)


def vllm_side(python: Path, work: Workload, loaded: LoadedModel, files: TeamFiles, folder: Path) -> ChildSide:
    """Return a side that generates all actions of a cell with vLLM, all agents in one batch.

    Args:
        python: The Python of an environment that has vLLM.
        work: The work.
        loaded: The base model.
        files: The team's files.
        folder: The folder of the model's files.
    """

    def settings() -> Settings:
        rank = json.loads(Path(next(iter(files.peft.values())), "adapter_config.json").read_text())["r"]
        return {**_generation(work, loaded), "folder": str(folder), "adapters": files.peft, "rank": rank}

    turns = sum(map(len, work.prompts.values()))
    tokens = work.cell.tokens + sum(len(ids) for prompts in work.prompts.values() for ids in prompts)
    config = loaded.model.config.get_text_config()
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    a_token = 2 * config.num_hidden_layers * config.num_key_value_heads * size * loaded.dtype.itemsize
    # Every turn may fill its last block in part; blocks have up to 128 tokens on a CPU.
    cache = -(-(tokens + 128 * turns) * a_token // 2**30)
    return ChildSide(
        python, _FOLDER / "vllm_generation.py", settings, environment={**_VLLM, "VLLM_CPU_KVCACHE_SPACE": str(cache)}
    )


def trl_side(python: Path, work: Workload, loaded: LoadedModel, folder: Path, rows: int, repetitions: int) -> ChildSide:
    """Return a side that generates the replies of one agent and makes its update with TRL.

    TRL trains one adapter, so the seconds are those of one agent times the agents: their work is equal. Its prompts are
    those of the first agent as text.

    Args:
        python: The Python of an environment that has TRL, peft and datasets.
        work: The work.
        loaded: The base model.
        folder: The folder of the model's files.
        rows: Turns of a training pass; TRL uses the next smaller divisor of the episodes.
        repetitions: How often it is called at most.
    """
    episodes = work.cell.episodes

    def settings() -> Settings:
        prompts = [loaded.tokenizer.decode(list(ids)) for ids in next(iter(work.prompts.values()))]
        return {
            **_common(work, loaded),
            "folder": str(folder),
            "prompts": prompts,
            "rows": next(n for n in range(min(rows, episodes), 0, -1) if episodes % n == 0),
            "repetitions": repetitions,
        }

    return ChildSide(python, _FOLDER / "trl_step.py", settings, times=work.cell.agents)


def _common(work: Workload, loaded: LoadedModel) -> Settings:
    return {
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "device": loaded.device.type,
        "new_tokens": work.cell.new_tokens,
        "threads": torch.get_num_threads(),
    }


def _generation(work: Workload, loaded: LoadedModel) -> Settings:
    return {**_common(work, loaded), "prompts": work.prompts}
