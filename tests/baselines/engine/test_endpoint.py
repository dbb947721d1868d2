"""Endpoints: what is sent, retries and waits, faults, and the bound on concurrency, against a real HTTP server."""

import email.utils
import socket
import threading
import time

import pytest

import marft_envs
from baselines.engine.endpoint import (
    GIVE_UP_AFTER,
    Endpoint,
    EndpointReply,
    EndpointSettings,
    chat_messages,
    without_prefix,
)
from baselines.engine.protocol import Sampling
from baselines.errors import RunError
from marft_envs import Role, Team
from marft_envs.batch import BatchRunner, PolicyFault, Reply, Request
from tests.baselines.endpoint_server import chat_server, completion


def observed(*messages, prefix=""):
    found = tuple({"role": role, "name": name, "content": content} for role, name, content in messages)
    return {"messages": found, "reply_prefix": prefix}


SIMPLE = observed(("system", "actor_0", "Be brief."), ("user", "task", "What is 1 + 1?"))


def requests_of(count, observation=SIMPLE):
    return [Request(i, i, "actor_0", 0, 0, observation) for i in range(count)]


def policy(server, *, sampling=None, stream=None, **settings):
    settings = {"model": "m", "wait_s": 0.01, **settings}
    return Endpoint(EndpointSettings(server.url, **settings), sampling=sampling, stream=stream)


# ---- requests


def test_a_request_has_the_messages_and_the_sampling():
    sampling = Sampling(max_new_tokens=17, temperature=0.7, stop_strings=("###",))
    settings = {"key": "s3cret", "payload": {"top_p": 0.9}, "sampling": sampling, "stream": (5, 3)}
    with chat_server(lambda body, number: "\\boxed{2}") as server, policy(server, **settings) as endpoint:
        (reply,) = endpoint(requests_of(1))
        assert (endpoint.prompt_tokens, endpoint.generated_tokens) == (10, 3)
    assert reply == Reply("\\boxed{2}", EndpointReply(10, 3, truncated=False, attempts=1))
    (body,) = server.bodies
    seed = body.pop("seed")
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 1 + 1?"}],
        "max_tokens": 17,
        "temperature": 0.7,
        "stop": ["###"],
        "top_p": 0.9,
    }
    assert 0 <= seed < 2**31
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["Authorization"] == "Bearer s3cret" and "s3cret" not in repr(endpoint.settings)


def test_greedy_decoding_sends_temperature_0_and_no_seed_and_no_key():
    with chat_server(lambda body, number: "2") as server, policy(server, payload={"max_tokens": None}) as endpoint:
        endpoint(requests_of(1))
    assert server.bodies[0]["temperature"] == 0.0
    assert not {"seed", "stop", "max_tokens"} & set(server.bodies[0])
    assert "Authorization" not in server.headers[0]


def test_the_seed_depends_on_problem_repetition_and_turn_alone():
    def seeds(*requests):
        with chat_server(lambda body, number: "2") as server, policy(server, stream=(0,), concurrency=1) as endpoint:
            endpoint(list(requests))
        return [body["seed"] for body in server.bodies]

    first, again, other = (Request(e, 7, "a", 0, turn, SIMPLE) for e, turn in ((0, 0), (9, 0), (0, 1)))
    repeated = Request(0, 7, "a", 0, 0, SIMPLE, repetition=1)
    assert seeds(first, other) == [*seeds(again), *seeds(other)]
    assert len(set(seeds(first, other, repeated))) == 3


def test_user_and_assistant_alternate_and_the_last_message_is_the_users():
    seen = observed(
        ("system", "actor_0", "Profile."),
        ("user", "task", "Problem."),
        ("assistant", "actor_0", "Mine."),
        ("user", "planner_0", "Plan."),
        ("user", "reasoner_0", "Reason."),
    )
    assert chat_messages(seen) == [
        {"role": "system", "content": "Profile."},
        {"role": "user", "content": "Problem."},
        {"role": "assistant", "content": "Mine."},
        {"role": "user", "content": "planner_0: Plan.\n\nreasoner_0: Reason."},
    ]
    assert chat_messages(seen, system_role=False)[0] == {"role": "user", "content": "Profile.\n\nProblem."}
    own = observed(("user", "task", "Problem."), ("assistant", "actor_0", "Mine."))
    assert chat_messages(own)[-1] == {"role": "user", "content": "Continue."}


@pytest.mark.parametrize(
    ("reply", "prefix", "action"),
    [
        ("Equation: 1+1=2", "Equation:", " 1+1=2"),
        ("1+1=2", "Equation:", "1+1=2"),
        ("  The answer is 7", "The answer is ", "7"),
        ("The answer is 7", "", "The answer is 7"),
        ("plain", "Let me see. <think>", "plain"),
        ("Let me see. 7", "Let me see. <think>", "7"),
    ],
)
def test_the_beginning_of_a_reply_is_requested_and_not_repeated(reply, prefix, action):
    assert without_prefix(reply, prefix) == action
    last = chat_messages(observed(("user", "task", "Problem."), prefix=prefix))[-1]["content"]
    words = prefix.split("<think>")[0].strip()
    assert last == "Problem." + (f"\n\nBegin your reply with these words: {words}" if words else "")


def test_a_guided_team_gets_each_prefix_once():
    team = Team({"actor_0": Role("Answer.", answers=True, reply_prefix="The answer is ")})
    runner = BatchRunner(marft_envs.math_v0.env(team=team), 1)
    with chat_server(lambda body, number: "The answer is 7") as server, policy(server) as endpoint:
        (episode,) = runner.play(endpoint, indices=[0])
    assert episode.transcript[0].text == "The answer is 7"


@pytest.mark.parametrize(
    ("content", "text"),
    [("<think>2 or 3?</think>\\boxed{2}", "\\boxed{2}"), (None, ""), ("\\boxed{2} ### more", "\\boxed{2} ")],
)
def test_thinking_and_stop_strings_are_not_part_of_the_action(content, text):
    sampling = Sampling(stop_strings=("###",))
    with chat_server(lambda body, number: completion(content)) as server, policy(server, sampling=sampling) as endpoint:
        assert endpoint(requests_of(1))[0].text == text


def test_a_reply_at_the_token_limit_is_recorded_as_truncated():
    cut = {**completion("\\boxed{", finish="length"), "usage": None}
    with chat_server(lambda body, number: cut) as server, policy(server) as endpoint:
        assert endpoint(requests_of(1))[0].data == EndpointReply(0, 0, truncated=True, attempts=1)


# ---- retries


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_a_busy_endpoint_is_asked_again(status):
    def script(body, number):
        return (status, {}, {"error": {"message": "busy"}}) if number < 2 else "2"

    with chat_server(script) as server, policy(server) as endpoint:
        (reply,) = endpoint(requests_of(1))
    assert (reply.text, reply.data.attempts, len(server.bodies)) == ("2", 3, 3)
    assert server.bodies[0] == server.bodies[2]


def test_a_closed_connection_is_asked_again():
    with chat_server(lambda body, number: "2" if number else None) as server, policy(server) as endpoint:
        assert endpoint(requests_of(1))[0].text == "2"


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_the_wait(form):
    def script(body, number):
        later = "1" if form == "seconds" else email.utils.formatdate(time.time() + 2, usegmt=True)
        return (429, {"Retry-After": later}, {}) if number == 0 else "2"

    with chat_server(script) as server, policy(server) as endpoint:  # without the header the wait is 0.02 s at most
        assert endpoint(requests_of(1))[0].text == "2"
    assert server.times[1] - server.times[0] >= 0.9


def test_waits_grow_with_the_attempts():
    with chat_server(lambda body, number: (503, {}, {})) as server, policy(server, wait_s=0.1, attempts=4) as endpoint:
        endpoint(requests_of(1))
    waits = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    assert waits[1] >= 0.2 and waits[2] >= 0.4  # 0.1 s, doubled; the jitter comes on top


# ---- faults


@pytest.mark.parametrize(
    ("answer", "reason", "sent"),
    [
        ((503, {}, {"error": {"message": "overloaded"}}), "HTTP 503 overloaded", 3),
        ((400, {}, {"error": {"message": "context length\nexceeded"}}), "HTTP 400 context length exceeded", 1),
        ((422, {}, b"no JSON"), "HTTP 422 no JSON", 1),
        ((200, {}, b"no JSON"), "expected a chat completion, got 'no JSON'", 1),
        ((200, {}, {"error": "upstream"}), "expected a chat completion, got", 1),
        ((200, {}, {"choices": []}), "expected a chat completion, got", 1),
        ((200, {}, [1]), "expected a chat completion, got", 1),
        (None, "no reply from", 3),
    ],
)
def test_a_request_without_a_reply_is_a_fault(answer, reason, sent):
    with chat_server(lambda body, number: answer) as server, policy(server, attempts=3) as endpoint:
        (fault,) = endpoint(requests_of(1))
        assert isinstance(fault, PolicyFault) and reason in str(fault)
    assert len(server.bodies) == sent


def test_a_slow_endpoint_is_a_fault():
    def script(body, number):
        time.sleep(0.5)
        return "2"

    with chat_server(script) as server, policy(server, attempts=1, timeout_s=0.1) as endpoint:
        (fault,) = endpoint(requests_of(1))
    assert isinstance(fault, PolicyFault) and "Read timed out" in str(fault)


def test_a_fault_is_no_wrong_answer_and_the_other_episodes_are_played():
    runner = BatchRunner(marft_envs.math_v0.env(team="solo"), 3)
    bad = runner.task.problem(1).prompt

    def script(body, number):
        return (400, {}, {"error": {"message": "no"}}) if bad in body["messages"][-1]["content"] else "\\boxed{-1}"

    with chat_server(script) as server, policy(server) as endpoint:
        episodes = runner.play(endpoint, indices=[0, 1, 2])
    assert [bool(episode.not_graded) for episode in episodes] == [False, True, False]
    assert episodes[1].not_graded == "policy of actor_0: HTTP 400 no"
    assert [episode.score for episode in (episodes[0], episodes[2])] == [0.0, 0.0]


@pytest.mark.parametrize("status", [401, 403, 404, 308])
def test_a_wrong_key_url_or_model_ends_the_evaluation(status):
    answer = (status, {}, {"error": {"message": "unknown"}})
    server_of = chat_server(lambda body, number: answer)
    with server_of as server, policy(server, concurrency=1) as endpoint, pytest.raises(ValueError) as error:
        endpoint(requests_of(5))
    assert f"endpoint {server.url}: HTTP {status} unknown: expected the URL" in str(error.value)
    assert len(server.bodies) <= 2


def test_an_endpoint_that_is_down_ends_the_evaluation():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with Endpoint(EndpointSettings(url, "m", attempts=1)) as endpoint:
        assert all(isinstance(reply, PolicyFault) for reply in endpoint(requests_of(GIVE_UP_AFTER - 1)))
        with pytest.raises(RunError, match=f"endpoint {url}: the last 16 requests had no reply; .*Connection"):
            endpoint(requests_of(1))


def test_only_faults_in_a_row_are_taken_for_an_endpoint_that_is_down():
    def script(body, number):
        return "2" if number % 8 == 7 else (400, {}, {})

    with chat_server(script) as server, policy(server, concurrency=1) as endpoint:
        replies = endpoint(requests_of(5 * GIVE_UP_AFTER))
    assert sum(isinstance(reply, Reply) for reply in replies) == 10


# ---- concurrency


def test_no_more_requests_at_a_time_than_the_bound_and_replies_in_order():
    four = threading.Barrier(4, timeout=60)

    def script(body, number):
        four.wait()  # answers only once four requests are there
        time.sleep(0.05)  # in which a fifth one would arrive
        return body["messages"][-1]["content"]

    asked = [Request(i, i, "actor_0", 0, 0, observed(("user", "task", f"number {i}"))) for i in range(24)]
    with chat_server(script) as server, policy(server, concurrency=4) as endpoint:
        assert [reply.text for reply in endpoint(asked)] == [f"number {i}" for i in range(24)]
    assert server.most_at_once == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost:8000"}, "endpoint 'localhost:8000': expected the URL"),
        ({"url": "ftp://host/v1"}, "expected the URL of an OpenAI-compatible API"),
        ({"model": " "}, "endpoint model=' ': expected the name of a model"),
        ({"concurrency": 0}, "endpoint concurrency=0: expected at least 1"),
        ({"attempts": 0}, "endpoint attempts=0: expected at least 1"),
        ({"timeout_s": 0.0}, "endpoint timeout_s=0.0"),
        ({"model": 3}, "EndpointSettings model=3: expected a string"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=r"(?i)endpoint") as error:
        EndpointSettings(**{"url": "http://localhost:1/v1", "model": "m", **settings})
    assert message in str(error.value)


def test_the_path_of_chat_completions_may_be_part_of_the_url():
    for url in ("http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", "http://h/v1/chat/completions/"):
        assert EndpointSettings(url, "m").url == "http://h/v1"
