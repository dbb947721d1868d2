"""MAPoRL's return in a run: every reply of every round is graded, and each turn ends its own sequence."""

import pytest
import torch

import marft_envs
from baselines.engine.torch_engine import Decoding
from baselines.functional.advantages import maporl_returns
from baselines.ladder import arm
from baselines.ppo.credit import maporl, monte_carlo_returns
from baselines.ppo.learner import Learner
from baselines.runs.reply_scores import reply_scores
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner
from marft_envs.mathematics.problems.team_report import Report
from marft_envs.verdict import Verdict

NAN = float("nan")
ROUNDS = {"dataset": "report", "style": "symbols", "team": "panel_4", "rounds": 3}


def run_of(name="ippo", **settings):
    return Run(
        RunConfig(
            arm=name,
            environment_arguments=ROUNDS,
            model="tiny-report",
            episodes=32,
            evaluation_items=1,
            settings={"normalization": "sum", "learning_rate": 3e-3, "reward": "maporl", "gamma": 0.3, **settings},
            decoding=Decoding(max_new_tokens=4),
        )
    )


def test_agents_without_a_reply_are_in_no_mean_and_episodes_have_their_own_number_of_rounds():
    """Episode 0: b does not reply in round 0: R[1] = s[1], R[0][a] = (.2 + .3 (.6 + 1) / 2) / 1.3 = .44 / 1.3.
    Episode 1 has one round: its scores are its returns."""
    scores = torch.tensor([[[0.2, NAN], [0.6, 1.0]], [[0.5, 0.1], [NAN, NAN]]])
    returns = maporl_returns(scores, 0.3)
    torch.testing.assert_close(returns[0, 1], torch.tensor([0.6, 1.0]))
    assert float(returns[0, 0, 0]) == pytest.approx(0.44 / 1.3) and bool(returns[0, 0, 1].isnan())
    torch.testing.assert_close(returns[1, 0], torch.tensor([0.5, 0.1]))


def test_a_run_learns_from_the_scores_of_all_replies(monkeypatch):
    """Advantages are R - V of each turn, the scores are the grader's for each reply, and the policies change."""
    run, seen, update = run_of(), [], Learner.update
    monkeypatch.setattr(Learner, "update", lambda self, batch: seen.append(batch) or update(self, batch))
    before = [p.detach().clone() for a in run.policy.agents for p in run.policy.adapter_parameters(a)]
    played = []
    rollout = run.rollout
    run.rollout = lambda number, sampler: played.extend(rollout(number, sampler)) or played
    row = run.train_once(1)
    (batch,) = seen
    for b, episode in enumerate(played[:5]):
        for k, turn in enumerate(episode.transcript):
            correct = turn.text.rstrip(".") == episode.problem.gold[turn.agent]
            assert float(batch.reply_score[b, k]) == correct
    config = run.learner.config
    returns = maporl(batch, config)
    assert torch.equal(returns, monte_carlo_returns(batch, config)) and 0 < float(returns.mean()) < 1
    last = batch.round_index == 2
    assert torch.equal(returns[last], batch.reply_score[last])  # nothing follows the last round
    values = torch.full_like(returns, 0.25).unsqueeze(-1)
    zeros = torch.zeros_like(batch.round_score)
    a, _ = run.learner.advantages(batch, batch.mask.unsqueeze(-1), values, torch.zeros_like(values), 0.5, zeros)
    torch.testing.assert_close(a.squeeze(-1), returns - 0.25)
    assert row["reply_score"] == pytest.approx(float(batch.reply_score.mean()))
    assert "skipped" not in row and row["explained_variance_by_position"].keys() == {"1", "2", "3", "4"}
    after = [p for a in run.policy.agents for p in run.policy.adapter_parameters(a)]
    assert not all(torch.equal(p, q) for p, q in zip(before, after, strict=True))


def test_a_reply_that_is_not_graded_drops_its_episode(monkeypatch):
    run, grade, calls = run_of(), Report.grade, []

    def grade_most(self, answer, problem):
        calls.append(answer)
        return Verdict.not_graded("lost") if len(calls) == 200 else grade(self, answer, problem)

    sampler = run.policy.sampler((0, 1))
    episodes = run.rollout(1, sampler)
    monkeypatch.setattr(Report, "grade", grade_most)
    batch = run.batch(episodes, sampler)  # 12 replies each: the 200th is the 17th episode's
    assert len(batch.score) == 31 and run.counts["not_graded"] == 1


def test_an_agent_without_a_gold_is_reported():
    env = marft_envs.math_v0.env(**ROUNDS)
    (episode,) = BatchRunner(env, 1).play(lambda requests: ["7"] * len(requests), indices=[0])
    episode.problem.gold.pop("agent_2")
    with pytest.raises(
        ValueError,
        match="reward='maporl': agent 'agent_2' has no gold: expected one gold for all agents, or one for each",
    ):
        reply_scores(env.unwrapped.task, episode)


@pytest.mark.parametrize("name", ["mappo_chained", "marft", "magrpo"])
def test_maporl_requires_own_bootstraps(name):
    with pytest.raises(ValueError, match=r"reward='maporl': expected 'team' unless bootstrap='own'"):
        arm(name).with_settings({"reward": "maporl"})


@pytest.mark.parametrize("name", ["ippo", "mappo"])
def test_maporl_runs_at_token_level(name):
    run = run_of(name, credit="token")
    assert "skipped" not in run.train_once(1)
