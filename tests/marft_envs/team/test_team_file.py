"""Teams as YAML files: what is written can be read, and every mistake in a file is named."""

import pytest

from marft_envs import Role, Team
from marft_envs.coding.teams import TEAMS as CODING_TEAMS
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.mathematics.teams import TEAMS as MATHEMATICS_TEAMS
from marft_envs.team.stop_rules import Agreement
from marft_envs.team.tools import CALCULATOR


@pytest.mark.parametrize(
    ("name", "make"),
    [*MATHEMATICS_TEAMS.items(), *CODING_TEAMS.items()],
    ids=[*MATHEMATICS_TEAMS, *(f"coding-{name}" for name in CODING_TEAMS)],
)
def test_ready_made_teams_are_the_same_after_writing_and_reading(name, make):
    team = make()
    assert Team.from_yaml(team.to_yaml()) == team
    assert team.answering == (team.agents if name.startswith("panel") else team.order[-1:])
    if name.endswith("anonymous"):
        assert all(not role.profile for role in team.roles.values())
        assert list(team.agents) == [f"agent_{i}" for i in range(len(team.agents))]


def test_a_file_with_every_key(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text(
        "roles:\n  solver_0: Solve it.\n  checker_0: {instructions: Check., choices: ['yes', 'no']}\n"
        "  writer_0: {answers: true, tools: [calculator], max_tool_calls: 2, reply_prefix: 'So:'}\n"
        "dependency: {rounds: [chain, full]}\nstop: {agreement: [solver_0, checker_0]}\n"
    )
    team = Team.from_yaml(path)
    assert team.roles["solver_0"] == Role("Solve it.")
    assert team.roles["checker_0"].choices == ("yes", "no")
    assert team.roles["writer_0"].tools == (CALCULATOR,)
    assert team.answering == ("writer_0",)
    assert team.stop_rule == Agreement(("solver_0", "checker_0"))
    again = Team.from_yaml(team.to_yaml())
    assert again.to_yaml() == team.to_yaml() and again.roles == team.roles


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roles: [a_0]", "expected a mapping with 'roles'"),
        ("roles: {a_0: {}}\nrounds: 2", r"keys \['rounds'\]: expected roles, dependency, stop"),
        ("roles: {a_0: {instrutions: x}}", "role of a_0: got .*expected its instructions, or some of instructions"),
        ("roles: {a: x}", "agent name 'a': expected a word, an underscore and a number"),
        ("roles: {a_0: {choices: [a], choices: [b]}}", "team file: the key 'choices' occurs twice"),
        ("roles: {a_0: {tools: [[saw]]}}", r"tool \['saw'\]: expected one of calculator"),
        ("roles: {a_0: {tools: [saw]}}", "tool 'saw': expected one of calculator"),
        ("roles: {a_0: x}\nstop: {word: [b_0, DONE]}", r"stop names \['b_0'\]"),
        ("roles: {a_0: x}\nstop: {wrd: 1}", "stop=.*expected"),
        ("roles: {a_0: {max_chars: 0}}", "max_chars=0: expected at least 1"),
        ("roles: {a_0: x", "^team file, line 1: expected ',' or '}', but got '<stream end>'$"),
        ("roles: {a_0: x\0}", "^team file: unacceptable character [^\n]*$"),
        ("roles: {a_0: x, b_0: y, a_0: z}", "team file: the key 'a_0' occurs twice"),
        ("roles: {a_0: x}\nstop: {word: [a_0, '']}", "Word word='': expected a non-empty string"),
        ("roles: {a_0: x}\nstop: {word: 3}", r"stop=\{'word': 3\}: expected .*'agreement'"),
        ("roles: {a_0: x}\nstop: {word: ab}", r"stop=\{'word': 'ab'\}: expected"),
        ("roles: {a_0: x}\nstop: {agreement: a_0}", r"stop=\{'agreement': 'a_0'\}: expected"),
        ("roles: {a_0: x}\nstop: {agreement: 3}", r"stop=\{'agreement': 3\}: expected"),
        ("roles: {a_0: x, b_0: y}\nstop: {agreement: [a_0, a_0]}", r"agreement of \['a_0', 'a_0'\]: .* no name twice"),
    ],
)
def test_mistakes_in_a_file_are_named_in_the_error(text, message):
    with pytest.raises(ValueError, match=message):
        Team.from_yaml(text)


def test_a_missing_file_is_named_in_the_error():
    with pytest.raises(FileNotFoundError, match=r"^team file nowhere\.yaml: not found, expected a YAML file$"):
        Team.from_yaml("nowhere.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roles:\n  a_0: [x\n", r", line 3: expected ',' or '\]', but got '<stream end>'"),
        ("roles:\n  a_0: x\n b_0: y\n", r", line 3: expected <block end>, but found '<block mapping start>'"),
        ("roles:\n", ": got {'roles': None}, expected a mapping with 'roles'"),
    ],
)
def test_a_file_that_is_not_a_team_is_named_in_one_line(monkeypatch, tmp_path, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=rf"^team file bad\.yaml{message}$"):
        Team.from_yaml("bad.yaml")


def test_functions_cannot_be_written():
    roles = {"a_0": Role(), "b_0": Role()}
    with pytest.raises(ValueError, match="D is decided by a function"):
        Team(roles, Orchestrated("a_0")).to_yaml()
    with pytest.raises(ValueError, match="stop is a function"):
        Team(roles, stop=lambda turns, task: True).to_yaml()
