"""Recording, reading, replaying and forking of traces."""

import copy
import itertools
import json
import pickle

import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.batch import BatchRunner
from marft_envs.team.tools import CALCULATOR
from marft_envs.traces import Recorder, ReplayError, TraceError, digest, fork, read, replay

CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "3*4"}}</tool_call>'


class Word(Task):
    """Say the word of the problem. The answer "crash" makes the grader raise."""

    name, size = "word", 100

    def __init__(self, question="Which word?", secret="gold-", credit=1.0):
        self.question, self.secret, self.credit = question, secret, credit

    def problem(self, index):
        return Problem(index, f"{self.question} ({index})", f"{self.secret}{index}", {"b_0": "psst"})

    def grade(self, answer, problem):
        if answer == "crash":
            raise OSError("disk full")
        if answer != problem.gold:
            return Verdict.wrong(f"expected {problem.gold}")
        return Verdict.correct() if self.credit == 1 else Verdict.partial(self.credit, "half")


def team(**b):
    return Team({"a_0": Role("You begin."), "b_0": Role("You end.", answers=True, **b)})


def right_if_even(requests):
    return [f"gold-{r.index}" if r.index % 2 == 0 and r.agent == "b_0" else f"é 日本 of {r.agent}" for r in requests]


def recorded(tmp_path, game, policy=right_if_even, indices=range(4), name="run.jsonl", **options):
    with Recorder(tmp_path / name, game, **options) as recorder:
        for episode in BatchRunner(game, 2).stream(policy, indices=indices):
            recorder.record(episode)
    return read(tmp_path / name)


def test_the_schema(tmp_path):
    game = FlexMG(Word(), team(max_chars=50))
    trace = recorded(tmp_path, game, arguments={"level": 3})
    header = trace.header
    assert (header["kind"], header["schema"], header["environment"]) == ("header", "marft-trace/1", "word_v0")
    assert header["arguments"] == {"level": 3}
    assert header["team"]["dependency"] == {"edges": [["a_0", "b_0"]]}
    assert header["team"]["answering"] == ["b_0"]
    assert header["team"]["roles"]["b_0"]["max_chars"] == 50
    assert header["game"]["rounds"] == 1 and header["game"]["reward"] == "shared"
    assert header["versions"]["marft_envs"] == marft_envs.__version__
    row = trace.episodes[2]
    seen = BatchRunner(game, 1).play(right_if_even, indices=[2])[0].steps[1].request.observation
    assert row.pop("seed") is not None
    assert row.pop("turns") == [
        {"round": 0, "agent": "a_0", "kind": "say", "text": "é 日本 of a_0", "observed": row_digest(game, 2, [])},
        {"round": 0, "agent": "b_0", "kind": "say", "text": "gold-2", "observed": digest(seen)},
    ]
    assert row == {
        "kind": "episode", "number": 2, "index": 2, "group": 2, "member": 0,
        "prompt": "Which word? (2)", "private": {"b_0": "psst"},
        "verdicts": {"b_0": {"outcome": "correct", "score": 1.0, "isolation": ""}},
        "score": 1.0, "rewards": {"a_0": 1.0, "b_0": 1.0},
        "terminated": True, "truncated": "", "not_graded": "", "flags": {},
    }  # fmt: skip
    assert [e["score"] for e in trace.episodes] == [1.0, 0.0, 1.0, 0.0]


def row_digest(game, index, texts):
    game = game.sibling(defer_grading=True)
    game.reset(options={"index": index})
    for text in texts:
        game.step(text)
    return digest(game.observe(game.agent_selection))


def test_a_digest_depends_on_every_part_of_an_observation():
    message = {"role": "user", "name": "task", "content": "x"}
    first = {"messages": (message,), "reply_prefix": ""}
    others = [{"messages": (message | {key: "y"},), "reply_prefix": ""} for key in message]
    others += [first | {"reply_prefix": "y"}, {"messages": (message, message), "reply_prefix": ""}]
    assert len({digest(o) for o in (first, *others)}) == 6
    assert digest(first) == digest(json.loads(json.dumps(first)))


def test_the_gold_is_stored_only_on_request(tmp_path):
    wrong = recorded(tmp_path, FlexMG(Word(), team()), lambda rs: ["x"] * len(rs))
    assert "gold" not in (tmp_path / "run.jsonl").read_text()
    assert wrong.episodes[0]["score"] == 0.0
    with_reasons = recorded(tmp_path, FlexMG(Word(), team()), name="gold.jsonl", with_gold=True)
    assert [row["gold"] for row in with_reasons.episodes] == ["gold-0", "gold-1", "gold-2", "gold-3"]
    assert with_reasons.episodes[1]["verdicts"]["b_0"]["reason"] == "expected gold-1"
    for row in (*wrong.episodes, *with_reasons.episodes):
        replay(FlexMG(Word(), team()), row)
    with_reasons.episodes[1]["verdicts"]["b_0"]["reason"] = "expected gold-2"
    with pytest.raises(ReplayError, match=r"^verdicts"):
        replay(FlexMG(Word(), team()), with_reasons.episodes[1])


def test_observations_are_stored_on_request(tmp_path):
    row = recorded(tmp_path, FlexMG(Word(), team()), observations=True).episodes[0]
    assert [m["content"] for m in row["turns"][1]["observation"]["messages"]] == [
        "You end.", "Which word? (0)\n\npsst", "é 日本 of a_0",
    ]  # fmt: skip
    assert digest(row["turns"][1]["observation"]) == row["turns"][1]["observed"]


GAMES = {
    "plain": lambda: FlexMG(Word(), team()),
    "prefix": lambda: FlexMG(Word(), team(reply_prefix="gold-")),
    "thinking prefix": lambda: FlexMG(Word(), team(reply_prefix="gold-<think>So")),
    "clipped": lambda: FlexMG(Word(), team(max_chars=2)),
    "rounds in random order": lambda: FlexMG(Word(), team().with_dependency("none"), rounds=4, order="random"),
    "last, deferred": lambda: FlexMG(Word(), team(), reward="last", defer_grading=True),
    "D by round": lambda: FlexMG(Word(), team().with_dependency(["chain", "none"]), rounds=2),
    "tools": lambda: FlexMG(Word(), team(tools=(CALCULATOR,))),
}


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES.keys())
def test_a_replay_is_the_same_episode(tmp_path, game):
    calls = itertools.count()

    def policy(requests):
        texts = right_if_even(requests)
        calling = [r.agent == "b_0" and r.turn == 1 and next(calls) % 2 == 1 for r in requests]
        return [CALL if call else text for call, text in zip(calling, texts, strict=True)]

    rows = recorded(tmp_path, game(), policy).episodes
    assert len(rows) == 4
    for row in rows:
        replay(game(), row)
        replay(marft_envs.game.order_enforcing.OrderEnforcing(game()), row)
        assert all("observed" in turn for turn in row["turns"] if turn["kind"] != "result")


def test_flags_and_tool_calls_are_recorded(tmp_path):
    clipped = recorded(tmp_path, GAMES["clipped"]()).episodes
    assert clipped[0]["flags"] == {"b_0": {"clipped": 6}}
    assert clipped[0]["turns"][1]["text"] == "go"
    texts = iter(["hello", CALL, "gold-1"])
    (row,) = recorded(tmp_path, GAMES["tools"](), lambda rs: [next(texts)], [1], "tools.jsonl").episodes
    assert [(t["kind"], t["text"]) for t in row["turns"][1:]] == [("call", CALL), ("result", "12"), ("say", "gold-1")]
    assert row["score"] == 1.0
    row["turns"][2]["text"] = "13"
    with pytest.raises(ReplayError, match=r"turn 2: the transcript has .*'12'.*'13'"):
        replay(GAMES["tools"](), row)


def test_a_difference_raises_an_error_that_names_the_turn(tmp_path):
    def row():
        return copy.deepcopy(read(tmp_path / "run.jsonl").episodes[0])

    recorded(tmp_path, GAMES["plain"](), observations=True)
    other_profile = Team({"a_0": Role("You begin."), "b_0": Role("You end, kindly.", answers=True)})
    with pytest.raises(
        ReplayError, match=r"turn 1: b_0 has a different observation: .*kindly.*the row has .*You end\."
    ) as error:
        replay(FlexMG(Word(), other_profile), row())
    assert error.value.turn == 1
    with pytest.raises(ReplayError, match=r"problem 0 has a different prompt: 'What\? \(0\)'; the row has 'Which word"):
        replay(FlexMG(Word("What?"), team()), row())
    with pytest.raises(ReplayError, match=r"turn 0: b_0 acts; in the row a_0 acts"):
        replay(FlexMG(Word(), team().with_dependency([("b_0", "a_0")])), row())
    with pytest.raises(ReplayError, match=r"turn 1: b_0 has a different observation"):
        replay(FlexMG(Word(), team().with_dependency("none")), row())
    with pytest.raises(ReplayError, match=r"turn 1: the transcript has .*'go'.*'gold-0'"):
        replay(GAMES["clipped"](), row())
    with pytest.raises(ReplayError, match=r"^verdicts: .*wrong.*the row has .*correct"):
        replay(FlexMG(Word(secret="silver-"), team()), row())
    with pytest.raises(ReplayError, match=r"^rewards: .*'a_0': 0\.0.*the row has .*'a_0': 1\.0"):
        replay(FlexMG(Word(), team(), reward="last"), row())
    with pytest.raises(ReplayError, match="the episode is not over"):
        replay(FlexMG(Word(), team(), rounds=2), row())
    with pytest.raises(ReplayError, match="turn 1: the episode is over"):
        replay(FlexMG(Word(), team(), max_turns=1), row())
    changed = row() | {"score": 0.5}
    with pytest.raises(ReplayError, match=r"^score: 1\.0; the row has 0\.5"):
        replay(GAMES["plain"](), changed)


def test_truncated_and_ungraded_episodes_have_no_score(tmp_path):
    game = GAMES["plain"]()
    runner = BatchRunner(game, 2)
    with Recorder(tmp_path / "run.jsonl", game) as recorder:
        for episode in runner.stream(lambda rs: ["crash"] * len(rs), indices=[0, 1, 2], turns=5):
            recorder.record(episode)
    fault, _, truncated = read(tmp_path / "run.jsonl").episodes
    assert (fault["score"], fault["not_graded"], fault["truncated"]) == (None, "b_0: OSError: disk full", "")
    assert fault["verdicts"]["b_0"]["outcome"] == "not_graded"
    assert (truncated["score"], truncated["truncated"], len(truncated["turns"])) == (
        None,
        "the budget of 5 turns is spent",
        1,
    )
    assert truncated["not_graded"] and not truncated["terminated"] and truncated["verdicts"] == {}
    for row in (fault, truncated):
        replay(game, row)
    assert game.infos["a_0"]["truncated"] == "the budget of 5 turns is spent"


def test_play_continues_from_a_fork(tmp_path):
    row = recorded(tmp_path, GAMES["plain"]()).episodes[1]
    assert row["score"] == 0.0
    env = marft_envs.game.order_enforcing.OrderEnforcing(GAMES["plain"]())
    fork(env, row, turn=1)
    assert env.agent_selection == "b_0"
    assert env.observe("b_0")["messages"][-1]["content"] == "é 日本 of a_0"
    for agent in env.agent_iter():
        env.last()
        env.step(None if env.terminations[agent] else "gold-1")
    assert env.unwrapped.outcome.score == 1.0
    fork(env, row, turn=0)
    assert env.unwrapped.transcript == [] and env.unwrapped.problem.index == 1
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=f"turn={wrong}: expected 0 to 2"):
            fork(env, row, turn=wrong)


def test_no_fork_between_a_call_and_its_result(tmp_path):
    texts = iter(["hello", CALL, "gold-1"])
    (row,) = recorded(tmp_path, GAMES["tools"](), lambda rs: [next(texts)], [1]).episodes
    with pytest.raises(ValueError, match=r"turn=2 separates a tool call from its result: expected 1 or 3"):
        fork(GAMES["tools"](), row, turn=2)
    env = GAMES["tools"]()
    fork(env, row, turn=3)
    assert env.agent_selection == "b_0" and env.observe("b_0")["messages"][-1]["content"] == "12"


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
@pytest.mark.parametrize("turn", [0, 1, 3, 7])
def test_a_copy_of_a_forked_environment_continues_the_same_episode(tmp_path, copied, turn):
    """The copy continues as the original would have, also in random order, and neither changes the other."""
    make = GAMES["rounds in random order"]
    row = recorded(tmp_path, make()).episodes[0]
    env = marft_envs.game.order_enforcing.OrderEnforcing(make())
    fork(env, row, turn=turn)
    twin = copied(env)
    env.step("something else")
    for recorded_turn in row["turns"][turn:]:
        assert twin.agent_selection == recorded_turn["agent"]
        assert digest(twin.observe(recorded_turn["agent"])) == recorded_turn["observed"]
        twin.step(recorded_turn["text"])
    assert twin.unwrapped.outcome.score == row["score"]
    assert env.unwrapped.transcript[turn].text == "something else"


def play_by_hand(env, texts, seed=None):
    env.reset(seed=seed, options={"index": 2})
    for text in texts:
        env.step(text)
    return env


def test_a_hand_driven_episode(tmp_path):
    env = marft_envs.game.order_enforcing.OrderEnforcing(FlexMG(Word(), team(max_chars=6)))
    with Recorder(tmp_path / "run.jsonl", env, observations=True) as recorder:
        recorder.record(play_by_hand(env, ["hello", "gold-2 and more"]))
        recorder.record(play_by_hand(env.unwrapped, ["hello", "gold-3"]))
    first, second = read(tmp_path / "run.jsonl").episodes
    assert (first["score"], first["flags"], first["number"]) == (1.0, {"b_0": {"clipped": 15}}, 0)
    assert (second["score"], second["flags"], second["number"]) == (0.0, {}, 1)
    assert first["turns"][1]["observation"]["messages"][-1]["content"] == "hello"
    replay(env, first)


def test_a_hand_driven_episode_in_random_order_needs_its_seed(tmp_path):
    env = GAMES["rounds in random order"]()
    with Recorder(tmp_path / "run.jsonl", env) as recorder:
        known = recorder.record(play_by_hand(env, ["x"] * 8, seed=5), seed=5)
    assert all("observed" in turn for turn in known["turns"])
    replay(env, known)


def test_episodes_that_cannot_be_recorded_raise_trace_error(tmp_path):
    env = GAMES["plain"]()
    with Recorder(tmp_path / "run.jsonl", env) as recorder:
        with pytest.raises(TraceError, match="word_v0: the episode is not over"):
            recorder.record(play_by_hand(env, ["x"]))
        play_by_hand(env, ["x", "y"]).step(None)
        with pytest.raises(TraceError, match="an agent has already left"):
            recorder.record(env)
        deferred = play_by_hand(GAMES["last, deferred"](), ["x", "y"])
        with pytest.raises(TraceError, match=r"expected env\.settle"):
            recorder.record(deferred)
    with pytest.raises(TypeError):
        Recorder(tmp_path / "never.jsonl", env, arguments={"task": Word()})
    assert not (tmp_path / "never.jsonl").exists()
    assert read(tmp_path / "run.jsonl").episodes == []


def test_a_file_that_exists_is_not_overwritten(tmp_path):
    game = GAMES["plain"]()
    recorded(tmp_path, game)
    before = (tmp_path / "run.jsonl").read_bytes()
    with pytest.raises(FileExistsError, match=r"run\.jsonl: the file exists; expected a new file, or append=True"):
        Recorder(tmp_path / "run.jsonl", game)
    with pytest.raises(TraceError, match="the header has a different team"):
        Recorder(tmp_path / "run.jsonl", GAMES["prefix"](), append=True)
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert [row["number"] for row in recorded(tmp_path, game, append=True).episodes] == list(range(8))
    assert len(recorded(tmp_path, game, name="new.jsonl", append=True).episodes) == 4


@pytest.mark.parametrize("lost", [1, 40, 400])
def test_a_partial_last_line_is_reported_and_append_deletes_it(tmp_path, lost):
    game, path = GAMES["plain"](), tmp_path / "run.jsonl"
    recorded(tmp_path, game)
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    with pytest.warns(UserWarning, match="line 5 is incomplete"):
        trace = read(path)
    assert len(trace.episodes) == 3 and trace.partial_line
    with pytest.warns(UserWarning, match="line 5 is incomplete"):
        appended = recorded(tmp_path, game, indices=[3], append=True)
    assert [row["index"] for row in appended.episodes] == [0, 1, 2, 3]
    assert appended.partial_line == ""


def test_a_bad_line_in_the_middle_is_named(tmp_path):
    recorded(tmp_path, GAMES["plain"]())
    path = tmp_path / "run.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:50] + "\n", *lines[3:]]))
    with pytest.raises(TraceError, match=r"run\.jsonl: line 3 is not JSON"):
        read(path)
    path.write_text("".join([*lines[:2], "[]\n", *lines[3:]]))
    with pytest.raises(TraceError, match=r"run\.jsonl: line 3 is a list"):
        read(path)
    path.write_text("".join([*lines[:2], lines[0]]))
    with pytest.raises(TraceError, match=r"line 3 has kind='header'; expected 'episode'"):
        read(path)
    path.write_text("".join(lines[1:]))
    with pytest.raises(TraceError, match="line 1 is not a header"):
        read(path)
    path.write_text(lines[0].replace("marft-trace/1", "marft-trace/9"))
    with pytest.raises(TraceError, match="schema='marft-trace/9'; expected 'marft-trace/1'"):
        read(path)


def test_lone_surrogates_are_escaped(tmp_path):
    game = FlexMG(Word("\ud800?"), team())
    assert recorded(tmp_path, game).episodes[0]["prompt"] == "\ud800? (0)"


def test_a_row_is_in_the_file_when_record_returns(tmp_path):
    env = GAMES["plain"]()
    with Recorder(tmp_path / "run.jsonl", env) as recorder:
        assert read(tmp_path / "run.jsonl").episodes == []
        recorder.record(play_by_hand(env, ["x", "y"]))
        assert len(read(tmp_path / "run.jsonl").episodes) == 1


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^trace run\.jsonl: not found, expected a JSONL file that a Recorder"):
        read("run.jsonl")


def test_a_writer_adds_entries_to_the_actions_of_an_episode(tmp_path):
    game = FlexMG(Word(), team(tools=(CALCULATOR,)))
    (episode,) = BatchRunner(game, 1).play(
        lambda requests: [CALL if r.turn == 1 else "word" for r in requests], indices=[0]
    )
    kinds = [turn.kind for turn in episode.transcript]
    added = [{"value": k / 4} for k in range(len(episode.steps))]
    with Recorder(tmp_path / "run.jsonl", game) as recorder:
        recorder.record(episode, added=added)
        with pytest.raises(ValueError, match=f"added: 1 for an episode of {len(added)} actions: expected one for each"):
            recorder.record(episode, added=added[:1])
    (row,) = read(tmp_path / "run.jsonl").episodes
    assert kinds == ["say", "call", "result", "say"]
    assert [turn.get("value") for turn in row["turns"]] == [0.0, 0.25, None, 0.5]
    replay(game, row)
