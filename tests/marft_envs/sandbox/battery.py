# ruff: noqa: PTH115, PTH208
"""Run the attacks in the sandbox under test and print the result of each as JSON.

    unshare -m --propagation private python battery.py LEVEL

LEVEL is an isolation level, or "strongest" for the strongest one available. The tests start the script like this. It
refuses to run in the mount namespace of process 1.
"""

import functools
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
TIME_LIMITS = Limits(cpu_s=0.2, memory_mib=256, output_mib=4)  # these programs run until a time limit stops them


class Host:
    """Targets of the attacks: a file, a folder, listening sockets, a process. ``harm`` names those reached."""

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
        self.before = self.state()

    def stdin(self):
        values = (self.canary, self.folder, self.port, self.unix, self.abstract, self.victim.pid, os.getpid())
        return "".join(f"{value}\n" for value in values)

    def state(self):
        status = self.canary.stat()
        limits = Path(f"/proc/{self.victim.pid}/limits").read_text()
        return sorted(os.listdir(self.folder)), self.canary.read_text(), status.st_mode, status.st_mtime, limits

    def harm(self):
        found = [] if self.state() == self.before else ["files"]
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
    """Return the ids of all processes below this one."""
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
    if os.readlink("/proc/self/ns/mnt") == link_or_none("/proc/1/ns/mnt"):
        sys.exit("battery.py: start it with unshare -m --propagation private")
    warnings.simplefilter("ignore")
    os.environ["MARFT_CANARY"] = "canary"
    sandbox = LocalSandbox(None if level == "strongest" else level)
    sandbox.run("print(1)", [Stdin("")])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder)
        for group, attacks in GROUPS.items():
            # Programs that reach a time limit mostly wait, so several run at once.
            limits, at_once = (TIME_LIMITS, 4) if group == "time" else (LIMITS, 1)
            run = functools.partial(timed, sandbox, host, limits)
            with ThreadPoolExecutor(at_once) as threads:
                runs = list(threads.map(run, attacks.values()))
            rows += [row(f"{group}/{name}", host, *run) for name, run in zip(attacks, runs, strict=True)]
        rows += [row(f"returned/{name}", host, *returned(sandbox, program)) for name, program in RETURNED.items()]
        # The second one has a server of its own, whose libraries must not start threads before it is confined.
        programs = ("print(6 * 7)", "import numpy\nprint(6 * 7)")
        works = all(sandbox.run(program, [Stdin("")]).runs[0].stdout == "42\n" for program in programs)
        sandbox.close()
        left = descendants() - {host.victim.pid}
        host.victim.kill()
        host.victim.wait()
    print(json.dumps({"level": sandbox.level, "still_works": works, "left": sorted(left), "rows": rows}))


def timed(sandbox, host, limits, program):
    started = time.monotonic()
    run = sandbox.run(HEAD + program, [Stdin(host.stdin())], limits).runs[0]
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


def link_or_none(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


if __name__ == "__main__":
    main(sys.argv[1])
