"""Heterogeneous teams: several bases and tokenizers; frozen, scripted and sharing agents; full tuning."""

import json
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

import baselines
import marft_envs
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.runs.run import Run, train
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner, PolicyFault
from tests.baselines.engine.generate import generate

REPORT = {"dataset": "report", "style": "symbols", "team": "panel_4"}
RELAY = {"dataset": "relay", "style": "symbols"}
MIXED = {"agent_0": "tiny", "agent_2": "tiny"}


def config(**changes):
    fields = {
        "arm": "marft",
        "environment_arguments": REPORT,
        "model": "tiny-report",
        "updates": 3,
        "episodes": 16,
        "evaluate_every": 9,
        "evaluation_items": 6,
        "checkpoint_every": 1,
        "keep_checkpoints": 9,
        "transcripts": 0,
        "settings": {"learning_rate": 3e-3, "normalization": "sum", "ev_gate": 0.0, "advantage_floor": 0.0},
        "decoding": Decoding(max_new_tokens=4),
    }
    return RunConfig(**{**fields, **changes})


def rows(folder):
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(x).items() if k not in ("wall_s", "seconds", "started")} for x in lines]


def weights(folder, update):
    adapters = folder / "checkpoints" / f"{update:06d}" / "adapters"
    return {str(f.parent.name): f.read_bytes() for f in sorted(adapters.rglob("*.safetensors"))}


def changed_adapters(folder, update=3):
    before, after = weights(folder, 0), weights(folder, update)
    return [name for name in after if after[name] != before[name]]


def reply_seven(requests):
    """A scripted agent for the tests below."""
    return ["7"] * len(requests)


def no_reply(requests):
    """A scripted agent whose endpoint is down."""
    raise PolicyFault("no connection")


@pytest.fixture(scope="module")
def other_tokenizer(tmp_path_factory):
    """The tiny model with its vocabulary in another order: the same function of strings with other token ids."""
    folder = tmp_path_factory.mktemp("permuted")
    loaded = load_model("tiny")
    order = [0, 1, 2, *range(29, 2, -1)]  # new id -> old id; the special tokens stay
    with torch.no_grad():
        for layer in (loaded.model.get_input_embeddings(), loaded.model.get_output_embeddings()):
            layer.weight.copy_(layer.weight[order].clone())
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    file = folder / "tokenizer.json"
    settings = json.loads(file.read_text())
    vocabulary = settings["model"]["vocab"]
    old = {i: symbol for symbol, i in vocabulary.items()}
    settings["model"]["vocab"] = {old[before]: after for after, before in enumerate(order)}
    file.write_text(json.dumps(settings))
    (folder / "model_card.json").write_text('{"names_in_template": true}')
    return str(folder)


VARIANTS = {
    "bases": ({"bases": MIXED}, ["agent_0", "agent_1", "agent_2", "agent_3"]),
    "own critics": ({"arm": "ippo", "bases": MIXED}, ["agent_0", "agent_1", "agent_2", "agent_3"]),
    "tokens": ({"arm": "marft_token", "bases": MIXED}, ["agent_0", "agent_1", "agent_2", "agent_3"]),
    "everything": (
        {
            "bases": MIXED,
            "scripted": {"agent_1": "tests.baselines.runs.test_team_policy:reply_seven"},
            "frozen": ("agent_3",),
            "sharing": {"agent_0": "both", "agent_2": "both"},
        },
        ["both"],
    ),
    "activated": (
        {
            "bases": MIXED,
            "scripted": {"agent_1": "tests.baselines.runs.test_team_policy:reply_seven"},
            "lora": LoraSettings(activated=True, invocation="="),
        },
        ["agent_0", "agent_2", "agent_3"],
    ),
    "full": ({"tuning": "full"}, ["agent_0", "agent_1", "agent_2", "agent_3"]),
    "full, one frozen, two bases": (
        {"tuning": "full", "bases": MIXED, "frozen": ("agent_0",)},
        ["agent_1", "agent_2", "agent_3"],
    ),
}


QUICK = ("everything", "activated")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in VARIANTS])
def test_a_mixed_team_trains_resumes_and_plays(tmp_path, name):
    """Only trained weights change, a resumed run has the same numbers, and load_team plays as the run evaluated."""
    changes, trained = VARIANTS[name]
    run = config(**changes)
    train(run, folder=tmp_path / "whole")
    train(replace(run, updates=2), folder=tmp_path / "parts")
    train(run, folder=tmp_path / "parts", resume=True)
    whole, parts = rows(tmp_path / "whole"), rows(tmp_path / "parts")
    assert [r for r in whole if r["kind"] == "train"] == [r for r in parts if r["kind"] == "train"]
    assert weights(tmp_path / "whole", 3) == weights(tmp_path / "parts", 3)
    assert changed_adapters(tmp_path / "whole") == trained
    team = baselines.load_team(tmp_path / "whole", greedy=True)
    runner = BatchRunner(marft_envs.math_v0.env(**REPORT, split="test"), 6)
    row = next(r for r in whole if r["kind"] == "eval" and (r["update"], r["mode"]) == (3, "greedy"))
    assert [e.score for e in runner.play(team.policy, indices=row["item_index"])] == row["item_score"]


def bases_of(policy):
    return {name: p.clone() for name, p in policy.named_parameters() if "lora_" not in name}


def test_the_bases_do_not_change():
    run = Run(config(bases=MIXED))
    before = [bases_of(group.policy) for group in run.policy.groups]
    run.train_once(1)
    for group, old in zip(run.policy.groups, before, strict=True):
        now = bases_of(group.policy)
        assert len(now) > 10 and all(torch.equal(now[name], old[name]) for name in old)
    assert [group.policy.agents for group in run.policy.groups] == [("agent_0", "agent_2"), ("agent_1", "agent_3")]
    assert run.policy.hidden_sizes == (128, 64) and list(run.policy.blocks) == [f"agent_{i}" for i in range(4)]


def test_agents_with_different_tokenizers_exchange_strings(other_tokenizer):
    """An actor with other token ids gives the same replies to the same messages."""
    teams = [Run(config(environment_arguments=RELAY, model="tiny", bases=bases)) for bases in
             ({}, {"actor_0": other_tokenizer})]  # fmt: skip
    played = [run.testing.play(run.policy.sampler(None), indices=range(6)) for run in teams]
    texts = [[turn.text for episode in episodes for turn in episode.transcript] for episodes in played]
    assert texts[0] == texts[1] and len(set(texts[0])) > 3
    ids = [[step.data.action_ids for episode in episodes for step in episode.steps] for episodes in played]
    assert ids[0][0::2] == ids[1][0::2] and ids[0][1] != ids[1][1]  # only the actor's ids differ


def test_a_scripted_agent_is_read_by_the_critic_and_not_trained(tmp_path):
    """It has turns in the critic's history, but no weights, no metrics and no generated tokens."""
    (tmp_path / "reply.txt").write_text("12\n")
    run = Run(config(scripted={"agent_1": str(tmp_path / "reply.txt")}))
    sampler = run.policy.sampler((0, 1))
    episodes = run.rollout(1, sampler)
    assert {turn.text for e in episodes for turn in e.transcript if turn.agent == "agent_1"} == {"12"}
    batch = run.batch(episodes, sampler)
    assert batch.mask.all() and batch.mask.shape[1] == 4 and len(batch.turns["agent_1"]) == 16
    tokenizer = run.loaded.tokenizer
    turns = batch.turns["agent_1"]
    read = tokenizer.decode(turns.tokens[0][turns.token_mask[0]][turns.prompt_length[0] :])
    assert read == "12" + tokenizer.eos_token
    by_models = sum(len(s.data.action_ids) for e in episodes for s in e.steps if s.request.agent != "agent_1")
    assert sampler.generated_tokens == by_models
    metrics = run.learner.update(batch)
    assert list(metrics["agents"]) == ["agent_0", "agent_2", "agent_3"] and list(run.policy.adapter_of) == [
        "agent_0", "agent_2", "agent_3"
    ]  # fmt: skip


def test_a_fault_of_a_script_is_not_of_the_agents_that_act_at_the_same_time():
    """Agent 0 has acted when agent 1 has no reply; the other two act in the same wave."""
    run = Run(config(scripted={"agent_1": "tests.baselines.runs.test_team_policy:no_reply"}, episodes=2))
    episodes = run.rollout(1, run.policy.sampler(None))
    assert [e.not_graded for e in episodes] == ["policy of agent_1: no connection"] * 2
    assert [[step.request.agent for step in e.steps] for e in episodes] == [["agent_0"]] * 2
    assert run.training.counts.unanswered == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bases": {"agent_9": "tiny"}}, r"bases: agent='agent_9': expected one of agent_0, .* \(did you mean 'agent_"),
        ({"scripted": {"agent_9": "a:b"}}, "scripted: agent='agent_9': expected one of"),
        ({"scripted": {"agent_1": "nothing"}}, r"scripted.agent_1='nothing': expected module:function, or the path of"),
        (
            {"scripted": {"agent_1": "json:lads"}},
            r"scripted.agent_1='json:lads': .*no attribute 'lads'; expected modul",
        ),
        ({"scripted": {"agent_1": "json:__name__"}}, r"scripted.agent_1='json:__name__' is a str: expected a function"),
        ({"scripted": {"agent_1": "none.txt"}}, r"scripted.agent_1='none.txt': .*No such file.*; expected a text file"),
        (
            {"scripted": dict.fromkeys(("agent_0", "agent_1", "agent_2", "agent_3"), "a:b")},
            "at least one agent that is",
        ),
        ({"scripted": {"agent_1": "a:b"}, "frozen": ("agent_1",)}, "agent 'agent_1' is in frozen and in scripted"),
        (
            {"bases": MIXED, "sharing": {"agent_0": "both", "agent_1": "both"}},
            "sharing: adapter 'both' is on base 'tiny', but agent_1 is on base 'tiny-report': expected all agents of "
            "an adapter on one base",
        ),
        (
            {"bases": MIXED, "settings": {"critic_network": "head"}},
            "critic_network='head' with critic='central' and agents on several bases: expected 'additive'",
        ),
        ({"tuning": "ful"}, r"tuning='ful': expected one of lora, full \(did you mean 'full'\?\)"),
    ],
)
def test_settings_that_do_not_fit_the_team_are_reported(changes, message):
    with pytest.raises(ValueError, match=message):
        Run(config(**changes))


def test_fully_tuned_weights_load_with_plain_transformers(tmp_path):
    """The folder of one agent gives its logits, which differ from the base's."""
    run = Run(config(tuning="full"))
    run.train_once(1)
    ids = torch.tensor([run.loaded.tokenizer("7+4=")["input_ids"]])
    for path, data in run.policy.files().items():
        if path.startswith("agent_1/"):
            (tmp_path / path.removeprefix("agent_1/")).write_bytes(data)
    with torch.no_grad():
        with run.policy.of("agent_1").use("agent_1"):
            ours = run.policy.of("agent_1").causal_lm(input_ids=ids).logits
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()(input_ids=ids).logits
        base = load_model("tiny-report").model(input_ids=ids).logits
        with run.policy.of("agent_1").use(None):
            reference = run.policy.of("agent_1").causal_lm(input_ids=ids).logits
    assert torch.equal(ours, theirs) and torch.equal(reference, base) and not torch.allclose(ours, base, atol=1e-3)


def test_full_tuning_starts_as_the_reference():
    run = Run(config(tuning="full"))
    metrics = run.train_once(1)
    assert all(m["kl_reference"] == 0.0 and m["grad_norm"] > 0 for m in metrics["agents"].values())


def test_use_restores_the_active_policy_when_its_block_ends():
    policy = SharedBasePolicy(load_model("tiny").model, ("reasoner_0", "actor_0"), None, 0, frozen=["reasoner_0"])
    base = policy.causal_lm
    with policy.use("actor_0"):
        acting = policy.causal_lm
        with policy.use(None):
            assert policy.causal_lm is base
        assert policy.causal_lm is acting is not base
    assert policy.causal_lm is base
    with policy.use("reasoner_0"):  # frozen: no copy of its own
        assert policy.causal_lm is base


def test_full_tuning_of_a_16_bit_base_trains_fp32_weights_and_starts_near_the_reference():
    loaded = load_model("tiny", dtype="bfloat16")
    policy = SharedBasePolicy(loaded.model, ("reasoner_0", "actor_0"), None, 0)
    engine = TorchEngine(policy, loaded.tokenizer, Decoding(max_new_tokens=4))
    prompts = [loaded.tokenizer(f"{a}+{b}=")["input_ids"] for a in range(8) for b in range(4)]
    own, reference = (generate(engine, agent, prompts, None) for agent in ("actor_0", None))
    assert {p.dtype for p in policy.adapter_parameters("actor_0")} == {torch.float32}
    same = sum(a.token_ids == b.token_ids for a, b in zip(own, reference, strict=True))
    assert same >= 28  # of 32: rounding may change the choice between near-equal tokens
    for a, b in zip(own, reference, strict=True):
        if a.token_ids == b.token_ids:
            assert a.logprobs == pytest.approx(b.logprobs, abs=0.1)
