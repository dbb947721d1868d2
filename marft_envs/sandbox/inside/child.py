"""The four things that a locked child can be.

| role | runs | descriptor 3 | descriptor 4 |
|---|---|---|---|
| main | the program as ``__main__`` | | |
| call | the program, then one function of it | where the value is written | |
| serve | the program, then what a tester asks for | the tester | |
| test | the tests of a data set; never the program | the program | where its token is written |
"""

from __future__ import annotations

import os
from typing import Any

from . import program, values
from .remote import Channel, Names, ProgramEnded, Remote, serve

CHANNEL, RESULT = 3, 4


def run(spec: dict[str, Any]) -> None:
    """Play the role that the spec names; the process ends in here."""
    role = _ROLES[spec["role"]]
    program.ending(lambda: role(spec))


def _main(spec: dict[str, Any]) -> None:
    program.execute(spec["source"], program.new_module("__main__", spec["prelude"]))


def _call(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["prelude"])
    program.execute(spec["source"], module)
    arguments = values.loads(spec["arguments"])
    value = program.find_function(module, spec["function"])(*arguments)
    _write(CHANNEL, values.dumps(value))


def _serve(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["prelude"])
    program.execute(spec["source"], module)
    serve(Channel(CHANNEL), lambda name: program.find_function(module, name))


def _test(spec: dict[str, Any]) -> None:
    """Exits with 0 and the token when every assertion held; "wrong" is an AssertionError, "error" anything else."""
    channel = Channel(CHANNEL)
    names = Names(channel)
    try:
        names.update({name: Remote(channel, name) for name in spec["builtins"]})
        exec(compile(spec["source"], "tests.py", "exec", dont_inherit=True), names)
        if spec["function"]:
            names["check"](Remote(channel, spec["function"]))
        report = spec["token"]
    except AssertionError as error:
        report = f"wrong {error}"
    except ProgramEnded as error:
        report = f"ended {error}"
    except BaseException as error:
        report = f"error {type(error).__name__}: {error}"
    _write(RESULT, report[:2000])


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(descriptor, data) :]


_ROLES = {"main": _main, "call": _call, "serve": _serve, "test": _test}
