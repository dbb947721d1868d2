"""The four roles of a confined child process.

| role | runs | descriptor 3 | descriptor 4 |
|---|---|---|---|
| main | the program as ``__main__`` | | |
| call | the program, then one function of it | output file for the returned value | |
| serve | the program, then the calls that a tester requests | socket to the tester | |
| test | the test code of a data set, never the program | socket to the program | output file for the result |
"""

from __future__ import annotations

import os
import sys
from typing import Any

from . import process_end, program, values
from .remote_calls import Channel, Names, ProgramEnded, Remote, serve

CHANNEL, RESULT = 3, 4


def run(spec: dict[str, Any]) -> None:
    """Run the role that the spec names, then exit the process."""
    sys.set_int_max_str_digits(0)  # as contest judges do; the time limit bounds the conversion
    role = _ROLES[spec["role"]]
    process_end.run_and_exit(lambda: role(spec))


def _main(spec: dict[str, Any]) -> None:
    if spec["crlf"]:
        program.strip_carriage_returns()
    program.execute(spec["source"], program.new_module("__main__", spec["source"], spec["prelude"]))


def _call(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["source"], spec["prelude"])
    program.execute(spec["source"], module)
    arguments = values.loads(spec["arguments"])
    value = program.find_function(module, spec["function"])(*arguments)
    _write(CHANNEL, values.dumps(value))


def _serve(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["source"], spec["prelude"])
    program.execute(spec["source"], module)
    serve(Channel(CHANNEL), lambda name: program.find_function(module, name))


def _test(spec: dict[str, Any]) -> None:
    """Run the tests and write the result: the token if every assertion held, otherwise a word and a message.

    The word is "wrong" after an AssertionError, "ended" if the program's process ended, and "error" after any other
    exception. The token is random and known only to the caller and to this process, so test code that exits early
    cannot count as passed.
    """
    channel = Channel(CHANNEL)
    names = Names(channel)
    try:
        names.update({name: Remote(channel, name) for name in spec["builtins"]})
        exec(compile(spec["source"], "tests.py", "exec", dont_inherit=True), names)
        if spec["function"]:
            names["check"](Remote(channel, spec["function"]))
        result = spec["token"]
    except AssertionError as error:
        result = f"wrong {error}"
    except ProgramEnded as error:
        result = f"ended {error}"
    except BaseException as error:
        result = f"error {type(error).__name__}: {error}"
    _write(RESULT, result[:2000])


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(descriptor, data) :]


_ROLES = {"main": _main, "call": _call, "serve": _serve, "test": _test}
