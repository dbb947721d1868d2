"""The four roles of a confined child process.

| role | runs | descriptor 3 | descriptor 4 |
|---|---|---|---|
| main | the program as ``__main__`` | | |
| call | the program, then one function of it | output file for the returned value | |
| serve | the program, then the calls that a tester requests | socket to the tester | |
| test | the test code of a data set, never the program | socket to the program | output file for the result |
"""

from __future__ import annotations

import sys
from typing import Any

from . import linked_nodes, process_end, program, values
from .peer import Channel, Peer
from .tester import run_tests, write_all

CHANNEL, RESULT = 3, 4


def run(spec: dict[str, Any]) -> None:
    """Run the role that the spec names, then exit the process."""
    sys.set_int_max_str_digits(0)  # as contest judges do; the time limit bounds the conversion
    role = _ROLES[spec["role"]]
    process_end.run_and_exit(lambda: role(spec))


def _main(spec: dict[str, Any]) -> None:
    if spec.get("crlf"):
        program.strip_carriage_returns()
    program.execute(spec["source"], program.new_module("__main__", spec["source"], spec["prelude"]))


def _call(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["source"], spec["prelude"])
    if spec["prelude"]:
        module.__dict__.update(ListNode=linked_nodes.ListNode, TreeNode=linked_nodes.TreeNode)
    program.execute(spec["source"], module)
    function = program.find_function(module, spec["function"])
    value = linked_nodes.call(function, values.loads(spec["arguments"]), module.__dict__)
    write_all(CHANNEL, values.dumps(value))


def _serve(spec: dict[str, Any]) -> None:
    module = program.new_module("solution", spec["source"], spec["prelude"])
    program.execute(spec["source"], module)
    Peer(Channel(CHANNEL), lambda name: program.find_function(module, name)).serve()


def _test(spec: dict[str, Any]) -> None:
    write_all(RESULT, run_tests(spec, Channel(CHANNEL))[:2000])


_ROLES = {"main": _main, "call": _call, "serve": _serve, "test": _test}
