"""Many episodes played together: one call of the policy for all agents that wait for it."""

from marft_envs.batch.episode import Counts, Episode, Policies, Policy, Reply, Request, Step
from marft_envs.batch.runner import BatchRunner

__all__ = ["BatchRunner", "Counts", "Episode", "Policies", "Policy", "Reply", "Request", "Step"]
