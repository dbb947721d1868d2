r"""What is said to a runner outside this process: one request, one reply, each a JSON object on a line of its own.

A runner is any command that reads requests from its standard input until that ends. It runs the program of each in a
process that knows nothing of the test but what is in the request, and writes the reply to its standard output::

    {"protocol": 1, "program": "print(int(input()) + 1)", "prelude": false,
     "test": {"kind": "stdin", "text": "41"},
     "limits": {"cpu_s": 5.0, "wall_s": 11.0, "memory_mib": 1024, "output_mib": 16}}

    {"ending": "done", "stdout": "42\n", "value": "", "detail": "", "cpu_s": 0.01, "wall_s": 0.01, "isolation": "gvisor"}

| kind of a test | its fields | what the runner does |
|---|---|---|
| stdin | text | runs the program as ``__main__`` with the text on its standard input |
| call | function, arguments | runs it, calls the function (of a new ``Solution``, or of the module); the result is "value" |
| asserts | code, function, builtins | runs the code beside it, see ``records.Asserts``: the code holds expected values, and the program's process must not see it |

arguments and value are texts in the notation of ``inside.values``: plain JSON for plain data. prelude: whether the
customary imports of ``inside.program`` stand before the program. ending: one of ``records.Ending``; "fault" where the
runner could not do its work. isolation: the name of what holds the program; it stands in the verdict. A runner may end
after a reply; it is started again for the next request.
"""  # noqa: E501

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from marft_envs.sandbox.records import Asserts, Call, Ending, Limits, Run, Stdin, Test

VERSION = 1
_KINDS: dict[str, type[Stdin] | type[Call] | type[Asserts]] = {"stdin": Stdin, "call": Call, "asserts": Asserts}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TEXTS, _TIMES = ("stdout", "value", "detail"), ("cpu_s", "wall_s")
_LONGEST_NAME = 80


class BadMessage(ValueError):
    """A request or a reply that is not of this protocol; the message says what is wrong with it."""


def request_of(program: str, test: Test, limits: Limits, prelude: bool) -> dict[str, Any]:
    """The request for one run."""
    return {
        "protocol": VERSION,
        "program": program,
        "prelude": prelude,
        "test": {"kind": _NAMES[type(test)], **asdict(test)},
        "limits": {**asdict(limits), "wall_s": limits.wall_s},
    }


def read_request(request: Any) -> tuple[str, Test, Limits, bool]:
    """(program, test, limits, prelude) of a request; BadMessage where it is none."""
    try:
        if request["protocol"] != VERSION:
            raise BadMessage(f"protocol={request['protocol']!r:.40}: expected {VERSION}")
        fields = dict(request["test"])
        test = _KINDS[fields.pop("kind")](**fields)
        if isinstance(test, Asserts):
            test = Asserts(test.code, test.function, tuple(test.builtins))
        limits = Limits(**{name: request["limits"][name] for name in ("cpu_s", "memory_mib", "output_mib")})
        return str(request["program"]), test, limits, bool(request["prelude"])
    except BadMessage:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadMessage(f"no request of protocol {VERSION}: {type(error).__name__}: {error}"[:200]) from None


def reply_of(run: Run, isolation: str) -> dict[str, Any]:
    """The reply that tells of one run."""
    return {**asdict(run), "ending": run.ending.value, "isolation": isolation}


def read_reply(reply: Any) -> tuple[Run, str]:
    """(run, isolation) of a reply; BadMessage where it is none."""
    if not isinstance(reply, dict):
        raise BadMessage(f"the reply is a {type(reply).__name__}, expected an object")
    if reply.get("ending") not in list(Ending):
        raise BadMessage(f"the reply's ending is {reply.get('ending')!r:.40}, expected one of {', '.join(Ending)}")
    isolation = reply.get("isolation")
    if not isinstance(isolation, str) or not 0 < len(isolation) <= _LONGEST_NAME:
        raise BadMessage(f"the reply's isolation is {isolation!r:.40}, expected the name of what holds the program")
    texts = {name: reply.get(name, "") for name in _TEXTS}
    times = {name: reply.get(name, 0.0) for name in _TIMES}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise BadMessage(f"the reply's {name} is a {type(value).__name__}, expected a text")
    for name, value in times.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise BadMessage(f"the reply's {name} is {value!r:.40}, expected seconds")
    return Run(Ending(reply["ending"]), **texts, **times), isolation
