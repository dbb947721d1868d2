"""Play many episodes together, with one call of the policy for all agents that wait for an action."""

from marft_envs.batch.episode import Counts, Episode, FinalState, Policies, Policy, Reply, Request, Step
from marft_envs.batch.runner import BatchRunner

__all__ = ["BatchRunner", "Counts", "Episode", "FinalState", "Policies", "Policy", "Reply", "Request", "Step"]
