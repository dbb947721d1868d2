# ruff: noqa: PTH115, PTH208
"""Runs the attacks in the sandbox under test and prints, as JSON, what each did.

    unshare -m --propagation private python battery.py LEVEL      ("strongest" for the one that the host allows)

The tests start it like this. It refuses to run where its mount namespace is the one of process 1.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks import GROUPS, HEAD, RETURNED

from marft_envs.coding import run_tests
from marft_envs.sandbox import Limits, LocalSandbox, Stdin

LIMITS = Limits(cpu_s=0.5, memory_mib=256, output_mib=4)


class Host:
    """What an attack could touch: a file, a folder, listeners, a process. ``harm`` says what was touched."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.chmod(0o777)
        self.canary = self.folder / "canary"
        self.canary.write_text("canary")
        self.canary.chmod(0o666)
        self.listeners = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        self.listeners[0].bind(("127.0.0.1", 0))
        self.port = self.listeners[0].getsockname()[1]
        self.listeners[1].bind(("127.0.0.1", self.port))
        self.unix = self.folder / "socket"
        self.abstract = f"marft-battery-{os.getpid()}"
        for address in (str(self.unix), f"\0{self.abstract}"):
            self.listeners.append(socket.socket(socket.AF_UNIX))
            self.listeners[-1].bind(address)
        self.unix.chmod(0o777)
        for listener in self.listeners:
            listener.setblocking(False)
            if listener.type == socket.SOCK_STREAM:
                listener.listen()
        self.victim = subprocess.Popen(["sleep", "600"])
        while b"sleep" not in Path(f"/proc/{self.victim.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        self.before = self.look()

    def given(self):
        values = (self.canary, self.folder, self.port, self.unix, self.abstract, self.victim.pid, os.getpid())
        return "".join(f"{value}\n" for value in values)

    def look(self):
        status = self.canary.stat()
        limits = Path(f"/proc/{self.victim.pid}/limits").read_text()
        return sorted(os.listdir(self.folder)), self.canary.read_text(), status.st_mode, status.st_mtime, limits

    def harm(self):
        found = [] if self.look() == self.before else ["files"]
        if self.victim.poll() is not None:
            found.append("the victim is dead")
        for listener in self.listeners:
            try:
                listener.accept() if listener.type == socket.SOCK_STREAM else listener.recv(9)
                found.append(f"reached {listener.getsockname()}")
            except BlockingIOError:
                continue
        return found


def descendants():
    """All processes below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return mine - {os.getpid()}


def main(level):
    if os.readlink("/proc/self/ns/mnt") == own_or_none("/proc/1/ns/mnt"):
        sys.exit("battery.py: start it with unshare -m --propagation private")
    warnings.simplefilter("ignore")
    os.environ["MARFT_CANARY"] = "canary"
    sandbox = LocalSandbox(None if level == "strongest" else level)
    sandbox.run("print(1)", [Stdin("")])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder)
        for group, attacks in GROUPS.items():
            side_by_side = 4 if group == "time" else 1  # these wait most of the time
            with ThreadPoolExecutor(side_by_side) as threads:
                runs = list(threads.map(lambda program: timed(sandbox, host, HEAD + program), attacks.values()))
            rows += [row(f"{group}/{name}", host, *run) for name, run in zip(attacks, runs, strict=True)]
        rows += [row(f"returned/{name}", host, *returned(sandbox, program)) for name, program in RETURNED.items()]
        works = sandbox.run("print(6 * 7)", [Stdin("")]).runs[0].stdout == "42\n"
        sandbox.close()
        left = descendants() - {host.victim.pid}
        host.victim.kill()
        host.victim.wait()
    print(json.dumps({"level": sandbox.level, "still_works": works, "left": sorted(left), "rows": rows}))


def timed(sandbox, host, program):
    started = time.monotonic()
    run = sandbox.run(program, [Stdin(host.given())], LIMITS).runs[0]
    escaped = [line for line in run.stdout.splitlines() if line.startswith("ESCAPED")][:3]
    return run.status.value, run.detail, escaped, time.monotonic() - started, len(run.stdout)


def returned(sandbox, program):
    started = time.monotonic()
    report = run_tests(program, [{"fn": "f", "args": [], "expected": 41}], "call", limits=LIMITS, sandbox=sandbox)
    result = report.results[0]
    return result.outcome.value, result.detail, ["passed"] * report.passed, time.monotonic() - started, 0


def row(attack, host, status, detail, escaped, seconds, stdout_bytes):
    names = {"attack": attack, "status": status, "detail": detail, "escaped": escaped, "harm": host.harm()}
    return {**names, "seconds": seconds, "stdout_bytes": stdout_bytes}


def own_or_none(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


if __name__ == "__main__":
    main(sys.argv[1])
