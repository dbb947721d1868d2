"""Message statistics computed by hand, and the shuffle that measures whether agents use messages."""

import pytest

import marft_envs
from baselines.runs.evaluation import cooperation, evaluation_items, evaluation_row, play_items
from baselines.runs.message_statistics import Shuffled, ignored, message_statistics, speakers
from baselines.trajectory import Generation
from marft_envs.batch import BatchRunner, Reply, Request


def env(**arguments):
    return marft_envs.math_v0.env(dataset="relay", style="symbols", **arguments)


def exact(requests):
    """A policy that adds its numbers to the total that it reads."""
    return [Reply(str(total(r.observation["messages"]))) for r in requests]


def total(messages):
    own = next(m["content"] for m in messages if m["name"] == "task")
    read = [int(m["content"]) for m in messages if m["role"] == "user" and m["name"] != "task"]
    return sum(int(n) for n in own.rstrip("=").split("+")) + sum(read)


def ignoring_messages(task):
    """A policy that answers from the gold, whatever it reads."""
    return lambda requests: [Reply(str(task.problem(r.index).gold)) for r in requests]


def test_statistics_by_hand():
    replies = {"reasoner_0": ["1", " ", "1", "2"], "actor_0": ["1", "", "3", "4"]}
    runner = BatchRunner(env(), 4)

    def policy(requests):
        texts = [replies[r.agent][r.index] for r in requests]
        return [Reply(t, Generation((1,), tuple(range(len(t) + 1)), (), t, False)) for t in texts]

    episodes = runner.play(policy, indices=[0, 1, 2, 3])
    assert message_statistics(episodes, ("reasoner_0", "actor_0", "silent_0")) == {
        "reasoner_0": {"replies": 4, "tokens": 8, "empty": 0.25, "repeated": 0.0, "distinct": 0.75},
        "actor_0": {"replies": 4, "tokens": 7, "empty": 0.25, "repeated": 0.25, "distinct": 1.0},
    }
    row = evaluation_row(episodes, runner.team.agents)
    assert row["n"] == 4 and row["messages"]["actor_0"]["replies"] == 4


def test_messages_that_prompts_left_out_are_counted():
    runner = BatchRunner(env(), 4)

    def policy(requests):
        return [
            Reply("1", Generation((1,), (2,), (0.0,), "1", False, r.index * (r.agent == "actor_0"))) for r in requests
        ]

    found = message_statistics(runner.play(policy, indices=[0, 1, 2]), ("reasoner_0", "actor_0"))
    assert found["actor_0"]["dropped"] == 3 and "dropped" not in found["reasoner_0"]


def test_the_drop_is_large_for_a_team_that_uses_messages_and_zero_for_one_that_ignores_them():
    runner = BatchRunner(env(team="trio", dependency="chain"), 16)
    items = evaluation_items(runner, 40, seed=0)
    for policy, low, high, same in ((exact, 0.8, 1.0, 0.0), (ignoring_messages(runner.task), 0.0, 0.0, 1.0)):
        before = 1.0
        played = play_items(runner, policy, items)
        assert sum(e.score for e in played) / 40 == before
        report = cooperation(runner, policy, items, played, seed=0)
        first, second, _ = runner.team.order
        assert set(report) == {first, second} == set(speakers(played))  # no agent reads the last one
        for effect in report.values():
            assert low <= effect["drop"] <= high and effect["accuracy"] == pytest.approx(before - effect["drop"])
            assert effect["unmoved"] == 0.0 and effect["ignored"] == same


def test_an_episode_ignores_a_speaker_if_no_reply_changes_with_the_text():
    runner = BatchRunner(env(team="trio", dependency="chain"), 4)

    def speak(change):
        def policy(requests):
            return [f"{r.agent} {r.index if r.agent == change else 0}" for r in requests]

        return runner.play(policy, indices=[0, 1, 2, 3])

    played, other = speak(None), speak("actor_0")
    last = runner.team.order[-1]
    assert [step.request.agent for step in played[1].steps][-1] == last == "actor_0"
    assert ignored(played, played, {0, 1}) == 1.0 and ignored(played, played, set()) is None
    assert ignored(played, other, {0, 1, 3}) == pytest.approx(1 / 3)  # the last agent's reply differs in 1 and 3


def test_only_texts_that_differ_count_as_changed():
    _, policy = shuffled([request(0, "x"), request(1, "x"), request(2, "y"), request(3, "x", agent="alone_0")])
    # A rotation of x, x, y in any order gives another text to two of the three readers.
    assert len(policy.changed) == 2 and 2 in policy.changed and 3 not in policy.changed


def request(episode, *contents, agent="b_0"):
    messages = [{"role": "system", "name": "b_0", "content": "hm"}, {"role": "user", "name": "task", "content": "?"}]
    messages += [{"role": "user", "name": "a_0", "content": text} for text in contents]
    messages += [
        {"role": "user", "name": "c_0", "content": f"c{episode}"},
        {"role": "assistant", "name": "b_0", "content": "own"},
    ]
    return Request(episode, episode, agent, 0, 0, {"messages": tuple(messages), "reply_prefix": "So"})


def shuffled(requests, speaker="a_0", seed=0):
    seen = []
    policy = Shuffled(lambda requests: seen.extend(requests) or [""] * len(requests), speaker, seed)
    policy(requests)
    return seen, policy


def test_messages_are_exchanged_between_requests_of_the_same_agent():
    requests = [request(i, f"x{i}", agent=agent) for agent in ("b_0", "c_0") for i in range(3)]
    seen, policy = shuffled(requests)
    for agent in ("b_0", "c_0"):
        donors = [r.observation["messages"][2]["content"] for r in seen if r.agent == agent]
        assert sorted(donors) == ["x0", "x1", "x2"] and all(d != f"x{i}" for i, d in enumerate(donors))
    assert (policy.moved, policy.unmoved) == (6, 0)


def test_all_messages_of_the_speaker_and_no_others_are_exchanged():
    requests = [request(i, f"x{i}", f"y{i}") for i in range(5)]
    seen, policy = shuffled(requests)
    donors = []
    for before, after in zip(requests, seen, strict=True):
        x, y = (m["content"] for m in after.observation["messages"] if m["name"] == "a_0")
        assert x[1] == y[1] and x != before.observation["messages"][2]["content"]
        donors.append(x[1])
        rest = [m for m in after.observation["messages"] if m["name"] != "a_0"]
        assert rest == [m for m in before.observation["messages"] if m["name"] != "a_0"]
        assert after.observation["reply_prefix"] == "So" and after.index == before.index
    assert sorted(donors) == list("01234") and (policy.moved, policy.unmoved) == (10, 0)
    assert shuffled(requests)[0] == seen and shuffled(requests, seed=1)[0] != seen


def test_messages_without_a_partner_stay_and_are_counted():
    requests = [request(0, "x0"), request(1, "x1", "y1"), request(2)]
    seen, policy = shuffled(requests)
    assert seen == requests and (policy.moved, policy.unmoved) == (0, 3)


@pytest.mark.parametrize("count", [5, 16, 40])
def test_items_depend_on_the_seed(count):
    runner = BatchRunner(env(), 8)
    assert evaluation_items(runner, count, 0) == evaluation_items(runner, 40, 0)[:count]
    assert evaluation_items(runner, count, 0) != evaluation_items(runner, count, 1)
