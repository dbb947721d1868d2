"""Arguments of env(): those of the game, the team and the task, and errors for all others."""

import inspect

import pytest

import marft_envs
from marft_envs import Role, Team
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.registry.env_arguments import GAME_PARAMETERS, choices_of, make_game
from marft_envs.task import Task, check_index
from marft_envs.team.presets import NAMES, neutral_instructions, preset_teams
from marft_envs.testing import check_env

DUO = preset_teams(neutral_instructions("Add."))["duo"]


def test_game_arguments_are_passed_to_the_game():
    chosen = {"rounds": 2, "memory": "own", "order": "random", "reward": "last", "render_mode": "ansi"}
    game = make_game("x_v0", Relay, DUO(), {**chosen, "k": 3}, dependency="none")
    assert game.task.k == 3
    assert (game.rounds, game.memory, game.order, game.render_mode) == (2, "own", "random", "ansi")
    assert not game.team.dependency.edges
    assert str(game) == "x_v0"
    assert "defer_grading" in GAME_PARAMETERS and "name" not in GAME_PARAMETERS


def test_the_task_receives_the_agents_in_execution_order():
    team = Team({"b_0": Role(), "a_0": Role()}, [("a_0", "b_0")])
    assert make_game("x_v0", Relay, team, {}).task.agents == ("a_0", "b_0")
    with pytest.raises(ValueError, match=r"unknown arguments \['agents'\] for x_v0"):
        make_game("x_v0", Relay, team, {"agents": ("c_0",)})


def test_the_error_for_an_unknown_argument_lists_the_known_ones_and_suggests_one():
    with pytest.raises(ValueError, match=r"\['stile'\] for x_v0: expected some of \['k', .*'rounds'.*'style'\?"):
        make_game("x_v0", Relay, DUO(), {"stile": "words"})
    with pytest.raises(ValueError, match=r"for dataset='relay': .*did you mean 'rounds'\?"):
        marft_envs.math_v0.env(dataset="relay", round=2)
    with pytest.raises(ValueError, match=r"unknown arguments \['split'\] for dataset='relay': expected some of \[\]"):
        marft_envs.math_v0.env(dataset=Relay(), split="test")


@pytest.mark.parametrize(
    ("module", "dataset", "message"),
    [
        ("math_v0", "humaneval", r"dataset='humaneval': expected one of word_problems, .*; code_v0 has 'humaneval'$"),
        ("code_v0", "gsm8k", r"dataset='gsm8k': expected one of list_programs, .*; math_v0 has 'gsm8k'$"),
        ("code_v0", "word_problems", r"; math_v0 has 'word_problems'$"),
        ("math_v0", "gsm9k", r"or a marft_envs\.Task \(did you mean 'gsm8k'\?\)$"),
        ("math_v0", ["gsm8k"], r"dataset=\['gsm8k'\]: expected one of .*Task$"),
    ],
)
def test_the_error_for_a_data_set_names_the_environment_that_has_it(module, dataset, message):
    with pytest.raises(ValueError, match=message):
        marft_envs.make(module, dataset=dataset)


def test_the_error_for_a_data_set_lists_all_of_the_environment():
    for module in (marft_envs.math_v0, marft_envs.code_v0):
        with pytest.raises(ValueError, match=f"expected one of {', '.join(module.DATASETS)}, or a marft_envs"):
            module.env(dataset="")


def test_a_team_from_a_file(tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text("roles:\n  writer_0: {instructions: Write.}\n  editor_0: {instructions: Edit., answers: true}\n")
    assert marft_envs.math_v0.env(team=str(file)).possible_agents == ["writer_0", "editor_0"]
    with pytest.raises(ValueError, match=r"team='pair': expected one of solo, .*, a \.yaml file or a marft_envs\.Team"):
        marft_envs.math_v0.env(team="pair")


def test_the_signature_of_env_lists_the_parameters_of_team_and_game():
    for module in (marft_envs.math_v0, marft_envs.code_v0):
        for make in (module.env, module.raw_env):
            names = list(inspect.signature(make).parameters)
            assert names == ["dataset", "team", "dependency", "stop", *GAME_PARAMETERS, "arguments"]


def test_choices_come_from_literal_annotations_only():
    def maker(*, size: int = 1) -> Task: ...

    assert choices_of(maker) == {}
    assert choices_of(Relay) == {"style": ("symbols", "words")}


def test_the_largest_index_of_an_unlimited_task():
    relay = Relay()
    assert check_index(relay, 2**31 - 1) == 2**31 - 1
    with pytest.raises(IndexError, match=f"index={2**31} of relay: expected 0 to {2**31 - 1}"):
        check_index(relay, 2**31)


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}_anonymous" for name in NAMES)])
def test_preset_teams_pass_the_checks(name):
    team = preset_teams(neutral_instructions("Add up the numbers."))[name]()
    size = NAMES.index(name.removesuffix("_anonymous")) + 1
    assert len(team.agents) == (size if size < 5 else 8)
    instructions = [role.instructions for role in team.roles.values()]
    assert all(("Add up the numbers." in text) != name.endswith("_anonymous") for text in instructions)
    check_env(lambda: make_game("x_v0", Relay, team, {}), only=["turn_order", "visibility", "gold_scores_one"])
