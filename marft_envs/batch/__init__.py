"""Play many episodes together, with one call of the policy for all agents that may act at the same time."""

from marft_envs.batch.batch_runner import BatchRunner
from marft_envs.batch.episode import Counts, Episode, FinalState, Policies, Policy, PolicyFault, Reply, Request, Step

__all__ = [
    "BatchRunner", "Counts", "Episode", "FinalState", "Policies", "Policy", "PolicyFault", "Reply", "Request", "Step",
]  # fmt: skip
