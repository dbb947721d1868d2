"""Other software as sides of throughput.py: the child processes, and the files of llama.cpp."""

import contextlib
import json

import gguf
import pytest
import torch

from baselines.models.load import load_model
from benchmarks import throughput
from benchmarks.speed import machine_limits
from benchmarks.speed.child import ChildSide
from benchmarks.speed.other_software import TeamFiles, llama_cpp_side, trl_side, vllm_side
from benchmarks.speed.workload import agents_of, make_policy, make_workload
from tests.benchmarks.test_throughput_engine import CELL


@pytest.fixture
def python(tmp_path):
    """Return a function that makes a program in place of a Python: a shell script."""

    def make(*lines):
        file = tmp_path / "python"
        file.write_text("\n".join(["#!/bin/sh", *lines]))
        file.chmod(0o755)
        return file

    return make


@pytest.fixture
def team():
    """The base model, the policies on it, and the work of CELL."""
    loaded = load_model("tiny")
    return loaded, make_policy(loaded, agents_of(CELL.agents)), make_workload(CELL, loaded)


def test_a_child_answers_each_repetition_and_its_last_line_is_the_reason_of_a_failure(python, tmp_path):
    program = python(
        f"read settings; echo $settings $OMP_NUM_THREADS $MORE > {tmp_path}/settings",
        "read line; echo noise; echo seconds 0.5",
        "read line; echo first >&2; echo no memory >&2; exit 1",
    )
    child = ChildSide(program, program, lambda: {"threads": 3}, times=4, environment={"MORE": "x"})
    with contextlib.closing(child):
        assert child() == {"total": 2.0}
        with pytest.raises(RuntimeError, match="no memory"):
            child()
    assert (tmp_path / "settings").read_text() == '{"threads": 3} 3 x\n'


def test_a_child_that_ends_before_it_reads_gives_its_reason(python):
    program = python("exec <&-", "echo no such module", "exit 1")
    child = ChildSide(program, program, lambda: {"threads": 1, "large": "x" * 2**20})
    with contextlib.closing(child), pytest.raises(RuntimeError, match="no such module"):
        child()


def test_every_side_gets_the_same_prompts_tokens_and_threads(python, team, tmp_path):
    loaded, policy, work = team
    echo = python(f'read settings; echo "$settings" > {tmp_path}/settings', "read line; echo seconds 1")
    with contextlib.closing(TeamFiles(policy, "base")) as files:
        for side in (
            llama_cpp_side(echo, work, loaded, files),
            vllm_side(echo, work, loaded, files, tmp_path),
            trl_side(echo, work, loaded, tmp_path, rows=2, repetitions=2),
        ):
            with contextlib.closing(side):
                side()
            settings = json.loads((tmp_path / "settings").read_text())
            assert (settings["new_tokens"], settings["threads"]) == (4, torch.get_num_threads())
            if "adapters" in settings:
                assert {agent: [tuple(ids) for ids in found] for agent, found in settings["prompts"].items()} == (
                    work.prompts
                )
                assert settings["adapters"].keys() == work.prompts.keys()
            else:
                assert len(settings["prompts"]) == CELL.episodes
                assert settings["rows"] == 1  # 2 does not divide 3 episodes


def test_llama_cpp_gets_the_weights_of_the_base_and_of_an_adapter(team):
    _, policy, _ = team
    with contextlib.closing(TeamFiles(policy, "base")) as files:
        base, own = read(files.gguf_base), read(files.gguf["agent_1"])
    layer = policy.causal_lm.model.layers[2]
    # 4 heads of 32 rows: llama.cpp rotates rows 2 i and 2 i + 1 of a head, transformers i and i + 16
    order = [32 * head + half + i for head in range(4) for i in range(16) for half in (0, 16)]
    query, value = layer.self_attn.q_proj, layer.self_attn.v_proj
    assert torch.equal(base["blk.2.attn_q.weight"], query.get_base_layer().weight[order])
    assert torch.equal(base["blk.2.attn_v.weight"], value.get_base_layer().weight)
    assert torch.equal(base["output.weight"], policy.head.weight)
    assert torch.equal(base["blk.2.attn_norm.weight"], layer.input_layernorm.weight)
    assert torch.equal(own["blk.2.attn_q.weight.lora_a"], query.lora_A["agent_1"].weight)
    assert torch.equal(own["blk.2.attn_q.weight.lora_b"], query.lora_B["agent_1"].weight[order])
    assert torch.equal(own["blk.2.ffn_down.weight.lora_b"], layer.mlp.down_proj.lora_B["agent_1"].weight)
    assert len(own) == 2 * 7 * 3  # A and B of seven linear layers in three decoder layers


def test_llama_cpp_is_refused_a_model_that_is_no_plain_llama(team):
    _, policy, _ = team
    policy.causal_lm.config.rope_parameters["rope_type"] = "yarn"
    with contextlib.closing(TeamFiles(policy, "base")) as files, pytest.raises(ValueError, match="rope_type 'yarn'"):
        _ = files.gguf_base


def read(path):
    """Return the tensors of a GGUF file."""
    return {tensor.name: torch.tensor(tensor.data) for tensor in gguf.GGUFReader(path).tensors}


@pytest.mark.slow
def test_the_failures_of_other_software_are_lines_of_the_table(python, monkeypatch, capsys):
    program = str(python("read line", "echo no memory >&2", "exit 1"))
    monkeypatch.setattr(machine_limits, "COPY_BYTES", 2**20)
    words = ["engine", "--quick", "--episodes", "2", "--new-tokens", "2", "--repetitions", "1"]
    words += ["--trl", program, "--llama-cpp", program, "--vllm", program]
    ours = ["merged", "unmerged", "together", "activated", "ippo", "marft", "activated-update"]
    assert throughput.main([*words, "--skip", *ours, "reference", "continuous", "reference-update", "memory"]) == 0
    printed = capsys.readouterr().out
    assert "ours, merged and ippo" in printed and " s/step" in printed
    for name in ("TRL, GRPO", "vLLM, LoRA", "llama.cpp, LoRA"):
        assert f"{name:33} did not run: RuntimeError: no memory" in printed
