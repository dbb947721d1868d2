"""Self-test of a fork server: a confined child attempts to read, write, connect, fork and send signals."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from marft_envs.sandbox.fork_server import ForkServer, RunLost, encode_spec
from marft_envs.sandbox.memory_files import MemoryFiles, read_file
from marft_envs.sandbox.records import Limits, SandboxUnavailable

_PROBE = Path(__file__).parent / "inside" / "probe.py"
_LIMITS = Limits(cpu_s=2.0, memory_mib=256, output_mib=1)


def check_server(server: ForkServer) -> None:
    """Run the probe program on the server.

    Raises:
        SandboxUnavailable: If an attempt of the probe succeeds, or the probe cannot be run. The message names what a
            program could do.
        RunLost: If the server or the probe was killed.
        OSError: If this process cannot prepare the test, for example because no folder for temporary files is writable.
    """
    with (
        _temporary_folder() as folder,
        socket.socket() as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        MemoryFiles() as files,
    ):
        # The file and the sockets are open to every user: only the sandbox prevents access.
        folder.chmod(0o777)
        secret = folder / "secret"
        secret.write_text("secret")
        secret.chmod(0o666)
        name = f"marft-{secrets.token_hex(8)}"
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(1)
        abstract.bind(f"\0{name}")
        abstract.listen(1)
        spec = {"role": "main", "source": _PROBE.read_text(), "prelude": False}
        stdin = f"{secret}\n{tcp.getsockname()[1]}\n{name}\n"
        stdout, stderr = files.empty(), files.empty()
        server.begin(_LIMITS, [files.sealed(encode_spec(spec)), files.sealed(stdin.encode()), stdout, stderr])
        report = server.wait(_LIMITS)
        output = read_file(stdout, 4096).decode(errors="replace")
        if report.was_killed_by_the_host:
            raise RunLost("the self-test was killed by another process of the host")
        if report.end_reason != "by itself" or report.exit_code != 0:
            trace = read_file(stderr, 500, tail=True).decode(errors="replace")
            raise SandboxUnavailable(
                f"the self-test could not be run ({report.end_reason}, exit code {report.exit_code}): {trace}"
            )
    succeeded = json.loads(output)
    if succeeded:
        raise SandboxUnavailable(f"in the self-test a confined program could: {', '.join(succeeded)}")


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Create a folder and delete it at the end, also after an interrupt at any moment and without a free descriptor."""
    folder = Path(tempfile.gettempdir(), f"marft-sandbox-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        folder.mkdir(0o700)
        yield folder
    finally:
        (folder / "secret").unlink(missing_ok=True)
        try:
            folder.rmdir()
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
