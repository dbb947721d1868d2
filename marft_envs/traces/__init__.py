"""Traces: record episodes as JSON lines, read them, replay them, fork them, and grade them again.

    from marft_envs.traces import Recorder, fork, read, replay

    with Recorder("run.jsonl", env) as recorder:
        for episode in runner.stream(policy, episodes=1000):
            recorder.record(episode)
    trace = read("run.jsonl")
    replay(env, trace.episodes[0])           # raises ReplayError if anything differs
    print(*regrade(env, trace.episodes).lines(), sep="\n")  # which verdicts would the present grader change?
    fork(env, trace.episodes[0], turn=1)     # env is now after the first turn of the episode

The schema is in docs/traces.md.
"""

from marft_envs.traces.recorder import Recorder, Trace, read
from marft_envs.traces.regrade import Regrade, regrade, with_policy
from marft_envs.traces.replay import ReplayError, fork, replay
from marft_envs.traces.rows import SCHEMA, TraceError, digest

__all__ = [
    "SCHEMA", "Recorder", "Regrade", "ReplayError", "Trace", "TraceError", "digest", "fork", "read", "regrade",
    "replay", "with_policy",
]  # fmt: skip
