"""Commands for the tests of ``ExternalSandbox``: our runner, and small programs that speak the protocol."""

import sys

RUNNER = [sys.executable, "-m", "marft_envs.sandbox.runner"]
ANSWER = """
def answer(request, **more):
    if request["program"].startswith("raise"):
        more = {"status": "runtime_error"}
    elif request["program"].startswith("print(int"):
        more = {"status": "done", "stdout": "42\\n"}
    print(json.dumps({"isolation": "none at all", **more}), flush=True)
"""
"""Defines ``answer``, which passes the trial of ``ExternalSandbox`` and otherwise replies with its arguments."""
LOOP = ANSWER + "for line in sys.stdin:\n    request = json.loads(line)\n    program = request['program']\n"
"""Reads every request. The caller appends indented code that answers it."""


def command(code):
    """Return the command that runs the code."""
    return [sys.executable, "-c", f"import json, sys, os, time\n{code}"]
