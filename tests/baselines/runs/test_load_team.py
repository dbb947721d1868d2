"""Trained teams: in the batch runner, step by step, under other names, and with the command ``play``."""

import json

import numpy as np
import pytest

import baselines
import marft_envs
from baselines import play
from baselines.engine.torch_engine import Decoding
from baselines.runs import team_policy as team_module
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.evaluation import EVALUATION, evaluation_items, play_items
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner, Request
from tests.baselines.engine.generate import generate

RELAY = {"dataset": "relay", "style": "symbols"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run, and its rows."""
    folder, rows = tmp_path_factory.mktemp("trained") / "run", []
    config = RunConfig(
        arm="ippo",
        environment_arguments=RELAY,
        updates=3,
        episodes=32,
        evaluate_every=10,
        evaluation_items=40,
        checkpoint_every=1,
        settings={"learning_rate": 3e-3, "normalization": "sum"},
        decoding=Decoding(max_new_tokens=4),
    )
    train(config, rows.append, folder=folder)
    return folder, rows


def scores(rows, mode, update=3):
    return next(r["item_score"] for r in rows if r["kind"] == "eval" and (r["mode"], r["update"]) == (mode, update))


def test_a_loaded_team_scores_as_the_run_evaluated_it(trained):
    folder, rows = trained
    runner = BatchRunner(marft_envs.math_v0.env(**RELAY, split="test"), 40)
    items = evaluation_items(runner, 40, seed=0)
    greedy = baselines.load_team(folder, greedy=True)
    assert [e.score for e in play_items(runner, greedy.policy, items)] == scores(rows, "greedy")
    assert scores(rows, "greedy") != scores(rows, "greedy", 0)  # training had an effect
    sampled = baselines.load_team(folder)
    sampled.sampler = sampled.team.sampler((0, EVALUATION))
    assert [e.score for e in play_items(runner, sampled.policy, items)] == scores(rows, "sampled")


def test_path_of_a_run_or_a_checkpoint_and_a_chosen_update(trained):
    folder, _ = trained
    assert baselines.load_team(folder).update == 3 and baselines.load_team(folder, update=2).update == 2
    assert baselines.load_team(folder / "checkpoints" / "000002").update == 2
    with pytest.raises(CheckpointError, match=r"run has no checkpoint of update 1: expected one of 2, 3$"):
        baselines.load_team(folder, update=1)
    with pytest.raises(CheckpointError, match=r"000002 is of update 2: expected update=2 or None, got 3$"):
        baselines.load_team(folder / "checkpoints" / "000002", update=3)
    with pytest.raises(CheckpointError, match="has no checkpoints/ and no manifest"):
        baselines.load_team(folder / "transcripts")
    with pytest.raises(CheckpointError, match="nothing does not exist: expected the folder of a run"):
        baselines.load_team(folder / "nothing")


def test_act_gives_the_same_actions_as_the_batch_runner(trained):
    team = baselines.load_team(trained[0], greedy=True)
    assert isinstance(team, baselines.LoadedTeam) and set(team.agents) == {"reasoner_0", "actor_0"}
    env = marft_envs.math_v0.env(**RELAY, split="test")
    runner = BatchRunner(env, 8)
    in_batches = [[s.text for s in e.steps] for e in runner.play(team.policy, indices=range(8))]
    step_by_step = []
    for index in range(8):
        env.reset(options={"index": index})
        step_by_step.append([])
        while not env.unwrapped.over:
            step_by_step[-1].append(team.act(env.agent_selection, env.observe(env.agent_selection)))
            env.step(step_by_step[-1][-1])
    assert step_by_step == in_batches


def test_sampled_actions_follow_the_seed(trained):
    env = marft_envs.math_v0.env(**RELAY)
    env.reset(seed=0)
    observation = env.observe("reasoner_0")

    def actions(seed):
        team = baselines.load_team(trained[0], seed=seed)
        return [team.act("reasoner_0", observation) for _ in range(12)]

    first = actions(1)
    assert first == actions(1) != actions(2) and len(set(first)) > 1


def test_requests_of_several_agents_at_once_and_other_names(trained):
    team = baselines.load_team(trained[0], greedy=True, roles={"agent_0": "reasoner_0", "agent_1": "actor_0"})
    env = marft_envs.math_v0.env(**RELAY)
    env.reset(seed=0)
    observation = env.observe("reasoner_0")
    requests = [Request(0, 5, agent, 0, 0, observation) for agent in ("agent_1", "reasoner_0", "agent_0", "actor_0")]
    actor, reasoner, also_reasoner, also_actor = (reply.text for reply in team.policy(requests))
    assert reasoner == also_reasoner == team.act("reasoner_0", observation) and actor == also_actor
    with pytest.raises(TypeError) as error:
        team.act("agent_0", "hello")
    assert str(error.value) == (
        "observation='hello': got str, expected a mapping, as env.observe('agent_0') returns it"
    )
    with pytest.raises(ValueError, match=r"^roles: 'x'='planner_0': expected one of reasoner_0, actor_0$"):
        baselines.load_team(trained[0], roles={"x": "planner_0"})
    with pytest.raises(ValueError) as error:
        team.act("agent_2", observation)
    assert str(error.value) == (
        "agent 'agent_2' was not trained: expected one of reasoner_0, actor_0, "
        "or load_team(..., roles={'agent_2': one of them})"
    )


def test_a_team_prints_as_one_line(trained):
    team = baselines.load_team(trained[0], roles={"agent_0": "actor_0"})
    assert repr(team) == (
        "LoadedTeam(arm='ippo', task='relay', agents=('reasoner_0', 'actor_0'), update=3, model='tiny', "
        "roles={'agent_0': 'actor_0'})"
    )
    assert repr(team.team) == "TeamPolicy(agents=('reasoner_0', 'actor_0'), models=['tiny'])"
    assert repr(team.team.groups[0]) == "BaseGroup(name='tiny')" and "\n" not in repr(team.sampler)


def test_a_folder_without_a_checkpoint_is_reported(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    for update in (None, 2):
        with pytest.raises(
            CheckpointError, match=f"^{tmp_path} has no checkpoint: the run stopped before it wrote one"
        ):
            baselines.load_team(tmp_path, update=update)


def test_each_agent_has_its_own_policy(trained):
    team = baselines.load_team(trained[0])
    engine, prompt = team.team.groups[0].engine, [[10, 13, 7, 17]]
    uniforms = np.full((1, 4), 0.5)
    a, b = (generate(engine, agent, prompt, uniforms)[0].logprobs for agent in team.agents)
    assert a != b


def test_the_arm_single_has_the_token_limit_of_the_team(tmp_path):
    fields = {"environment_arguments": {"dataset": "one_step"}, "updates": 0, "evaluation_items": 1}
    train(RunConfig(arm="single", decoding=Decoding(max_new_tokens=3), **fields), folder=tmp_path)
    team = baselines.load_team(tmp_path)
    assert len(team.agents) == 1 and team.team.groups[0].engine.decoding.max_new_tokens == 6


def test_another_base_is_refused(trained, monkeypatch):
    real = team_module.load_model
    monkeypatch.setattr(team_module, "load_model", lambda name, **keywords: real("tiny-report"))
    with pytest.raises(
        ValueError,
        match=r"the checkpoint's adapters were trained on 'tiny-relay-duo-v1' .*: expected the same base model",
    ):
        baselines.load_team(trained[0])


def test_play_shows_an_episode(trained, capsys):
    assert play.main([str(trained[0]), "--index", "3", "--greedy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["ippo after update 3, greedy", "# math_v0 problem 3"]
    assert [line.split("]")[0] for line in lines if line.startswith("[")] == ["[reasoner_0", "[actor_0"]
    assert lines[-1].startswith("=> team score ")
    assert play.main([str(trained[0]), "--env", "math_v0", "--env-arg", "dataset=relay", "--seed", "7"]) == 0
    assert "# math_v0 problem" in capsys.readouterr().out


def test_play_loads_the_base_in_another_type_and_warns(trained, capsys, caplog):
    assert play.main([str(trained[0]), "--index", "3", "--dtype", "bfloat16"]) == 0
    assert "the adapters were trained with dtype float32, now bfloat16" in caplog.text
    assert baselines.load_team(trained[0], dtype="bfloat16").team.models()["tiny"]["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dtype", "bf16"], "dtype='bf16': expected one of auto, float32, bfloat16, float16"),
        (["--quantization", "8bit"], "quantization='8bit': expected one of none, 4bit"),
        (["--env", "maths_v0"], "maths_v0"),
        (["--env-arg", "dataset"], "--env-arg dataset: expected KEY=VALUE"),
        (["--env-arg", "team=trio"], "was not trained: expected one of reasoner_0, actor_0"),
        (["--update", "9"], "has no checkpoint of update 9: expected one of 2, 3"),
        (["--index", "-1"], "-1"),
        (["--env", "tests.baselines.task_without_split:counting_v0"], "need an environment with the argument split"),
    ],
)
def test_an_invalid_option_of_play_is_one_line(trained, clean_registry, capsys, words, message):
    assert play.main([str(trained[0]), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("play: ") and message in error and error.count("\n") == 1


def test_transcripts_are_traces(trained):
    from marft_envs.traces import read, replay

    trace = read(trained[0] / "transcripts" / "000003-sampled.jsonl")
    about = {"update": 3, "mode": "sampled", "dataset": "", "items": 40}
    assert trace.header["notes"] == about and len(trace.episodes) == 8
    row = json.loads(json.dumps(trace.episodes[0]))
    replay(marft_envs.math_v0.env(**RELAY, split="test"), row)
