"""The self-test of a server: a locked child really tries to read, write, connect, fork, signal; nothing may succeed."""

from __future__ import annotations

import json
import secrets
import socket
import tempfile
from pathlib import Path

from marft_envs.sandbox.host import Server, send_spec
from marft_envs.sandbox.memory_files import Files, read
from marft_envs.sandbox.records import Limits, SandboxUnavailable

_PROBE = Path(__file__).parent / "inside" / "probe.py"
_LIMITS = Limits(cpu_s=2.0, memory_mib=256, output_mib=1)


def check_server(server: Server) -> None:
    """Raise SandboxUnavailable that names what a program could do; or that the probe could not be run."""
    with (
        tempfile.TemporaryDirectory(prefix="marft-sandbox-") as folder,
        socket.socket() as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        Files() as files,
    ):
        Path(folder).chmod(0o777)
        secret = Path(folder, "secret")
        secret.write_text("secret")
        secret.chmod(0o666)
        name = f"marft-{secrets.token_hex(8)}"
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(1)
        abstract.bind(f"\0{name}")
        abstract.listen(1)
        spec = {"role": "main", "source": _PROBE.read_text(), "prelude": False}
        given = f"{secret}\n{tcp.getsockname()[1]}\n{name}\n"
        out, err = files.empty(), files.empty()
        server.begin(_LIMITS, [files.sealed(send_spec(spec)), files.sealed(given.encode()), out, err])
        report = server.wait(_LIMITS)
        said = read(out, 4096).decode(errors="replace")
        if report.ended != "by itself" or report.status != 0:
            trace = read(err, 500, tail=True).decode(errors="replace")
            raise SandboxUnavailable(f"the self-test could not be run ({report.ended}, {report.status}): {trace}")
    could = json.loads(said)
    if could:
        raise SandboxUnavailable(f"in the self-test a locked program could: {', '.join(could)}")
