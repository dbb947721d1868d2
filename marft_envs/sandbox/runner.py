"""Our own sandbox as a runner: ``python -m marft_envs.sandbox.runner``, to be started where programs may run.

For hosts whose own walls do not hold (macOS, an old kernel): start it inside a container, on another machine or in a
VM, and give the command to ``ExternalSandbox``; the protocol is on the page of ``protocol``. It serves requests from
standard input until that ends, one at a time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import IO

from marft_envs.sandbox.local import LocalSandbox
from marft_envs.sandbox.pool import STRONG
from marft_envs.sandbox.protocol import BadMessage, read_request, reply_of
from marft_envs.sandbox.records import Ending, Run, SandboxUnavailable


def main(words: Sequence[str] | None = None) -> int:
    """0 at the end of the input."""
    parser = argparse.ArgumentParser(
        prog="python -m marft_envs.sandbox.runner", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--level", choices=STRONG, help="default: the strongest that holds")
    sandbox = LocalSandbox(parser.parse_args(words).level)
    serve(sys.stdin.buffer, sys.stdout.buffer, sandbox)
    sandbox.close()
    return 0


def serve(requests: IO[bytes], replies: IO[bytes], sandbox: LocalSandbox) -> None:
    """Answer each line with a line."""
    for line in requests:
        run, isolation = _run(line, sandbox)
        replies.write(json.dumps(reply_of(run, isolation)).encode() + b"\n")
        replies.flush()


def _run(line: bytes, sandbox: LocalSandbox) -> tuple[Run, str]:
    try:
        program, test, limits, prelude = read_request(json.loads(line))
        result = sandbox.run(program, [test], limits, prelude=prelude)
    except (BadMessage, ValueError) as error:
        return Run(Ending.FAULT, detail=f"{error}"[:500]), "none"
    except SandboxUnavailable as reason:
        return Run(Ending.FAULT, detail=f"{reason}"[:2000]), "none"
    return result.runs[0], result.isolation


if __name__ == "__main__":
    sys.exit(main())
