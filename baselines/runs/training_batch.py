"""The batch that a learner gets from the episodes of a rollout or of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from baselines.ppo.learner import Learner
from baselines.runs.reply_scores import progress_labels, reply_scores
from baselines.runs.team_policy import TeamSampler
from baselines.trajectory import Batch, make_batch
from marft_envs.batch import Episode
from marft_envs.task import Task

_PAD = 0  # padding behind masks; any id that every vocabulary has


def training_batch(episodes: Sequence[Episode], sampler: TeamSampler, task: Task, learner: Learner) -> Batch | None:
    """Return the batch to learn from, on the policies' device; None if no episode is left.

    If every reply is scored (MAPoRL), an episode with a reply that the grader failed on is left out.

    Args:
        episodes: Graded episodes, and truncated ones if a critic can estimate their returns.
        sampler: The sampler that played them.
        task: The task of the episodes.
        learner: The learner.
    """
    config, policy = learner.config, learner.policy
    scores = None
    if config.reward == "maporl":
        scored = [(e, found) for e in episodes if (found := reply_scores(task, e)) is not None]
        episodes, scores = [e for e, _ in scored], [found for _, found in scored]
    if not episodes:
        return None
    labels = [progress_labels(task, e) for e in episodes]
    known = [found for found in labels if found is not None]
    batch = make_batch(
        episodes,
        policy.agents,
        _PAD,
        labels=known if len(known) == len(episodes) else None,
        prompt=sampler.prompt,
        reply_scores=scores,
    )
    if config.critic_private:
        return batch.to(policy.device)
    # the policies read the private parts of the problem; a public critic reads the same turns without them
    episodes = [sampler.public(e) for e in episodes]
    public = make_batch(episodes, policy.agents, _PAD, prompt=sampler.public_prompt)
    return replace(batch, critic_turns=public.turns, views=public.views).to(policy.device)
