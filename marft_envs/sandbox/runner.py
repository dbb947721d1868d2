"""Run programs in the local sandbox, as requested on standard input: ``python -m marft_envs.sandbox.runner``.

For hosts on which ``LocalSandbox`` is not available (macOS, an old kernel): start it inside a container, in a VM or on
another machine, and pass that command to ``ExternalSandbox``. It serves one request at a time until its input ends. The
module ``protocol`` describes requests and replies.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import IO

from marft_envs.sandbox.local import LocalSandbox
from marft_envs.sandbox.protocol import BadMessage, read_request, reply_of
from marft_envs.sandbox.records import ProgramRun, RunStatus, SandboxUnavailable
from marft_envs.sandbox.server_pool import STRONG


def main(words: Sequence[str] | None = None) -> int:
    """Serve standard input and return the exit code, 0."""
    parser = argparse.ArgumentParser(
        prog="python -m marft_envs.sandbox.runner", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--level", choices=STRONG, help="isolation level (default: the strongest one available)")
    sandbox = LocalSandbox(parser.parse_args(words).level)
    serve(sys.stdin.buffer, sys.stdout.buffer, sandbox)
    sandbox.close()
    return 0


def serve(requests: IO[bytes], replies: IO[bytes], sandbox: LocalSandbox) -> None:
    """Answer each request, one line of JSON, with a reply of one line."""
    for line in requests:
        run, isolation = _run(line, sandbox)
        replies.write(json.dumps(reply_of(run, isolation)).encode() + b"\n")
        replies.flush()


def _run(line: bytes, sandbox: LocalSandbox) -> tuple[ProgramRun, str]:
    try:
        program, test, limits, prelude = read_request(json.loads(line))
        result = sandbox.run(program, [test], limits, prelude=prelude)
    except (BadMessage, ValueError) as error:
        return ProgramRun(RunStatus.FAULT, detail=f"{error}"[:500]), "none"
    except SandboxUnavailable as reason:
        return ProgramRun(RunStatus.FAULT, detail=f"{reason}"[:2000]), "none"
    return result.runs[0], result.isolation


if __name__ == "__main__":
    sys.exit(main())
