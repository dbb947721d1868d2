"""Play many episodes together, with one call of the policy for all episodes in which the same agent acts next."""

from marft_envs.batch.episode import Counts, Episode, FinalState, Policies, Policy, Reply, Request, Step
from marft_envs.batch.runner import BatchRunner

__all__ = ["BatchRunner", "Counts", "Episode", "FinalState", "Policies", "Policy", "Reply", "Request", "Step"]
