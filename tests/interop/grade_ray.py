"""Run both graders in Ray actors (plain, with threads, asynchronous). Print a report as one line of JSON.

Needs a virtual environment with ray. Ray runs its workers with niceness 15 by default, which leaves them almost no CPU
time on a busy machine; RAY_worker_niceness sets another value.
"""

import json
import os
import time
from pathlib import Path

import ray

from marft_envs.coding import grade as grade_program
from marft_envs.mathematics import fault_counts
from marft_envs.mathematics import grade as grade_reply

REPLIES = [
    (r"\boxed{\frac{2}{4}}", r"\frac12", 1.0),
    (r"\boxed{\sec^2(y)}", r"\tan^2(y)+1", 1.0),
    (r"\boxed{\int_0^1 e^{e^{e^{x^{x^{x}}}}} dx}", "42", 0.0),
    (r"\boxed{\sum_{k=1}^{\infty} \frac{\sin(k^{2})}{k^{k}}}", "42", 0.0),
]
PROGRAMS = [
    ("print(int(input()) + 1)", "stdin", [{"input": "41", "output": "42"}], 1.0),
    ("def f(x): return x", "call", [{"fn": "f", "args": [1], "expected": 2}], 0.0),
    ("def f(x): return 2 * x", "assert", [{"test_code": "assert f(2) == 4"}], 1.0),
    ("while True: pass", "stdin", [{"input": "", "output": ""}], 0.0),
]


def wrong_verdicts():
    """Return the verdicts that differ from the expected ones, and the faults of the symbolic worker."""
    wrong = []
    for reply, gold, score in REPLIES:
        verdict = grade_reply(reply, gold)
        if not verdict.graded or verdict.score != score:
            wrong.append(str(verdict))
    for program, kind, tests, score in PROGRAMS:
        verdict = grade_program(program, tests, kind)
        if not verdict.graded or verdict.score != score or not verdict.isolation:
            wrong.append(str(verdict))
    return wrong + [str(fault) for fault in fault_counts().items()]


@ray.remote(num_cpus=0)
class Plain:
    def work(self):
        return wrong_verdicts()

    def pid(self):
        return os.getpid()


@ray.remote(num_cpus=0)
class Asynchronous:
    async def work(self):
        return wrong_verdicts()


def descendants(pid):
    """Return the ids of all child processes of a process and of their children, from /proc."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] + [below for child in children for below in descendants(child)]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - the name that Ray uses
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
plain, threaded, asynchronous = Plain.remote(), Plain.options(max_concurrency=4).remote(), Asynchronous.remote()
jobs = {"plain": plain.work.remote(), "async": asynchronous.work.remote()}
jobs |= {f"threads {n}": threaded.work.remote() for n in range(4)}
wrong = {name: ray.get(job) for name, job in jobs.items()}
below = descendants(ray.get(plain.pid.remote()))
ray.kill(plain)
until = time.monotonic() + 10
while any(map(alive, below)) and time.monotonic() < until:
    time.sleep(0.1)
left = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in below if alive(pid)]
print(json.dumps({"version": ray.__version__, "wrong": wrong, "servers": len(below), "left": left}))
