"""Traces: episodes as JSONL, to keep, to read, to replay and to fork. See docs/traces.md."""

from marft_envs.traces.recorder import Recorder, Trace, read
from marft_envs.traces.replay import ReplayError, fork, replay
from marft_envs.traces.rows import SCHEMA, TraceError, digest

__all__ = ["SCHEMA", "Recorder", "ReplayError", "Trace", "TraceError", "digest", "fork", "read", "replay"]
