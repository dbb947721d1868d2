"""Evaluation plays the test split only, with the team of the arm, on the own and on transfer data sets."""

import json

import pytest

from baselines.engine.torch_engine import Decoding
from baselines.runs.evaluation import evaluation_items, evaluation_row, heldout_runner, play_items
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy

REPORT = {"dataset": "report", "team": "panel_4"}


@pytest.fixture
def contest(tmp_path):
    """Environment arguments of a data set without a training split."""
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps({"question": f"{i} + 1?", "answer": i + 1}) + "\n" for i in range(40)))
    return {"dataset": "amc23", "path": str(path), "team": "duo"}


def config(arm, **changes):
    return RunConfig(arm=arm, episodes=2, evaluation_items=3, updates=0, decoding=Decoding(max_new_tokens=2), **changes)


def test_a_data_set_without_a_training_split_is_evaluated(contest):
    run = config("untrained", environment_arguments=contest)
    runner = heldout_runner(run)
    team = TeamPolicy(run, runner.team.agents, run.decoding)
    episodes = play_items(runner, team.sampler(None), evaluation_items(runner, run.evaluation_items, run.seed))
    row = evaluation_row(episodes, runner.team.agents)
    assert (row["n"], row["item_index"]) == (3, [0, 1, 2])


def test_the_arm_single_has_one_agent_on_transfer_data_sets_too(contest):
    public = {"dataset": "custom", "path": contest["path"], "columns": {"prompt": "question", "answer": "answer"}}
    run = Run(config("single", environment_arguments={**public, "team": "duo"}, transfer={"amc23": contest}))
    assert len(run.testing.team.agents) == len(run.transfer["amc23"].team.agents) == 1
    assert run.evaluate(0, "greedy", run.transfer["amc23"])["n"] == 3
    team = Run(config("ippo", environment_arguments={**public, "team": "duo"}, transfer={"amc23": contest}))
    assert len(team.transfer["amc23"].team.agents) == 2


def test_the_arm_single_refuses_problems_with_private_parts(contest):
    with pytest.raises(ValueError, match="arm='single' on report: each agent has a private part"):
        heldout_runner(config("single", environment_arguments=contest), REPORT)
