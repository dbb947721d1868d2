r"""Protocol between an ``ExternalSandbox`` and its command: one request, one reply, each a JSON object on one line.

The command reads requests from its standard input until the input ends. It runs the program of each request in a
process that receives nothing of the test but what the table below names, and writes the reply to its standard output::

    {"protocol": 1, "program": "print(int(input()) + 1)", "prelude": false,
     "test": {"kind": "stdin", "text": "41"},
     "limits": {"cpu_s": 5.0, "wall_s": 11.0, "memory_mib": 1024, "output_mib": 16}}

    {"status": "done", "stdout": "42\n", "value": "", "detail": "", "cpu_s": 0.01, "wall_s": 0.01, "isolation": "gvisor"}

| kind of test | its fields | what the command does |
|---|---|---|
| stdin | text | runs the program as ``__main__`` with ``text`` on its standard input |
| call | function, arguments | runs the program and calls the function (of a new ``Solution``, or of the module); "value" is the result |
| asserts | code, function, builtins, classes | runs the code in a second process, see ``records.Asserts``; the code contains expected values, so the program's process must not see it |

* arguments, value: strings in the notation of ``inside.values``, which is plain JSON for plain data.
* prelude: whether the imports of ``inside.program.PRELUDE`` precede the program.
* status: one of ``records.RunStatus``; "fault" if the command could not run the program.
* isolation: name of the isolation around the program, of at most 80 characters; it is recorded in the verdict.

The command may exit after a reply. It is started again for the next request.
"""  # noqa: E501

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from marft_envs.sandbox.records import Asserts, Call, Limits, ProgramRun, RunStatus, Stdin, Test

VERSION = 1
_TEST_TYPES: dict[str, type[Stdin] | type[Call] | type[Asserts]] = {"stdin": Stdin, "call": Call, "asserts": Asserts}
_TYPE_NAMES = {kind: name for name, kind in _TEST_TYPES.items()}
_STRINGS, _TIMES = ("stdout", "value", "detail"), ("cpu_s", "wall_s")
_LONGEST_NAME = 80


class BadMessage(ValueError):
    """A request or a reply does not follow the protocol."""


def request_of(program: str, test: Test, limits: Limits, prelude: bool) -> dict[str, Any]:
    """Return the request for one run."""
    return {
        "protocol": VERSION,
        "program": program,
        "prelude": prelude,
        "test": {"kind": _TYPE_NAMES[type(test)], **asdict(test)},
        "limits": {**asdict(limits), "wall_s": limits.wall_s},
    }


def read_request(request: Any) -> tuple[str, Test, Limits, bool]:
    """Return (program, test, limits, prelude) of a request. Raises BadMessage if it is invalid."""
    try:
        if request["protocol"] != VERSION:
            raise BadMessage(f"protocol={request['protocol']!r:.40}: expected {VERSION}")
        fields = dict(request["test"])
        test = _TEST_TYPES[fields.pop("kind")](**fields)
        if isinstance(test, Asserts):
            classes = None if test.classes is None else tuple(test.classes)
            test = Asserts(test.code, test.function, tuple(test.builtins), classes)
        limits = Limits(**{name: request["limits"][name] for name in ("cpu_s", "memory_mib", "output_mib")})
        return str(request["program"]), test, limits, bool(request["prelude"])
    except BadMessage:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadMessage(f"not a request of protocol {VERSION}: {type(error).__name__}: {error}"[:200]) from None


def reply_of(run: ProgramRun, isolation: str) -> dict[str, Any]:
    """Return the reply that reports one run."""
    return {**asdict(run), "status": run.status.value, "isolation": isolation}


def read_reply(reply: Any) -> tuple[ProgramRun, str]:
    """Return (run, isolation) of a reply. Raises BadMessage if it is invalid."""
    if not isinstance(reply, dict):
        raise BadMessage(f"the reply is a {type(reply).__name__}, expected an object")
    if reply.get("status") not in list(RunStatus):
        raise BadMessage(f"the reply's status is {reply.get('status')!r:.40}, expected one of {', '.join(RunStatus)}")
    isolation = reply.get("isolation")
    if not isinstance(isolation, str) or not 0 < len(isolation) <= _LONGEST_NAME:
        raise BadMessage(
            f"the reply's isolation is {isolation!r:.40}, expected a name of at most {_LONGEST_NAME} characters"
        )
    strings = {name: reply.get(name, "") for name in _STRINGS}
    times = {name: reply.get(name, 0.0) for name in _TIMES}
    for name, value in strings.items():
        if not isinstance(value, str):
            raise BadMessage(f"the reply's {name} is a {type(value).__name__}, expected a string")
    for name, value in times.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise BadMessage(f"the reply's {name} is {value!r:.40}, expected a finite number of seconds")
    return ProgramRun(RunStatus(reply["status"]), **strings, **times), isolation
