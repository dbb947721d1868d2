"""Provenance: hashes of code and problems, and the negative control."""

from dataclasses import replace

import marft_envs
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.provenance import ROOT, SOURCES, data_of, fingerprint, sources_hash

RUN = RunConfig(arm="ippo", environment_arguments={"dataset": "report", "team": "panel_2"})


def test_problems_have_a_hash_and_a_team_that_answers_nothing_scores_0():
    data = data_of(RUN)
    assert data == data_of(RUN) and data["negative_control"] == 0.0
    assert data["train"]["sha256"] != data["test"]["sha256"] and data["train"]["size"] is None
    other = data_of(replace(RUN, environment_arguments={"dataset": "report", "team": "panel_4"}))
    assert other["train"]["sha256"] != data["train"]["sha256"]


def test_transfer_data_sets_have_a_hash_too():
    one, other = (
        data_of(replace(RUN, transfer={"more": {"dataset": "one_step", "team": "panel_2", "seed": seed}}))
        for seed in (0, 1)
    )
    assert one["transfer"]["more"]["sha256"] != other["transfer"]["more"]["sha256"]
    assert "transfer" not in data_of(RUN)


def test_the_hash_covers_the_golds():
    task = marft_envs.math_v0.env(dataset="one_step").unwrapped.task

    class OtherGolds:
        size = 8

        def problem(self, index):
            return replace(task.problem(index), gold="0")

    assert fingerprint(OtherGolds())["size"] == 8
    assert fingerprint(OtherGolds())["sha256"] != fingerprint(task)["sha256"]


def test_the_hash_of_the_sources_covers_the_packages_of_this_repository():
    """A folder that does not exist would be hashed as empty, without an error."""
    assert set(SOURCES) == {"marft_envs", "baselines", "benchmarks"}
    assert all((ROOT / package / "__init__.py").is_file() for package in SOURCES)


def test_the_hash_of_the_sources_covers_names_and_contents(tmp_path):
    (tmp_path / "baselines").mkdir()
    module = tmp_path / "baselines" / "a.py"
    module.write_text("x = 1\n")
    first = sources_hash(tmp_path)
    module.write_text("x = 2\n")
    assert sources_hash(tmp_path) != first
    module.write_text("x = 1\n")
    assert sources_hash(tmp_path) == first
    module.rename(module.with_name("b.py"))
    assert sources_hash(tmp_path) != first
