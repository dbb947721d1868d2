"""Labels of ``Task.progress`` are used for the rows only, never for playing or training."""

import torch

import marft_envs
from baselines.engine.torch_engine import Decoding
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.team_report import Report


def run_of(dataset, **changes):
    models = {"relay": "tiny", "report": "tiny-report"}
    teams = {"relay": "duo", "report": "panel_4"}
    fields = {
        "arm": "marft",
        "environment_arguments": {"dataset": dataset, "style": "symbols", "team": teams[dataset]},
        "model": models[dataset],
        "episodes": 64,
        "evaluation_items": 1,
        "settings": {"normalization": "sum", "learning_rate": 1e-3},
        "decoding": Decoding(max_new_tokens=4),
    }
    return Run(RunConfig(**{**fields, **changes}))


def trained(run, updates=2):
    clock = ("wall_s", "seconds")
    rows = [{k: v for k, v in run.train_once(u).items() if k not in clock} for u in range(1, updates + 1)]
    weights = [p.detach().clone() for a in run.policy.agents for p in run.policy.adapter_parameters(a)]
    return rows, weights


def test_labels_change_no_other_number_of_a_row(monkeypatch):
    """The same run with labels, with wrong labels and without: every other number and every weight is the same."""
    labelled, weights = trained(run_of("relay"))
    monkeypatch.setattr(Relay, "progress", lambda self, problem, turns: [7] * len(turns))
    wrong, weights_by_wrong = trained(run_of("relay"))
    monkeypatch.setattr(Relay, "progress", lambda self, problem, turns: None)
    plain, weights_without = trained(run_of("relay"))
    names = ("explained_variance_ceiling", "explained_variance_of_ceiling")
    tops = [[row.pop(name, None) for name in names] for rows in (labelled, wrong, plain) for row in rows]
    assert labelled == wrong == plain and len(labelled) == 2
    for a, b, c in zip(weights, weights_by_wrong, weights_without, strict=True):
        assert torch.equal(a, b) and torch.equal(a, c)
    assert tops[0][0]["2"] > 0.1 and tops[0][0]["1"] < 1e-6 and tops[0][1]["1"] is None
    assert isinstance(tops[0][1]["2"], float)
    assert tops[2][0]["2"] < 1e-6 and tops[4] == [None, None]


def test_in_the_report_the_ceiling_rises_along_the_round():
    """Before section m the m - 1 earlier ones are known. Their variances are equal: (m - 1) / 4 in expectation."""
    ceiling = trained(run_of("report", episodes=256), updates=1)[0][0]["explained_variance_ceiling"]
    assert [ceiling[str(m)] for m in (1, 2, 3, 4)] == sorted(ceiling.values())
    assert ceiling["1"] < 1e-6 and abs(ceiling["3"] - 0.5) < 0.15 and ceiling["4"] > 0.55


def test_no_environment_calls_progress(monkeypatch):
    """``progress`` may read the gold, so observations, order, rewards and grading must not use it."""

    def oracle(self, problem, turns):
        raise AssertionError("the environment called progress")

    monkeypatch.setattr(Relay, "progress", oracle)
    monkeypatch.setattr(Report, "progress", oracle)
    for dataset, team in (("relay", "duo"), ("report", "panel_4")):
        env = marft_envs.math_v0.env(dataset=dataset, team=team, rounds=2, stop={"agreement": list(TEAMS[team])})
        episodes = BatchRunner(env, 4).play(lambda requests: ["7"] * len(requests), indices=range(4))
        assert all(not e.not_graded for e in episodes)


TEAMS = {"duo": ("reasoner_0", "actor_0"), "panel_4": ("agent_0", "agent_1", "agent_2", "agent_3")}
