"""``SingleAgent``: one agent of a team as a Gymnasium environment, also vectorized."""

import warnings
from functools import partial

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.registry.single_agent import SingleAgent, as_text, make_single_agent
from marft_envs.registry.versioned_names import BUILT_IN, pettingzoo_id


class Yes(Task):
    """The correct answer is "yes"; "crash" makes the grader raise."""

    name, size = "yes", 9

    def problem(self, index):
        return Problem(index, f"Question {index}", "yes")

    def grade(self, answer, problem):
        if answer == "crash":
            raise OSError("disk full")
        return Verdict.correct() if answer == "yes" else Verdict.wrong("not the word")


def hint(observation):
    """Return the last message that the agent reads."""
    return f"after {observation['messages'][-1]['content']!r}"


def game(dependency="chain", **arguments):
    roles = {"a_0": Role("You are a."), "b_0": Role("You are b."), "c_0": Role("You are c.", reply_prefix="")}
    return FlexMG(Yes(), Team(roles, dependency), **arguments)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"render_mode": "ansi"},
        {"observation": "text"},
        {"team": "trio", "agent": "reasoner_0", "policies": hint, "rounds": 2},
    ],
)
def test_gymnasiums_env_checker_passes(name, arguments, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(pettingzoo_id(name), **arguments)
        assert isinstance(env.unwrapped, SingleAgent)
        check_env(env.unwrapped)
        env.close()


def test_the_default_team_has_one_agent():
    env = gymnasium.make("marft/math-v0")
    assert env.unwrapped.env.possible_agents == ["actor_0"]


def test_the_other_agents_act_between_the_agents_turns():
    env = SingleAgent(game(rounds=2, memory="all"), agent="b_0", policies={"a_0": hint, "c_0": lambda _: "c speaks"})
    observation, info = env.reset(seed=0, options={"index": 4})
    assert info == {"index": 4}
    assert [m["content"] for m in observation["messages"]] == ["You are b.", "Question 4", "after 'Question 4'"]
    observation, reward, terminated, truncated, _ = env.step("b speaks")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert [m["content"] for m in observation["messages"]][3:] == ["b speaks", "c speaks", "after 'c speaks'"]
    env.policies["c_0"] = lambda _: "yes"
    observation, reward, terminated, truncated, info = env.step("b again")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info == {"index": 4, "score": 1.0}
    assert env.observation_space.contains(observation)
    with pytest.raises(RuntimeError, match="after the end of the episode"):
        env.step("more")


def test_a_fault_of_the_grader_truncates_the_episode_and_gives_the_reason():
    env = SingleAgent(game(), agent="a_0", policies=lambda _: "crash")
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("x")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["not_graded"] == "c_0: OSError: disk full"


def test_the_episode_is_that_of_the_multi_agent_environment():
    single, multi = make_single_agent("math_v0"), marft_envs.math_v0.env(team="solo")
    for seed in (3, None, None):
        multi.reset(seed=seed)
        assert single.reset(seed=seed)[0] == multi.observe("actor_0")


def test_text_observations():
    env = SingleAgent(game(), agent="c_0", policies=lambda _: "hm", observation="text")
    assert env.reset(seed=0, options={"index": 2})[0] == "[c_0] You are c.\n\n[task] Question 2\n\n[b_0] hm"
    prefixed = {"messages": ({"role": "user", "name": "task", "content": "?"},), "reply_prefix": "So"}
    assert as_text(prefixed) == "[task] ?\n\nSo"


def test_render(capsys):
    env = gymnasium.make("marft/math-v0", render_mode="ansi")
    env.reset(seed=0)
    env.step("\\boxed{1}")
    assert "[actor_0] \\boxed{1}" in env.render()
    env = gymnasium.make("marft/math-v0", render_mode="human")
    env.reset(seed=0)
    env.step("\\boxed{1}")
    assert "[actor_0] \\boxed{1}" in capsys.readouterr().out


def three(observation):
    return "\\boxed{3}"


@pytest.mark.parametrize("vector", [SyncVectorEnv, partial(AsyncVectorEnv, shared_memory=False)], ids=["sync", "async"])
@pytest.mark.parametrize("observation", ["messages", "text"])
def test_vector_environments(vector, observation):
    make = partial(
        gymnasium.make, "marft/math-v0", team="duo", agent="reasoner_0", policies=three, observation=observation
    )
    alone = [make() for _ in range(2)]
    envs = vector([make, make])
    try:
        observations, info = envs.reset(seed=[5, 6])
        expected = [env.reset(seed=seed) for env, seed in zip(alone, (5, 6), strict=True)]
        first = observations["messages"] if observation == "messages" else observations
        assert list(first) == [e["messages"] if observation == "messages" else e for e, _ in expected]
        assert info["index"].tolist() == [i["index"] for _, i in expected]
        _, rewards, terminated, truncated, _ = envs.step(("a plan", "another"))
        assert rewards.tolist() == [env.step("a plan")[1] for env in alone]
        assert terminated.tolist() == [True, True] and truncated.tolist() == [False, False]
        _, _, terminated, _, info = envs.step(envs.action_space.sample())  # the step that resets
        assert terminated.tolist() == [False, False] and "score" not in info
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": "image"}, "observation='image': expected one of messages, text"),
        ({"team": "duo"}, "agent=None: expected one of reasoner_0, actor_0"),
        ({"team": "duo", "agent": "critic_0"}, "agent='critic_0': expected one of reasoner_0, actor_0"),
        ({"team": "trio", "agent": "actor_0"}, "no policy for planner_0, reasoner_0: expected policies="),
        ({"team": "solo", "policies": {"x_0": hint}}, r"policies for \['x_0'\]: expected only \[\]"),
        ({"levle": 3}, "unknown arguments"),
    ],
)
def test_wrong_arguments_raise_errors_that_name_them(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_single_agent("math_v0", **arguments)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("a plan", r"policy of reasoner_0='a plan': got str, expected a function of \(observation\)"),
        (lambda: "a plan", r"policy of reasoner_0=<lambda>: takes \(\), expected a function of \(observation\)"),
    ],
)
def test_a_policy_that_cannot_be_called_raises(policy, message):
    with pytest.raises(TypeError, match=message):
        make_single_agent("math_v0", team="duo", agent="actor_0", policies={"reasoner_0": policy})


def test_the_error_for_an_action_of_the_wrong_type_names_the_agent():
    env = make_single_agent("math_v0")
    env.reset(seed=0)
    with pytest.raises(TypeError, match="action of actor_0: got int"):
        env.step(3)


def test_an_agent_without_a_turn_raises():
    env = SingleAgent(game(Orchestrated("a_0")), agent="c_0", policies=lambda _: "b_0: do it all")
    with pytest.raises(RuntimeError, match="the episode ended before c_0 had a turn"):
        env.reset(seed=0)


def test_the_answering_agent_learns_in_an_environment_without_a_choice_of_teams(monkeypatch):
    module = type("module", (), {"env": staticmethod(lambda **arguments: game(**arguments))})
    monkeypatch.setattr("marft_envs.registry.single_agent.environment_module", lambda name: module)
    env = make_single_agent("yes_v0")
    observation, _ = env.reset(seed=0)
    assert env.agent == "c_0"
    assert observation["messages"][-1] == {"role": "user", "name": "b_0", "content": ""}
    assert env.step("yes")[1] == 1.0
