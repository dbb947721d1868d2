"""The memory plan of a run, and the dry run that prints it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig

import baselines
from baselines import train
from baselines.engine.torch_engine import Decoding
from baselines.models import devices, load
from baselines.models.shape import NAMED_SHAPES
from baselines.models.sources import ModelNotFound
from baselines.policies.micro_batches import GIB
from baselines.policies.weights import LoraSettings
from baselines.runs import device_memory, dry_run, memory_plan, team_policy
from baselines.runs.dry_run import plan_without_weights
from baselines.runs.memory_table import describe_plan, table_of_sizes
from baselines.runs.merging import merged_copy_bytes
from baselines.runs.run import Run

ROOT = Path(__file__).parents[3]
RELAY = {"dataset": "relay", "style": "symbols"}


def config_of(**fields):
    return baselines.RunConfig(**{"arm": "marft", "environment_arguments": RELAY, "episodes": 16, **fields})


def test_dry_run_prints_the_plan_loads_no_weights_and_needs_no_folder(capsys, monkeypatch):
    monkeypatch.setattr(load, "load_model", None)
    words = ["--dry-run", "--arm", "marft", "--env-arg", "dataset=relay", "--model", "72B", "--set", "memory_gib=80"]
    assert train.main(words) == 0
    printed = capsys.readouterr().out
    assert "Memory plan: marft on 72B, 2 agents" in printed
    assert "72.71B parameters" in printed and "It DOES NOT FIT." in printed


def test_without_dry_run_a_folder_is_needed(capsys):
    with pytest.raises(SystemExit) as stop:
        train.main(["--arm", "marft"])
    assert stop.value.code == 2 and "required: --out" in capsys.readouterr().err


def test_the_plan_without_weights_is_that_of_the_loaded_run():
    config = config_of(settings={"normalization": "sum"})
    found, expected = plan_without_weights(config), Run(config).memory
    assert found == expected
    assert describe_plan(found, None) == describe_plan(expected, None)


def test_the_parts_by_hand():
    """7B in 16 bits with two adapters of rank 8: 7.6e9 weights of 2 bytes; adapters of 20.2e6 parameters of 4 bytes."""
    plan = plan_without_weights(config_of(model="7B", episodes=64, evaluation_items=64, device="cuda", memory_gib=72))
    lora = 28 * 8 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert plan.weights == 2 * plan.bases[0].shape.parameters
    assert plan.adapters == 2 * 4 * lora
    assert plan.optimizer == 2 * 8 * lora + 4 * lora
    assert plan.kv_cache == 2 * 28 * 512 * 2 * 128 * (1024 + 64)  # both agents may act at the same time
    # A pass over 8 prompts of 1,024 tokens works with four 16-bit tensors of the width of the MLP, 0.3 GiB each.
    mlp, stream = 8 * 1024 * 2 * 4 * 18944, 8 * 1024 * (2 * 2 + 4) * 3584
    assert plan.prefill == mlp + stream
    update = plan.largest_pass(checkpointing=plan.checkpointing)[1]
    assert plan.stacked_adapters == 2 * 2 * lora
    rollout = plan.kv_cache + plan.stacked_adapters + max(plan.prefill, plan.sampling)
    assert plan.peak == plan.fixed + max(rollout, update)
    small = plan_without_weights(config_of(model="7B", device="cuda", memory_gib=72, quantization="4bit"))
    assert 0.3 < small.weights / plan.weights < 0.4  # the embeddings stay in 16 bits


def test_activated_adapters_store_prompts_and_save_their_own_tokens_only():
    """7B in 16 bits: 2 x 28 x 512 x 2 bytes of keys and values for each of 1,024 tokens of 2 x 64 prompts."""
    fields = {"model": "7B", "episodes": 64, "evaluation_items": 64, "device": "cuda", "memory_gib": 72}
    plain = plan_without_weights(config_of(**fields))
    plan = plan_without_weights(config_of(**fields, lora=LoraSettings(activated=True)))
    assert plain.stored_prompts == 0 and plan.stored_prompts == 2 * 28 * 512 * 2 * 1024 * 128
    assert plan.largest_pass(checkpointing=False)[0] > 3 * plain.largest_pass(checkpointing=False)[0]
    update = plan.largest_pass(checkpointing=plan.checkpointing)[1] + plan.stored_prompts
    assert update <= plan.pass_budget and plan.peak == plan.fixed + max(plan.rollout, update)
    many = plan_without_weights(config_of(**{**fields, "episodes": 4096}, lora=LoraSettings(activated=True)))
    assert many.stored_prompts == many.pass_budget // 2
    assert "stored prompts of activated adapters" in describe_plan(plan, None)
    assert "stored prompts" not in describe_plan(plain, None)


def test_a_rollout_stores_the_turns_that_are_read_again():
    """7B in 16 bits: 2 x 28 x 512 x 2 bytes of keys and values for each token of 2 agents in 64 episodes."""
    fields = {"model": "7B", "episodes": 64, "evaluation_items": 64, "device": "cuda", "memory_gib": 72}

    def plan(rounds, **other):
        return replace(plan_without_weights(config_of(**fields, **other)), rounds=rounds)

    a_token = 2 * 28 * 512 * 2 * 128
    assert [plan(rounds).stored_turns // a_token for rounds in (1, 2, 3)] == [0, 2 * 1088, 2 * 1088]
    activated = LoraSettings(activated=True)
    assert [plan(rounds, lora=activated).stored_turns // a_token for rounds in (1, 3)] == [1024, 3 * 1024]
    assert plan(2).rollout == plan(1).rollout + plan(2).stored_turns
    assert "rollout: stored turns" in describe_plan(plan(2), None)
    assert "rollout: stored turns" not in describe_plan(plan(1), None)
    tight = replace(plan(2), memory=plan(2).fixed + plan(2).generation + 1000)
    assert tight.stored_turns == 1000
    assert replace(tight, memory=tight.memory - 2000).stored_turns == 0
    unlimited = plan_without_weights(config_of(episodes=4096, device="cpu"))
    assert replace(unlimited, rounds=2).stored_turns == unlimited.pass_budget // 2


def test_the_rollout_has_the_rows_of_an_evaluation_if_they_are_more():
    def rows(episodes, items, limit, **fields):
        config = config_of(episodes=episodes, evaluation_items=items, decoding=Decoding(rows=limit), **fields)
        return plan_without_weights(config).sampled_rows

    assert [rows(64, 8, 512), rows(16, 100, 512), rows(16, 512, 512), rows(512, 512, 512)] == [64, 100, 256, 512]
    assert rows(16, 512, 64) == 64


def test_agents_that_act_at_the_same_time_have_rows_in_one_batch():
    """Where adapters are merged, only if they have few rows each."""

    def rows(episodes, limit=512, merge="on", **fields):
        decoding = Decoding(rows=limit, merge_adapters=merge)
        return plan_without_weights(config_of(episodes=episodes, evaluation_items=1, decoding=decoding, **fields))

    assert [rows(n).sampled_rows for n in (1, 10, 100)] == [2, 20, 100]
    assert [rows(n, merge="off").sampled_rows for n in (1, 10, 100)] == [2, 20, 200]
    assert rows(100, limit=150, merge="off").sampled_rows == 150
    full = rows(10, merge="off", tuning="full")
    assert full.sampled_rows == 10 and full.stacked_adapters == 0
    assert rows(10, sharing={"reasoner_0": "both", "actor_0": "both"}).stacked_adapters == 0  # one adapter


def test_a_pass_over_prompts_has_the_rows_that_fit_it():
    def rows(**decoding):
        return plan_without_weights(config_of(evaluation_items=8, decoding=Decoding(**decoding))).prefilled_rows

    assert rows(max_prompt_tokens=1000, prefill_tokens=3999) == 3
    assert rows(max_prompt_tokens=1000, prefill_tokens=1) == 1
    assert rows(max_prompt_tokens=100, prefill_tokens=8192) == 32  # two agents in 16 episodes
    assert rows(max_prompt_tokens=100, prefill_tokens=8192, rows=12) == 12


def test_eager_attention_of_16_bits_on_a_cpu_counts_its_matrices_over_the_prompts():
    fields = {"model": "smollm2-135m", "dtype": "bfloat16", "memory_gib": 72, "decoding": Decoding(rows=8)}
    eager, fused = (plan_without_weights(config_of(device=device, **fields)).prefill for device in ("cpu", "cuda"))
    assert eager > 8 * 9 * 1024 * 1024 * 10 > fused


@pytest.mark.parametrize("network", ["additive", "head", "transformer"])
@pytest.mark.parametrize("credit", ["action", "token"])
def test_the_critics_calculated_weights_are_those_of_the_loaded_one(network, credit):
    run = Run(config_of(settings={"critic_network": network, "credit": credit}))
    own = 16 * sum(p.numel() for p in run.learner.critic.networks.parameters())
    assert run.memory.critic_networks == pytest.approx(own, rel=0.2)


def test_an_accelerator_holds_the_critic_and_one_batch_and_the_main_memory_the_replayed_ones():
    config = config_of(memory_gib=72, dtype="bfloat16", model="7B", settings={"credit": "token"})
    gpu, cpu = (plan_without_weights(replace(config, device=device)) for device in ("cuda", "cpu"))
    models = gpu.weights + gpu.adapters + gpu.optimizer
    assert gpu.critic_batch == 16 * 2 * (7 + config.decoding.max_new_tokens) * 3584 * 2
    assert gpu.fixed == models + gpu.critic_networks + gpu.critic_batch
    assert cpu.fixed == models + cpu.critic_networks + config.learner().replay_batches * cpu.critic_batch
    assert gpu.critic_step == cpu.critic_step + gpu.critic_batch


def test_the_critics_step_may_be_the_peak():
    few = {"evaluation_items": 8, "training_rows": 1, "decoding": Decoding(rows=8)}
    plan = plan_without_weights(config_of(episodes=20_000, **few))
    assert plan.peak == plan.fixed + plan.critic_step


def test_the_rounds_are_those_of_the_environment_whoever_sets_them(monkeypatch):
    plain, rounds = (
        plan_without_weights(config_of(environment_arguments=RELAY | more)) for more in ({}, {"rounds": 3})
    )
    assert (plain.turns, rounds.turns) == (2, 6) and rounds.critic_replay == 3 * plain.critic_replay
    original = dry_run.make_environment  # stands for an environment with two rounds by default
    monkeypatch.setattr(
        dry_run, "make_environment", lambda name, split, own: original(name, split, own | {"rounds": 2})
    )
    assert plan_without_weights(config_of()).turns == 4


def test_the_rollout_merges_adapters_where_the_copy_takes_little_of_the_memory():
    shape = NAMED_SHAPES["1.5B"]  # 1.3e9 weights in its layers: 2.4 GiB in 16 bits
    cpu, gpu, size = torch.device("cpu"), torch.device("cuda"), 2 * shape.linear_parameters
    for memory, device, merged in (
        (None, cpu, True),
        (24, cpu, True),
        (16, cpu, False),
        (24, gpu, True),
        (16, gpu, False),
    ):
        assert merged_copy_bytes(config_of(memory_gib=memory), shape, 2, device) == (size if merged else 0)
    on, off = (config_of(memory_gib=16, decoding=Decoding(merge_adapters=choice)) for choice in ("on", "off"))
    assert merged_copy_bytes(on, shape, 2, gpu) == size and merged_copy_bytes(off, shape, 2, cpu) == 0
    four_bit = config_of(quantization="4bit")
    assert merged_copy_bytes(four_bit, shape, 2, cpu) == merged_copy_bytes(config_of(tuning="full"), shape, 2, cpu) == 0
    plans = [plan_without_weights(config_of(decoding=Decoding(merge_adapters=c))) for c in ("on", "off")]
    assert plans[0].fixed - plans[1].fixed == plans[0].merged_copies > 0
    with pytest.raises(ValueError, match="Decoding merge_adapters='on': expected 'auto' or 'off' with 4-bit weights"):
        config_of(quantization="4bit", decoding=Decoding(merge_adapters="on"))


def test_shared_and_frozen_adapters_are_counted_once_and_without_moments():
    shared = plan_without_weights(config_of(sharing={"reasoner_0": "both", "actor_0": "both"}))
    frozen = plan_without_weights(config_of(frozen=("reasoner_0",)))
    plain = plan_without_weights(config_of())
    assert (shared.adapters * 2, frozen.adapters) == (plain.adapters, plain.adapters)
    assert frozen.optimizer == shared.optimizer < plain.optimizer


def test_more_memory_gives_larger_passes_and_none_gives_the_default_of_a_cpu(monkeypatch):
    monkeypatch.setattr(device_memory, "available_memory", None)  # the free memory must not decide
    fields = {"model": "1.5B", "episodes": 64, "device": "cpu", "dtype": "bfloat16"}
    plans = [plan_without_weights(config_of(**fields, memory_gib=gib)) for gib in (6, 12)]
    turns = [plan.largest_pass(checkpointing=True)[0] for plan in plans]
    assert turns[0] < turns[1]
    for plan, size in zip(plans, (6, 12), strict=True):
        assert plan.fixed + plan.largest_pass(checkpointing=True)[1] <= size * GIB
    assert plan_without_weights(config_of(device="cpu")).limits.gib == 2.0


def test_a_memory_that_does_not_hold_the_weights_is_an_error_before_training():
    with pytest.raises(ValueError, match=r"memory_gib=0.001: expected more than 0\.\d+, the size of weights"):
        Run(config_of(memory_gib=0.001))
    for wrong in (0, -1.0, "4"):
        with pytest.raises(ValueError, match=f"RunConfig memory_gib={wrong!r}: expected a"):
            config_of(memory_gib=wrong)
    with pytest.raises(ValueError, match="RunConfig gradient_checkpointing='yes': expected one of auto, on, off"):
        config_of(gradient_checkpointing="yes")


def test_a_base_that_does_not_fit_is_refused_before_it_is_loaded(monkeypatch, tmp_path):
    LlamaConfig(num_hidden_layers=2).save_pretrained(tmp_path)  # 0.7e9 weights of 4 bytes, which are not there
    monkeypatch.setattr(team_policy, "load_model", None)
    with pytest.raises(ValueError, match=r"memory_gib=1: expected more than 2\.\d+, the size of weights"):
        Run(config_of(model=str(tmp_path), memory_gib=1.0))


def test_a_warning_comes_before_the_load_if_less_memory_is_free(monkeypatch, caplog):
    def load_model(*arguments, **keywords):
        assert "critic need 0.0" in caplog.text and "and 0.001 GiB are free on cpu" in caplog.text
        return load.load_model(*arguments, **keywords)

    monkeypatch.setattr(team_policy, "load_model", load_model)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: GIB // 1000)
    Run(config_of())
    caplog.clear()
    monkeypatch.setattr(team_policy, "load_model", load.load_model)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: GIB)
    Run(config_of())
    assert "are free" not in caplog.text


def test_a_model_whose_shape_is_not_known_is_left_to_the_load(tmp_path):
    with pytest.raises(ModelNotFound, match=r"lacks config\.json or weights"):
        Run(config_of(model=str(tmp_path), memory_gib=1.0))
    with pytest.raises(ModelNotFound, match="transformers cannot read the configuration in model folder"):
        plan_without_weights(config_of(model=str(tmp_path)))


def test_an_absent_device_of_a_run_is_an_error_without_advice_on_plans(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for memory in (None, 72.0):
        with pytest.raises(ValueError, match=r"^device='cuda': (?!.*memory)"):
            Run(config_of(device="cuda", memory_gib=memory))


def test_the_budget_of_a_pass_is_in_the_head_of_the_rows(tmp_path):
    config = config_of(updates=0, evaluation_items=4, memory_gib=1.0)
    run = baselines.train(config, folder=tmp_path / "run")
    head = json.loads((tmp_path / "run" / "rows.jsonl").read_text().splitlines()[0])
    assert head["pass_gib"] == run.learner.passes.limits.gib == pytest.approx(1 - run.memory.fixed / GIB)


def test_a_gpu_gives_a_share_of_its_memory(monkeypatch):
    class Properties:
        total_memory = 80 * GIB

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties())
    assert device_memory.default_memory(torch.device("cuda", 1)) == int(0.9 * 80 * GIB)
    assert memory_plan.plan_of(config_of(), ["a"], {"tiny": (load_shape(), 4)}, torch.device("cuda")).memory > 71 * GIB


def load_shape():
    from baselines.models.find_shape import find_shape

    return find_shape("tiny")[0]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("device", "gpu", "device='gpu': expected auto, cpu, cuda, cuda:N or mps"),
        ("device", "meta", "device='meta': expected auto"),
        ("dtype", "bf16", "dtype='bf16': expected one of auto, float32, bfloat16, float16"),
    ],
)
def test_a_wrong_device_or_dtype_is_one_line_that_lists_the_valid_ones(field, value, expected, capsys):
    with pytest.raises(ValueError, match=f"^{expected}"):
        config_of(**{field: value})
    assert train.main(["--dry-run", "--arm", "marft", "--env-arg", "dataset=relay", f"--{field}", value]) != 0
    printed = capsys.readouterr().err
    assert expected in printed and "Traceback" not in printed


def test_an_absent_accelerator_needs_its_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ValueError, match=r"device='cuda': .*expected the GiB that the run may use of it.*memory_gib=72 for"
    ):
        plan_without_weights(config_of(device="cuda"))
    assert plan_without_weights(config_of(device="cuda", memory_gib=72)).memory == 72 * GIB


def test_a_gpu_that_a_machine_with_gpus_lacks_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for memory in (None, 72):
        with pytest.raises(ValueError, match=r"device='cuda:7': this machine has 1 CUDA device, cuda:0$"):
            plan_without_weights(config_of(device="cuda:7", memory_gib=memory))


def test_the_free_memory_is_that_of_the_plans_own_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "mem_get_info", lambda device=None: (7 * GIB * torch.device(device).index, 80 * GIB)
    )
    plan = memory_plan.plan_of(config_of(memory_gib=4), ["a"], {"tiny": (load_shape(), 4)}, torch.device("cuda", 1))
    assert device_memory.free_memory(plan.device) == 7 * GIB


@pytest.mark.parametrize(("fast", "element"), [(True, 2), (False, 4)])
def test_the_plan_has_the_dtype_that_the_run_chooses(monkeypatch, fast, element):
    monkeypatch.setattr(devices, "has_bfloat16", lambda device: fast)
    plan = plan_without_weights(config_of(model="smollm2-135m", device="cpu"))
    assert [base.element for base in plan.bases] == [element]


def test_the_plan_of_files_in_a_type_that_is_not_computed_in_has_float32(tmp_path):
    LlamaConfig(hidden_size=64, num_attention_heads=2, num_hidden_layers=1, dtype="float64").save_pretrained(tmp_path)
    for device in ("cpu", "cuda"):
        plan = plan_without_weights(config_of(model=str(tmp_path), device=device, memory_gib=72))
        assert plan.bases[0].element == 4


def test_a_containers_limit_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    (tmp_path / "memory.stat").write_text("anon 250\nfile 150\ninactive_file 100\nactive_file 50\n")
    assert device_memory._cgroup_available(tmp_path) == 700  # 1000 - 400, and the inactive files
    (tmp_path / "memory.max").write_text("max\n")
    assert device_memory._cgroup_available(tmp_path) is None
    assert device_memory._cgroup_available(tmp_path / "nowhere") is None
    assert device_memory.available_memory() > 0


def test_the_table_of_the_documentation_is_the_calculated_one():
    assert table_of_sizes() in (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
