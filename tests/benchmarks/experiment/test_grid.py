"""Grid of a comparison: the order of its runs, tasks with values of their own, and learning rates."""

import pytest

from benchmarks.experiment.grid import Grid, load_preset, with_options, with_settings
from benchmarks.experiment.presets import GridError

RELAY = {"arguments": {"dataset": "relay"}}


def grid(**changes):
    return Grid(**{"arms": ("ippo", "marft"), "tasks": {"relay": RELAY}, "seeds": 2, **changes})


def rates(built):
    return [(r.arm, r.learner().learning_rate) for r in built.runs() if r.seed == 0]


def test_runs_go_seed_by_seed_over_tasks_arms_and_rates():
    built = grid(learning_rates=[1e-3, 3e-4], tasks={"a": RELAY, "b": RELAY})
    assert [r.seed for r in built.runs()] == [0] * 8 + [1] * 8
    assert [r.task for r in built.runs()][:8] == ["a"] * 4 + ["b"] * 4
    assert rates(built)[:4] == [("ippo", 1e-3), ("ippo", 3e-4), ("marft", 1e-3), ("marft", 3e-4)]


def test_a_task_overrides_values_and_entries_of_mappings():
    task = {**RELAY, "updates": 7, "model": "tiny-report", "settings": {"critic_epochs": 4}}
    (run,) = grid(arms=("ippo",), seeds=1, tasks={"a": task}, settings={"critic_epochs": 1, "clip": 0.1}).runs()
    assert (run.updates, run.model) == (7, "tiny-report")
    assert (run.learner().critic_epochs, run.learner().clip) == (4, 0.1)


def test_an_option_overrides_a_task_s_own_value():
    built = with_options(grid(tasks={"a": {**RELAY, "updates": 7}}), {"updates": 3, "model": None})
    assert {run.updates for run in built.runs()} == {3}
    built = with_options(
        grid(tasks={"a": {**RELAY, "learning_rates": {"ippo": [1.0], "marft": [2.0]}}}), {"learning_rates": [0.5]}
    )
    assert rates(built) == [("ippo", 0.5), ("marft", 0.5)]


def test_each_arm_may_have_its_own_rates_but_all_the_same_number():
    assert rates(grid(learning_rates={"ippo": [3e-4], "marft": [1e-3]})) == [("ippo", 3e-4), ("marft", 1e-3)]
    with pytest.raises(GridError, match=r"learning_rates: ippo has 2, marft has 1; expected the same number of rates"):
        grid(learning_rates={"ippo": [3e-4, 1e-3], "marft": [1e-3]})
    with pytest.raises(GridError, match=r"learning_rates: ippo has 0, marft has 1; expected the same number"):
        grid(learning_rates={"marft": [1e-3]})


def test_the_untrained_team_has_no_rate_and_one_run():
    built = grid(arms=("untrained", "ippo"), learning_rates=[1e-3, 3e-4])
    assert [r.arm for r in built.runs() if r.seed == 0] == ["untrained", "ippo", "ippo"]
    assert built.resolved()["tasks"]["relay"]["learning_rates"] == {"ippo": [1e-3, 3e-4]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": ("ippo", "ippo")}, "expected each name once"),
        ({"seeds": "5"}, "seeds=5, arms="),
        ({"tasks": {"a/b": RELAY}}, "task 'a/b': expected letters"),
        ({"tasks": {"a": {**RELAY, "update": 3}}}, r"tasks.a has no key 'update' \(did you mean 'updates'\?\)"),
        ({"tasks": {"a": 3}}, "tasks.a=3: expected a mapping"),
        ({"learning_rates": [1e-3, 1e-3]}, "expected a list of different positive numbers"),
        ({"learning_rates": [0]}, "different positive numbers"),
        ({"learning_rates": {"marftt": [1e-3]}}, r"no key 'marftt' \(did you mean 'marft'\?\)"),
    ],
)
def test_a_wrong_value_is_named(changes, message):
    with pytest.raises(GridError, match=message):
        grid(**changes)


def test_a_preset_file_may_have_all_keys(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('arms = ["ippo"]\nlearning_rates = [1e-3, 1e-4]\n[tasks.a]\nepisodes = 8\n')
    assert len(load_preset(str(path)).runs()) == 10
    path.write_text('arms = "ippo"\n[tasks.a]\n')
    with pytest.raises(GridError, match="arms='ippo': expected a list of names"):
        load_preset(str(path))
    path.write_text('arms = ["ippo"]\ntasks = 3\n')
    with pytest.raises(GridError, match="tasks=3: expected a mapping"):
        load_preset(str(path))


def test_a_setting_is_changed_in_all_tasks():
    tasks = {"a": {**RELAY, "decoding": {"max_new_tokens": 6}}, "b": RELAY}
    built = grid(tasks=tasks, decoding={"max_new_tokens": 9, "rows": 7}, updates=5)
    changed = with_settings(built, {"decoding.rows": 8, "updates": 2, "arguments.team": "trio", "settings.clip": 0.1})
    assert {(r.task, r.decoding.max_new_tokens, r.decoding.rows, r.updates) for r in changed.runs()} == {
        ("a", 6, 8, 2), ("b", 9, 8, 2)
    }  # fmt: skip
    assert all(r.environment_arguments == {"dataset": "relay", "team": "trio"} for r in changed.runs())
    assert {r.learner().clip for r in changed.runs()} == {0.1}
    with pytest.raises(GridError, match=r"--set has no key 'episode' \(did you mean 'episodes'\?\)"):
        with_settings(built, {"episode": 3})
    with pytest.raises(GridError, match=r"--set updates\.x: updates is not a mapping"):
        with_settings(built, {"updates.x": 3})


def test_the_reference_is_a_task_and_no_setting_of_a_run():
    tasks = {"chain": RELAY, "none": RELAY}
    with pytest.raises(GridError, match=r"reference='cain': expected one of chain, none \(did you mean 'chain'\?\)"):
        grid(tasks=tasks, reference="cain")
    built = grid(tasks=tasks, reference="chain")
    assert built.resolved()["reference"] == "chain" and built.hash() == grid(tasks=tasks).hash()
