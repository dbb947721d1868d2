"""Messages between ExternalSandbox and its command."""

import json

import pytest

from marft_envs.sandbox import Asserts, Call, ProgramRun, RunStatus, Stdin
from marft_envs.sandbox.protocol import BadMessage, read_reply, read_request, reply_of, request_of
from tests.marft_envs.sandbox.quick_run import QUICK

TESTS = [Stdin("ä\ud800"), Call("f", "[1]"), Asserts("assert f(1)", "f", ("sum",))]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: type(test).__name__)
def test_a_message_is_read_as_it_was_written(test):
    request = json.loads(json.dumps(request_of("x = 1", test, QUICK, True)))
    assert read_request(request) == ("x = 1", test, QUICK, True)
    run = ProgramRun(RunStatus.WRONG, "out", "1", "why", 0.25, 0.5)
    assert read_reply(json.loads(json.dumps(reply_of(run, "vm")))) == (run, "vm")


INVALID_REQUESTS = [
    {"protocol": 2},
    {"test": {"kind": "x"}},
    {"test": {"kind": "stdin"}},
    {"limits": {}},
    {"limits": {"cpu_s": -1, "memory_mib": 1, "output_mib": 1}},
]


@pytest.mark.parametrize("change", INVALID_REQUESTS)
def test_an_invalid_request_is_rejected(change):
    with pytest.raises(BadMessage, match="protocol"):
        read_request({**request_of("", Stdin(""), QUICK, False), **change})


INVALID_REPLIES = [
    ({"stdout": 3}, "stdout is a int, expected a string"),
    ({"cpu_s": "1"}, "cpu_s is '1', expected a finite number of seconds"),
    ({"cpu_s": float("nan")}, "cpu_s is nan"),
    ({"status": "ok"}, "status is 'ok', expected one of done, runtime_error"),
    ({"isolation": ""}, "isolation is '', expected a name of at most 80 characters"),
]


@pytest.mark.parametrize(("change", "message"), INVALID_REPLIES)
def test_an_invalid_reply_is_rejected(change, message):
    with pytest.raises(BadMessage, match=message):
        read_reply({**reply_of(ProgramRun(RunStatus.DONE), "vm"), **change})
