"""throughput.py engine: the work is the same on all sides, and the table's arithmetic. Times are not tested."""

import copy
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from baselines.ladder import arm
from baselines.models.load import load_model
from baselines.policies.micro_batches import MicroBatches, PassLimits
from baselines.ppo.actor import Actor, AgentData
from benchmarks import throughput
from benchmarks.speed import engine, machine_limits, team_memory
from benchmarks.speed import sides as speed_sides
from benchmarks.speed.comparison import (
    BANDWIDTH,
    PRODUCTS,
    REFERENCE,
    Cell,
    Side,
    as_json,
    from_json,
    measure,
    memory_line,
    share,
    speedup,
    table_lines,
)
from benchmarks.speed.machine_limits import TrainingWork
from benchmarks.speed.reference_style import EPOCHS, ReferenceStyle, pad_turns
from benchmarks.speed.results_file import ResultsFile, seconds_left, work_of
from benchmarks.speed.workload import activated_workload, agents_of, make_policy, make_workload

CELL = Cell(episodes=3, agents=2, prompts="short", new_tokens=4)


@pytest.mark.slow
def test_the_engine_is_measured_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(machine_limits, "COPY_BYTES", 2**20)
    file = tmp_path / "engine.json"
    words = ["engine", "--quick", "--episodes", "1,2", "--new-tokens", "3", "--repetitions", "1", "--skip"]
    assert throughput.main([*words, "memory", "continuous", "--json", str(file)]) == 0
    printed, written = capsys.readouterr().out, json.loads(file.read_text())
    first, second = written["cells"]
    assert (first["episodes"], second["episodes"], second["agents"], second["new_tokens"]) == (1, 2, 2, 3)
    assert first["shortest_prompt"] > 100
    for name, found in {**second["generate"], **second["update"]}.items():
        assert found["failure"] == "" and len(found["seconds"]) == 1 and found["seconds"][0]["total"] > 0, name
    assert len(second["generate"]) == 7 and len(second["update"]) == 5
    parts = {"reference", "old_logprobs", "values", "actor", "critic", "total"}
    assert all(found["seconds"][0].keys() == parts for name, found in second["update"].items() if name != PRODUCTS)
    assert "did not run: a single episode has no other score" in printed
    monkeypatch.setattr(engine.Team, "of", None)  # no cell is left to measure
    again = [*words, "memory", "continuous", "--json", str(file), "--resume"]
    assert throughput.main(again) == 0
    assert capsys.readouterr().out == printed
    assert throughput.main([*again, "--new-tokens", "4"]) == 2
    assert "was measured with new_tokens=3, and now it is 4" in capsys.readouterr().err
    assert f"threads on every side: {torch.get_num_threads()}" in printed


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="VmHWM is Linux's")
def test_a_teams_peak_memory_is_measured_in_a_process_of_its_own(monkeypatch, capsys):
    asked = []

    def child(command, **_):
        asked.append(throughput.parse(command[2:]))
        return subprocess.CompletedProcess(command, int(len(asked) > 1), stdout="a line\n7\n", stderr="no memory\n")

    words = ["engine", "--quick", "--episodes", "3,2", "--new-tokens", "2"]
    assert throughput.main([*words, "--peak", "1"]) == 0
    assert int(capsys.readouterr().out) >= 0  # this process has memory left from the other tests
    assert throughput.main([*words, "--peak", "1", "--activated"]) == 0
    assert int(capsys.readouterr().out) >= 0
    monkeypatch.setattr(subprocess, "run", child)
    options = throughput.parse(words)
    assert team_memory.peaks_of_teams(options, activated=True) == {"1": 7, "8": "not measured: no memory"}
    assert [(o.peak, o.model, o.episodes, o.prompts, o.new_tokens, o.activated) for o in asked] == [
        (agents, "tiny", (3,), ("short",), 2, True) for agents in (1, 8)
    ]


@pytest.fixture
def team():
    """The policies, the reference style with the same adapters, and the work of CELL."""
    loaded = load_model("tiny")
    twin = replace(loaded, model=copy.deepcopy(loaded.model))
    policy = make_policy(loaded, agents_of(CELL.agents))
    return loaded, policy, ReferenceStyle(twin, policy), make_workload(CELL, loaded)


def _padded(work, agent, reference):
    turns = work.batch.turns[agent]
    return pad_turns(turns, int(turns.prompt_length.max()) + 5, CELL.new_tokens, reference.pad_id)


def test_the_reference_styles_loss_and_gradient_are_the_learners(team):
    _, policy, reference, work = team
    agent = policy.agents[1]
    config = arm("ippo").with_settings({"epochs": 1})
    actor = Actor(
        policy, config, temperature=1.0, passes=MicroBatches(PassLimits(turns=2)), generator=torch.Generator()
    )
    turns, padded = work.batch.turns[agent], _padded(work, agent, reference)
    base = policy.scores(turns, 1.0)  # any adapter gives log-probabilities to compare with
    old = (actor.token_logprobs(agent, turns) + torch.tensor([[0.5], [-0.4], [0.05]])).detach()  # clipped on both sides
    advantage = torch.tensor([1.0, -1.5, 0.5])
    data = AgentData(
        turns=turns,
        old_tokens=old,
        reference=base.logprobs.detach(),
        decisions=turns.action_mask[:, :1],
        old=actor.decision_logprobs(old, turns),
        advantage=advantage.unsqueeze(-1),
        factor=torch.ones(3),
        agent=torch.full((3,), 1),
    )
    reference.model.set_adapter(agent)
    with torch.no_grad():
        own, theirs = reference.token_logprobs(padded), actor.token_logprobs(agent, turns)
    assert torch.allclose(own, theirs, atol=1e-4)
    totals, losses = (3, 3 * CELL.new_tokens), []
    for rows in (slice(0, 2), slice(2, 3)):
        loss = reference.loss(padded.rows(rows), old[rows], data.reference[rows], advantage[rows], totals)
        loss.backward()
        losses.append(float(loss.detach()))
    gradients = [p.grad for name, p in reference.model.named_parameters() if f".{agent}." in name]
    norm = float(torch.stack([g.norm() for g in gradients]).norm())
    found = actor.train(agent, data)
    assert found["loss"] == pytest.approx(sum(losses), rel=1e-4)
    assert found["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert 0 < found["clip_fraction"] < 1


def test_the_reference_style_trains_all_adapters_and_the_value_head(team):
    _, policy, reference, work = team
    padded = {agent: _padded(work, agent, reference) for agent in policy.agents}
    scores = {agent: work.batch.score[turns.episode] for agent, turns in work.batch.turns.items()}
    before = {name: p.detach().clone() for name, p in reference.model.named_parameters()}
    head = reference.value_head.weight.detach().clone()
    parts = reference.update(padded, scores, 2, padded[policy.agents[0]].ids.shape[1] - CELL.new_tokens)
    changed = {name for name, p in reference.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {name for name in before if "lora_" in name}
    assert not torch.equal(reference.value_head.weight, head)
    assert parts.keys() == {"reference", "old_logprobs", "values", "actor", "critic"}


def test_every_side_generates_all_tokens(team):
    loaded, policy, reference, work = team
    for run in (
        speed_sides.engine_side(work, loaded, policy, merge=True),
        speed_sides.engine_side(work, loaded, policy, merge=False),
        speed_sides.engine_side(work, loaded, policy, merge=True, together=True),
        speed_sides.reference_generation(work, reference),
        speed_sides.continuous_batching(work, reference),
    ):
        assert run()["total"] > 0  # each run checks the number of its tokens
    with pytest.raises(RuntimeError, match="23 tokens generated: expected 24"):
        speed_sides._check(23, work)


def test_the_work_of_an_update_is_counted(team):
    _, policy, _, work = team
    lengths = [len(ids) for prompts in work.prompts.values() for ids in prompts]
    assert speed_sides.training_work(work) == TrainingWork(sum(lengths) + 24, 24, EPOCHS)
    # 100 tokens of a turn have logits of 100 x 30 x 4 bytes, of which three copies fit the memory of a pass
    sized = PassLimits(gib=2 * 3 * 100 * 30 * 4 / 2**30)
    assert speed_sides.reference_rows(work, policy, PassLimits(), 100) == CELL.episodes
    assert speed_sides.reference_rows(work, policy, sized, 100) <= 2


def test_activated_adapters_do_the_same_work(team):
    _, _, _, work = team
    loaded = load_model("tiny")
    policy = make_policy(loaded, agents_of(CELL.agents), activated=True)
    assert speed_sides.engine_side(work, loaded, policy, merge=True)()["total"] > 0
    own = activated_workload(work, policy)
    for agent, turns in own.batch.turns.items():
        assert turns.base_tokens.tolist() == [len(ids) - 1 for ids in work.prompts[agent]]  # all but the invocation
        assert torch.equal(turns.tokens, work.batch.turns[agent].tokens)
    found = speed_sides.learner_side(own, policy, "ippo", PassLimits())()
    assert {"actor", "total"} <= found.keys()


def test_long_prompts_are_longer_and_differ():
    loaded = load_model("tiny")
    short, long = (make_workload(replace(CELL, prompts=kind), loaded).prompts["agent_0"] for kind in ("short", "long"))
    assert min(map(len, long)) > max(map(len, short))
    assert len(set(long)) == CELL.episodes


def side(name, *totals):
    return Side(name, dict, seconds=[{"total": total} for total in totals])


def test_shares_and_ratios_of_made_up_seconds():
    ours, reference = side("ours", 2.0, 3.0), side(REFERENCE, 8.0, 6.0)
    sides = [ours, reference, side(PRODUCTS, 1.0, 1.5), side(BANDWIDTH, 0.5, 0.2)]
    assert share(ours, sides) == 0.5  # 1.0 / 2.0: the larger of the limits, between bests
    assert speedup(ours, sides) == (3.0, 3.0)  # 6 / 2; the median of 8 / 2 and 6 / 3
    assert share(ours, [ours]) is None and speedup(ours, [ours]) is None
    lines = table_lines(Cell(3, 2, "short", 4), "generate", [*sides, Side("other", dict, failure="TypeError: no")])
    # 24 tokens in 2.0 s, and a median of 2.5 s
    assert lines[0].split()[3:] == ["generate", "ours", "12.0", "tokens/s", "9.6", "50.0%", "3.00", "3.00"]
    assert lines[-1].endswith("other                             did not run: TypeError: no")
    (line,) = table_lines(
        Cell(3, 2, "long", 4), "update", [Side("ours", dict, seconds=[{"actor": 0.25, "total": 0.5}])]
    )
    assert line.split()[4:] == ["ours", "0.500", "s/update", "0.500", "actor", "0.250"]


def test_measurements_that_were_written_give_the_same_lines():
    sides = [side("ours", 2.0, 3.0), side(REFERENCE, 8.0, 6.0), Side("other", dict, failure="TypeError: no")]
    written = json.loads(json.dumps(as_json(sides)))
    assert table_lines(CELL, "generate", from_json(written)) == table_lines(CELL, "generate", sides)


def test_the_ratio_of_peak_memory():
    assert memory_line({"1": 2**20 * 100, "8": 2**20 * 150}) == "1 agent 100 MiB, 8 agents 150 MiB, ratio 1.50"
    assert memory_line({"1": 2**20, "8": "not measured: no"}) == "1 agent 1 MiB, 8 agents not measured: no"


def test_the_time_left_is_that_of_the_work_left():
    # 2 agents: 64 tokens of 8 each, and 16 turns of 100 + 64 tokens; a single episode has no update
    cells = [Cell(1, 2, "short", 64), Cell(16, 2, "short", 64), Cell(16, 4, "long", 64)]
    assert [work_of(cell) for cell in cells] == [1024, 2 * (512 + 16 * 164), 4 * (512 + 16 * 364)]
    measured = [{**vars(cells[0]), "seconds": 10.24}]
    assert seconds_left(measured, cells[1:]) == pytest.approx(0.01 * (6272 + 25344))
    assert seconds_left([], cells) is None


def test_results_are_resumed_from_a_file_of_the_same_settings(tmp_path):
    file, cell = tmp_path / "engine.json", {**vars(CELL), "seconds": 1.0}
    ResultsFile(file, {"skip": ("a",)}, resume=True).add(cell)
    again = ResultsFile(file, {"skip": ("a",)}, resume=True)
    assert again.find(CELL) == cell and again.find(replace(CELL, agents=3)) is None
    assert ResultsFile(file, {"skip": ("a",)}, resume=False).cells == []
    with pytest.raises(ValueError, match=r"was measured with skip=\['a'\], and now it is \['b'\]"):
        ResultsFile(file, {"skip": ("b",)}, resume=True)
    file.write_text("[]")
    with pytest.raises(ValueError, match="engine to resume"):
        ResultsFile(file, {}, resume=True)


def test_sides_alternate_and_one_that_raises_is_reported():
    ran = []

    def work(name):
        ran.append(name)
        return {"total": 1.0}

    def broken():
        ran.append("c")
        raise ValueError("first\nsecond")

    third = Side("c", broken)
    sides = [Side("a", lambda: work("a")), Side("b", lambda: work("b")), third]
    measure(sides, 2)
    assert ran == ["a", "b", "c", "a", "b", "a", "b"]  # the first round warms up
    assert [len(s.seconds) for s in sides] == [2, 2, 0] and third.failure == "ValueError: first"


def test_a_long_first_repetition_counts():
    seconds = iter((19.0, 20.0, 3.0, 4.0, 5.0))
    sides = [Side(name, lambda: {"total": next(seconds)}) for name in ("short", "long")]
    measure(sides, 2)
    assert [s.totals for s in sides] == [[3.0, 5.0], [20.0, 4.0]]


def test_a_failure_of_a_side_of_this_project_is_the_exit_code(monkeypatch, capsys):
    def broken(*_, **__):
        raise ValueError("no tokens")

    monkeypatch.setattr(engine, "engine_side", lambda *_, **__: broken)
    words = ["engine", "--quick", "--episodes", "1", "--repetitions", "1"]
    skipped = ["unmerged", "together", "activated", "activated-update", "reference", "continuous", "reference-update"]
    assert throughput.main([*words, "--skip", "memory", *skipped]) == 1
    printed = capsys.readouterr()
    assert "ours, adapters merged             did not run: ValueError: no tokens" in printed.out
    assert "sides of this project that failed: ours, adapters merged" in printed.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--episodes", "1,0"], "'1,0': expected positive integers, such as 1,16,64"),
        (["--agents", "two"], "'two': expected positive integers"),
        (["--prompts", "short,none"], "'short,none': expected short, long or short,long"),
        (["--new-tokens", "0"], "--new-tokens=0: expected at least 1"),
        (["--trl", "nowhere/python"], "--trl=nowhere/python: expected the Python of an environment with TRL, peft"),
        (["--llama-cpp", "python"], "--llama-cpp=python: expected the Python of an environment with llama-cpp-python"),
        (["--resume"], "--resume: expected --json FILE, the file to resume"),
        (["--activated"], "--activated: expected --peak AGENTS"),
        (["--peak", "0"], "--peak=0: expected at least 1"),
        (["--repetitions", "0"], "--repetitions=0: expected at least 1"),
        (["--skip", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_a_wrong_option_of_the_engine_is_one_line(words, expected, capsys):
    with pytest.raises(SystemExit) as stop:
        throughput.main(["engine", *words])
    assert stop.value.code == 2 and expected in capsys.readouterr().err
