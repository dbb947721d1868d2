"""The batch runner: waves, grouping, order, streams, budgets, faults, grading beside play."""

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.batch.runner import BatchRunner, Reply
from marft_envs.team.tools import CALCULATOR


class Sum(Task):
    """Say the index; "crash" crashes the grader."""

    name = "sum"

    def __init__(self):
        self.graded_in = set()

    def problem(self, index):
        return Problem(index, f"say {index}", str(index))

    def grade(self, answer, problem):
        self.graded_in.add(threading.current_thread().name)
        if answer == "crash":
            raise RuntimeError("lost the worker")
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")


TEAM = Team({"first_0": Role(), "second_0": Role(answers=True)})


def test_one_call_for_each_waiting_role_and_results_in_order():
    calls = []

    def policy(requests):
        calls.append([(r.agent, r.episode, r.index) for r in requests])
        return [Reply(str(r.index), kept=("kept", r.turn)) for r in requests]

    episodes = BatchRunner(FlexMG(Sum(), TEAM), 4).play(policy, indices=[5, 5, 8, 1])
    assert calls == [[(a, e, i) for e, i in enumerate([5, 5, 8, 1])] for a in ("first_0", "second_0")]
    assert [e.index for e in episodes] == [5, 5, 8, 1]
    assert [e.score for e in episodes] == [1.0] * 4
    assert all(e.terminated and e.rewards == {"first_0": 1.0, "second_0": 1.0} for e in episodes)
    assert episodes[2].steps[1].kept == ("kept", 1)
    assert episodes[2].steps[1].request.observation["messages"][-1]["content"] == "8"


def test_a_fault_is_told_and_the_others_are_graded():
    episodes = BatchRunner(FlexMG(Sum(), TEAM), 2).play(
        lambda requests: ["crash" if r.index == 1 else "2" for r in requests], indices=[1, 2]
    )
    assert episodes[0].not_graded == "second_0: RuntimeError: lost the worker"
    assert not episodes[0].terminated
    assert episodes[1].not_graded == "" and episodes[1].score == 1.0


def test_grading_runs_in_the_executor():
    task = Sum()
    with ThreadPoolExecutor(2, thread_name_prefix="grader") as executor:
        runner = BatchRunner(FlexMG(task, TEAM), 8, executor=executor)
        episodes = runner.play(lambda requests: [str(r.index) for r in requests], indices=range(8))
    assert all(name.startswith("grader") for name in task.graded_in)
    assert sum(e.score for e in episodes) == 8


def test_the_batch_plays_as_single_episodes_do():
    env = marft_envs.math_v0.env(dataset="relay", style="symbols")
    episodes = BatchRunner(env, 3).play(lambda requests: ["7"] * len(requests), indices=[4, 5, 6])
    for episode in episodes:
        env.reset(options={"index": episode.index})
        for step in episode.steps:
            assert env.agent_selection == step.request.agent
            assert env.observe(step.request.agent) == step.request.observation
            env.step(step.text)
        assert env.rewards == episode.rewards


def test_wrong_use_is_named():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    with pytest.raises(ValueError, match="indices has 3 entries: expected at most size=2"):
        runner.play(lambda requests: [], indices=[1, 2, 3])
    with pytest.raises(ValueError, match="policy returned 1 replies for first_0: expected 2"):
        runner.play(lambda requests: ["x"], indices=[1, 2])
    with pytest.raises(TypeError, match="action of first_0: got int"):
        runner.play(lambda requests: [3, 4], indices=[1, 2])
    with pytest.raises(ValueError, match="size=0"):
        BatchRunner(FlexMG(Sum(), TEAM), 0)


# ---- waves, groups, streams, budgets, faults

ABC = ("a_0", "b_0", "c_0")


def three(dependency, **team):
    return Team({agent: Role(answers=agent == "c_0") for agent in ABC}, dependency, **team)


def say_index(requests):
    return [str(r.index) for r in requests]


def said_by_others(request):
    return [m["name"] for m in request.observation["messages"] if m["name"] in ABC]


def test_a_generation_is_asked_before_any_of_its_actions_is_applied():
    runner = BatchRunner(FlexMG(Sum(), three([("a_0", "c_0"), ("b_0", "c_0")])), 2)
    calls = []

    def policy(requests):
        calls.append((requests[0].agent, len(requests), [len(env.transcript) for env in runner.envs]))
        assert said_by_others(requests[0]) == (["a_0", "b_0"] if requests[0].agent == "c_0" else [])
        return say_index(requests)

    episodes = runner.play(policy, indices=[1, 2])
    assert calls == [("a_0", 2, [0, 0]), ("b_0", 2, [0, 0]), ("c_0", 2, [2, 2])]
    assert [[s.request.turn for s in e.steps] for e in episodes] == [[0, 1, 2]] * 2


def test_a_reply_is_held_until_its_agents_turn():
    """a_0 -> b_0 with c_0 apart: c_0 is asked in the first wave of a round, and may act after b_0."""
    calls = []

    def policy(requests):
        calls.append((requests[0].agent, len(requests)))
        return say_index(requests)

    game = FlexMG(Sum(), three([("a_0", "b_0")]), rounds=2, order="random")
    episodes = BatchRunner(game, 16).play(policy, indices=range(16), seeds=range(16))
    assert [sorted(calls[i:j]) for i, j in ((0, 2), (2, 3), (3, 5), (5, 6))] == [
        [("a_0", 16), ("c_0", 16)], [("b_0", 16)], [("a_0", 16), ("c_0", 16)], [("b_0", 16)],
    ]  # fmt: skip
    orders = {tuple(turn.agent for turn in e.transcript)[:3] for e in episodes}
    assert orders == {("a_0", "b_0", "c_0"), ("a_0", "c_0", "b_0"), ("c_0", "a_0", "b_0")}
    for episode in episodes:
        assert [step.request.agent for step in episode.steps] == [turn.agent for turn in episode.transcript]
        assert [said_by_others(step.request) for step in episode.steps if step.request.round == 0] == [
            ["a_0"] if step.request.agent == "b_0" else [] for step in episode.steps[:3]
        ]


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_cut_episode_tells_what_everybody_would_have_read_next(turns):
    """Against the same episode, not cut: its next request. Ends of every other kind have nothing to go on with."""

    def play(**limit):
        return BatchRunner(FlexMG(Sum(), TEAM, rounds=2, **limit), 1).play(say_index, indices=[7])[0]

    cut, whole = play(max_turns=turns), play()
    following = whole.steps[turns].request
    assert (cut.final.agent, cut.final.round) == (following.agent, following.round) and whole.final is None
    assert cut.final.observations[following.agent] == following.observation
    assert list(cut.final.observations) == list(TEAM.agents)
    (by_budget,) = BatchRunner(FlexMG(Sum(), TEAM, rounds=2), 1).play(say_index, indices=[7], turns=turns)
    assert by_budget.final == cut.final


def test_a_cut_before_a_reply_to_a_tool_tells_the_tools_result_to_its_caller():
    team = Team({"first_0": Role(), "second_0": Role(tools=(CALCULATOR,), answers=True)})
    call = '<tool_call>{"name": "calculator", "arguments": {"expression": "2+3"}}</tool_call>'
    episode = BatchRunner(FlexMG(Sum(), team, max_turns=3), 1).play(lambda rs: [call] * len(rs), indices=[1])[0]
    assert [turn.kind for turn in episode.transcript] == ["say", "call", "result"]
    reads = {agent: [m["name"] for m in seen["messages"]] for agent, seen in episode.final.observations.items()}
    assert episode.final.agent == "second_0"
    assert reads == {"first_0": ["task"], "second_0": ["second_0", "task", "first_0", "second_0", "tool"]}


def test_a_fault_leaves_nothing_to_go_on_with():
    (episode,) = BatchRunner(FlexMG(Sum(), TEAM), 1).play(lambda rs: ["crash"] * len(rs), indices=[1])
    assert episode.not_graded and episode.final is None


def test_replies_beside_the_end_are_dropped_and_counted():
    runner = BatchRunner(FlexMG(Sum(), three("none"), max_turns=1), 2)
    episodes = runner.play(say_index, indices=[1, 2])
    assert [len(e.steps) for e in episodes] == [1, 1]
    assert [e.truncated for e in episodes] == ["max_turns=1"] * 2
    assert (runner.counts.turns, runner.counts.unused, runner.counts.truncated) == (6, 4, 2)


def test_a_policy_for_each_agent():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    both = {"first_0": lambda requests: ["x"] * len(requests), "second_0": say_index}
    episodes = runner.play(both, indices=[1, 2])
    assert [[s.text for s in e.steps] for e in episodes] == [["x", "1"], ["x", "2"]]
    for wrong in ({"first_0": say_index}, both | {"third_0": say_index}):
        with pytest.raises(ValueError, match=r"policy has agents .*expected one for each of \['first_0', 'second_0'\]"):
            runner.play(wrong, indices=[1, 2])


def test_groups():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 6)
    places = [(e.index, e.group, e.member) for e in runner.play(say_index, indices=[7, 7, 3], groups=2)]
    assert places == [(7, 0, 0), (7, 0, 1), (7, 1, 0), (7, 1, 1), (3, 2, 0), (3, 2, 1)]
    places = [(e.index, e.group, e.member) for e in runner.play(say_index, indices=[7, 3, 7])]
    assert places == [(7, 0, 0), (3, 1, 0), (7, 0, 1)]
    assert [e.group for e in runner.play(say_index)] == list(range(6))
    with pytest.raises(ValueError, match="indices has 3 entries in groups of 3: expected at most size=6"):
        runner.play(say_index, indices=[1, 2, 3], groups=3)
    with pytest.raises(ValueError, match="groups=2 without indices"):
        runner.play(say_index, groups=2)
    with pytest.raises(ValueError, match="seeds has 1 entries: expected 2"):
        runner.play(say_index, indices=[1, 2], seeds=[1])
    with pytest.raises(TypeError, match=r"index=1\.5 of sum"):
        runner.play(say_index, indices=[1.5])
    with pytest.raises(ValueError, match="groups=0"):
        runner.play(say_index, indices=[1, 2], groups=0)


def test_problems_and_seeds_may_come_from_an_iterator():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    episodes = runner.play(say_index, indices=iter([5, 6]), seeds=iter([1, 2]))
    assert [(episode.index, episode.seed) for episode in episodes] == [(5, 1), (6, 2)]
    with pytest.raises(ValueError, match="indices has 3 entries: expected at most size=2"):
        runner.play(say_index, indices=iter([1, 2, 3]))
    with pytest.raises(ValueError, match="seeds has 1 entries: expected 2, one for each episode"):
        runner.play(say_index, indices=[1, 2], seeds=iter([1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: BatchRunner("math_v0", 2), "env='math_v0': expected an environment"),
        (lambda r: BatchRunner(r.envs[0], "2"), "size='2': got str, expected int"),
        (lambda r: r.play(["x"], indices=[1]), r"policy=\['x'\]: got list, expected a function of \(requests\)"),
        (lambda r: r.play(lambda: ["x"], indices=[1]), r"policy=<lambda>: takes \(\), expected a function of "),
        (
            lambda r: r.stream(dict.fromkeys(r.team.agents, lambda requests, more: [])),
            r"policy of a_0=<lambda>: takes \(requests, more\), expected",
        ),
        (lambda r: r.play(say_index, indices=5), r"indices=5: got int, expected several, as in range\(8\)"),
        (lambda r: r.play(say_index, indices=[1], groups="2"), "groups='2': got str, expected int"),
        (lambda r: r.play(say_index, seeds=7), "seeds=7: got int, expected several"),
        (lambda r: r.play(say_index, seeds=["a", "b"]), "seeds='a': got str, expected int"),
        (lambda r: r.play(say_index, turns="9"), "turns='9': got str, expected int"),
        (lambda r: r.stream(say_index, indices="12"), "indices='12': got str, expected several"),
        (lambda r: r.stream(say_index, episodes=2.0), r"episodes=2\.0: got float, expected int"),
        (lambda r: r.stream(say_index, seed="one"), "seed='one': got str, expected int"),
    ],
)
def test_arguments_of_another_type_are_named_at_the_call(call, message):
    with pytest.raises(TypeError, match=message):
        call(BatchRunner(FlexMG(Sum(), three("none")), 2))


def test_seeds_decide_what_the_environment_draws():
    runner = BatchRunner(FlexMG(Sum(), three("none"), rounds=3, order="random"), 4)

    def orders(seeds):
        episodes = runner.play(say_index, indices=[1] * 4, seeds=seeds)
        return [tuple(turn.agent for turn in e.transcript) for e in episodes]

    assert orders([3, 4, 5, 3]) == orders([3, 4, 5, 3])
    assert orders([3, 4, 5, 3])[0] == orders([3, 4, 5, 3])[3]
    assert len(set(orders([3, 4, 5, 6]))) > 1


SHORT_OR_LONG = Team(dict.fromkeys(("first_0",), Role(answers=True)), stop={"word": ["first_0", "stop"]})


def uneven(stop_early):
    """Episodes of one turn where ``stop_early(index)``, else of five."""
    return lambda requests: ["stop" if stop_early(r.index) else "go" for r in requests]


def stream(stop_early, size, executor=None, **arguments):
    with BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), size, executor=executor) as runner:
        return list(runner.stream(uneven(stop_early), **arguments))


def test_a_stream_is_the_same_whichever_episode_finishes_first():
    def problems(episodes):
        return [(e.number, e.index, e.seed) for e in episodes]

    expected = problems(stream(lambda index: True, 1, episodes=9, seed=3))
    assert [number for number, _, _ in expected] == list(range(9))
    for size in (2, 4, 16):
        for early in (lambda i: i % 2, lambda i: i % 3, lambda i: True):
            assert problems(stream(early, size, episodes=9, seed=3)) == expected
            with ThreadPoolExecutor(2) as executor:
                assert problems(stream(early, size, executor, episodes=9, seed=3)) == expected
    assert problems(stream(lambda i: True, 2, episodes=9, seed=4)) != expected


def test_freed_environments_begin_the_next_episode():
    sizes, finished = [], []
    early = uneven(lambda index: index != 0)

    def policy(requests):
        sizes.append(sorted(r.episode for r in requests))
        return early(requests)

    runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=3), 2)
    for episode in runner.stream(policy, indices=[0, 1, 2, 3, 4]):
        finished.append((episode.number, len(episode.steps), len(sizes)))
    assert sizes == [[0, 1], [0, 2], [0, 3], [4]]
    assert finished == [(0, 3, 3), (1, 1, 3), (2, 1, 3), (3, 1, 3), (4, 1, 4)]


def test_groups_in_a_stream():
    episodes = stream(lambda i: i % 2, 3, episodes=5, groups=2)
    assert [(e.group, e.member) for e in episodes] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert episodes[0].index == episodes[1].index != episodes[2].index
    assert episodes[0].seed != episodes[1].seed
    episodes = stream(lambda i: True, 3, indices=iter([5, 6]), groups=2)
    assert [e.index for e in episodes] == [5, 5, 6, 6]


def test_a_stream_without_an_end_is_taken_as_long_as_you_like():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 4)
    taken = [episode.number for episode, _ in zip(runner.stream(say_index), range(50), strict=False)]
    assert taken == list(range(50))


class Beside(Sum):
    """A grader that says "right" only if the policy is asked again while it waits."""

    def __init__(self):
        self.asked_again = threading.Event()

    def grade(self, answer, problem):
        return Verdict.correct() if self.asked_again.wait(5) else Verdict.wrong("nobody asked meanwhile")


@pytest.mark.parametrize("call", ["play", "stream"])
def test_grading_runs_beside_generation(call):
    """The first episode to end (one turn) is graded while the policy is asked for the next wave."""
    task, waves = Beside(), []
    early = uneven(lambda index: index == 1)

    def policy(requests):
        waves.append(len(requests))
        if len(waves) == 2:
            task.asked_again.set()
        return early(requests)

    with ThreadPoolExecutor(1) as executor:
        runner = BatchRunner(FlexMG(task, SHORT_OR_LONG, rounds=2), 2 if call == "play" else 1, executor=executor)
        episodes = list(getattr(runner, call)(policy, indices=[1, 2]))
    assert [e.score for e in episodes] == [1.0, 1.0]


def test_no_episode_begins_without_a_turn_to_play():
    for turns in range(1, 30):
        runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 4)
        episodes = list(runner.stream(uneven(lambda i: i % 2), turns=turns, seed=1))
        assert sum(len(e.steps) for e in episodes) == runner.counts.turns == turns
        assert all(e.steps for e in episodes)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_budget_of_turns_cuts_and_counts(threads):
    executor = ThreadPoolExecutor(threads) if threads else None
    with BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 3, executor=executor) as runner:
        episodes = list(runner.stream(uneven(lambda i: i % 2), turns=23))
        assert sum(len(e.steps) for e in episodes) == runner.counts.turns == 23
        cut = [e for e in episodes if e.truncated]
        assert {e.truncated for e in cut} == {"the budget of 23 turns is spent"}
        assert cut and all(e.not_graded and e.outcome is None and not e.terminated and e.steps for e in cut)
        assert (runner.counts.truncated, runner.counts.not_graded) == (len(cut), 0)
        assert runner.counts.graded == len(episodes) - len(cut) > 0
        assert [e.number for e in episodes] == list(range(len(episodes)))
    if executor:
        executor.shutdown()


def test_a_budget_of_one_batch():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 3)
    episodes = runner.play(say_index, indices=[1, 2, 3], turns=5)
    assert [len(e.steps) for e in episodes] == [2, 2, 1]
    assert [bool(e.not_graded) for e in episodes] == [False, False, True]
    assert [e.score for e in runner.play(say_index, indices=[1, 2, 3], turns=6)] == [1.0] * 3
    assert [len(e.steps) for e in runner.play(say_index, indices=[1, 2, 3], turns=1)] == [1, 0, 0]
    with pytest.raises(ValueError, match="turns=0: expected at least 1"):
        runner.play(say_index, turns=0)


def test_what_is_cut_is_not_even_graded():
    """a_0, which answers, has spoken, but b_0 has not; where c_0 acts last, its reply is not used."""
    task = Sum()
    roles = {"a_0": Role(answers=True), "b_0": Role(), "c_0": Role()}
    runner = BatchRunner(FlexMG(task, Team(roles, [("a_0", "b_0")]), order="random"), 16)
    episodes = runner.play(say_index, indices=range(16), seeds=range(16), turns=32)
    assert {tuple(turn.agent for turn in e.transcript) for e in episodes} == {("a_0",), ("a_0", "c_0"), ("c_0", "a_0")}
    assert runner.counts.unused == sum(len(e.transcript) == 1 for e in episodes) > 0
    assert all(e.truncated for e in episodes) and task.graded_in == set()


def die_at_2(requests):
    return ["die" if r.index == 2 and r.agent == "second_0" else str(r.index) for r in requests]


@pytest.fixture
def one_process(tmp_path, monkeypatch):
    """A maker of executors of one fresh process, which can import ``deadly_task``: "die" kills the grader's process."""
    source = tmp_path / "deadly_task.py"
    source.write_text(DEADLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    yield lambda: ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    sys.modules.pop("deadly_task", None)


DEADLY = """
import os, signal
from marft_envs import Problem, Task, Verdict

class Deadly(Task):
    name = "deadly"
    def problem(self, index):
        return Problem(index, f"say {index}", str(index))
    def grade(self, answer, problem):
        if answer == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")
"""


def test_a_killed_worker_is_not_graded_and_the_run_goes_on(one_process):
    import deadly_task

    game = FlexMG(deadly_task.Deadly(), TEAM)
    with one_process() as executor:
        runner = BatchRunner(game, 1, executor=executor)
        episodes = list(runner.stream(die_at_2, indices=[1, 2, 3]))
    assert [e.score for e in episodes] == [1.0, 0.0, 0.0]
    assert episodes[0].not_graded == ""
    assert all("BrokenProcessPool" in e.not_graded and not e.terminated for e in episodes[1:])
    assert (runner.counts.graded, runner.counts.not_graded) == (1, 2)
    with BatchRunner(game, 1, executor=one_process) as runner:
        episodes = [*runner.play(die_at_2, indices=[2]), *runner.play(die_at_2, indices=[3])]
    assert "BrokenProcessPool" in episodes[0].not_graded
    assert episodes[1].not_graded == "" and episodes[1].score == 1.0


def test_an_executor_that_was_shut_down_is_a_fault_not_a_zero():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    (episode,) = BatchRunner(FlexMG(Sum(), TEAM), 1, executor=executor).play(say_index, indices=[1])
    assert "cannot schedule new futures after shutdown" in episode.not_graded and not episode.terminated
    game = FlexMG(Sum(), TEAM)
    with pytest.raises(TypeError, match="executor=3: expected"):
        BatchRunner(game, 1, executor=3)
    with pytest.raises(TypeError, match=r"executor=<lambda>: takes \(workers\), expected a function of no arguments"):
        BatchRunner(game, 1, executor=lambda workers: ThreadPoolExecutor(workers))
    with pytest.raises(TypeError, match=r"executor=<lambda> made 3: expected a concurrent\.futures\.Executor"):
        BatchRunner(game, 1, executor=lambda: 3).play(say_index, indices=[1])
    with BatchRunner(game, 1, executor=ThreadPoolExecutor) as runner:
        assert runner.play(say_index, indices=[1])[0].outcome is not None


def test_a_policy_that_raises_loses_no_finished_episode():
    asked = []

    def policy(requests):
        asked.append(len(requests))
        if len(asked) == 3:
            raise ConnectionError("the server is gone")
        return uneven(lambda i: i != 0)(requests)

    runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 3)
    with pytest.raises(ConnectionError, match="the server is gone"):
        runner.play(policy, indices=[0, 1, 2])
    assert [(e.index, e.outcome.score) for e in runner.finished] == [(1, 0.0), (2, 0.0)]
    asked.clear()
    with ThreadPoolExecutor(1) as executor:
        runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 2, executor=executor)
        with pytest.raises(ConnectionError):
            list(runner.stream(policy, indices=[0, 1, 2, 3]))
    assert [e.index for e in runner.finished] == [1, 2]
    assert len(runner.play(say_index, indices=[1, 2])) == 2 and runner.finished == []


def test_an_action_that_is_no_text_loses_no_verdict_of_its_wave():
    def policy(requests):
        return [str(r.index) if r.index == 1 or r.agent == "first_0" else None for r in requests]

    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    with pytest.raises(TypeError, match="action of second_0: got NoneType"):
        runner.play(policy, indices=[1, 2])
    assert [(e.index, e.score, e.not_graded) for e in runner.finished] == [(1, 1.0, "")]


def test_an_agent_that_calls_a_tool_is_asked_again():
    roles = {"a_0": Role(tools=(CALCULATOR,)), "b_0": Role(), "c_0": Role(answers=True)}
    call = '<tool_call>{"name": "calculator", "arguments": {"expression": "1+1"}}</tool_call>'
    asked = []

    def policy(requests):
        asked.append(requests[0].agent)
        if asked.count("a_0") == 1 and requests[0].agent == "a_0":
            return [call] * len(requests)
        return say_index(requests)

    (episode,) = BatchRunner(FlexMG(Sum(), Team(roles, [("a_0", "c_0"), ("b_0", "c_0")])), 1).play(policy, indices=[2])
    assert asked == ["a_0", "b_0", "a_0", "c_0"]
    assert [(t.agent, t.kind) for t in episode.transcript] == [
        ("a_0", "call"), ("a_0", "result"), ("a_0", "say"), ("b_0", "say"), ("c_0", "say"),
    ]  # fmt: skip
    assert [s.request.agent for s in episode.steps] == ["a_0", "a_0", "b_0", "c_0"]
    assert len({s.request.turn for s in episode.steps}) == 4
    assert episode.score == 1.0


@pytest.mark.parametrize("replies", ["ab", {"first_0": "a", "second_0": "b"}, None, (text for text in "ab")])
def test_a_policy_that_returns_no_list_is_named(replies):
    with pytest.raises(
        TypeError, match=r"policy returned .* for first_0: expected a list with a str or Reply for each"
    ):
        BatchRunner(FlexMG(Sum(), TEAM), 2).play(lambda requests: replies, indices=[1, 2])
