"""Glossary of the report: the legend of the text, and what each heading and each arm means."""

from __future__ import annotations

from benchmarks.analysis.intervals import FEW_SEEDS
from benchmarks.analysis.summary import COLLAPSE_FALL

LEGEND = {
    "before, after": "accuracy before training and after the last update, on held-out problems",
    "IQM": "interquartile mean over seeds: the middle half of them",
    "MDE": "minimum detectable effect: smallest true difference, in points, that a paired t-test with this spread "
           "and number of seeds finds with power 0.8 at level 0.05",
    "[no interval]": f"fewer than {FEW_SEEDS} seeds, or the same value in every seed: no p, no MDE",
    "p": "two-sided p value, by the method of the interval",
    "p (Holm)": "p after Holm's correction over the tasks, for each pair of arms and decoding mode",
    "inconclusive": "the 95 % interval of the difference contains 0 or does not exist",
    "identical": "the same score on every item of every seed: there is no difference to test, so no p and no MDE",
    "P(better)": "probability that a run of the first arm ends above a run of the second; a tie counts half",
    "items +/-/all": "items of all seeds: first arm scores higher / second arm scores higher / all",
    "area": "area under the learning curve divided by the updates: mean accuracy during training",
    "level": "half-way from the mean start to the best mean end; median updates to it (seeds that reach it)",
    "best by training": "accuracy at the evaluation with the highest training reward before it",
    "fall": "points below the run's best accuracy so far: largest fall, mean and max over seeds; max at the end",
    "collapsed": f"runs that end more than {100 * COLLAPSE_FALL:.0f} points below their own best accuracy",
    "NO_ANSWER": "share of graded answers; NOT_GRADED: share of all items, a fault of the grader, in no accuracy",
    "drop": "drop of the score when a speaker's messages are shuffled between episodes; 0: nobody uses them",
    "expl. var.": "share of the returns' variance that the critic explains; in brackets its ratio to what the "
                  "label of Task.progress alone explains (may exceed 100 % if the critic reads the problem)",
}  # fmt: skip
"""Words of the text report, in the order of its legend."""

HEADINGS = {
    "mode": "how replies are chosen: sampled (drawn from the model's distribution, as in training) or greedy (the most "
            "likely token each time)",
    "arm": "the algorithm that trained the team",
    "task": "the problems that the team is trained and tested on",
    "pair": "two arms; the difference is the first minus the second",
    "diff.": "difference of the final accuracies in percentage points, first arm minus second",
    "95 % interval": "the range of true differences that agrees with these results, at 95 % confidence",
    "verdict": "the arm whose 95 % interval is above 0; inconclusive if the interval contains 0",
    "seeds": "number of training runs that differ only in their random numbers",
    "before": "accuracy on held-out problems before training",
    "after": "accuracy on held-out problems after the last update",
    "IQM after": LEGEND["IQM"],
    "MDE": LEGEND["MDE"],
    "p": LEGEND["p"],
    "p (Holm)": LEGEND["p (Holm)"],
    "P(better)": LEGEND["P(better)"],
    "items +/-/all": LEGEND["items +/-/all"],
    "area under curve": LEGEND["area"],
    "updates to level": LEGEND["level"],
    "best by training": LEGEND["best by training"],
    "fall mean/max/end": LEGEND["fall"],
    "collapsed": LEGEND["collapsed"],
    "NO_ANSWER": "share of graded answers in which the grader found no answer",
    "NOT_GRADED": "share of items without a verdict, because the grader failed; they are in no accuracy",
    "NOT_GRADED in training": "share of training episodes without a verdict; nothing is learned from them",
    "items": "graded held-out problems of all seeds",
    "drop before": LEGEND["drop"],
    "drop after": LEGEND["drop"],
    "speaker": "the agent whose messages are shuffled",
    "tokens per reply": "mean number of tokens of an agent's reply",
    "empty": "share of replies that are only white space",
    "repeated": "share of replies that equal an earlier reply of the same episode",
    "distinct": "number of different replies divided by the number of replies",
    "episodes": "training episodes of one run",
    "prompt tokens": "tokens that the models read in training",
    "generated tokens": "tokens that the models wrote in training",
    "trained tokens": "tokens in backward passes",
    "optimiser steps": "steps of the policies' optimisers",
    "wall s": "seconds of all updates of one run",
    "hours": "hours of all updates, all runs of the arm together",
    "device": "device and number type of the base model",
    "hardware": "the machine",
    "rate": "learning rate",
    "reward": "mean training reward over the last quarter of updates, in %",
    "selected": "the learning rate that the other tables use",
    "clipped": "share of actions whose probability changed more than the clip range in an update",
    "KL pi_0": "distance (KL divergence) of the policy from the starting policy",
    "KL behav.": "distance (KL divergence) of the policy after an update from the one that sampled its batch",
    "entropy": "entropy of the policy: 0 if it always says the same",
    "tokens": "mean number of tokens of a reply in training",
    "gradient": "norm of the gradient",
    "truncated": "share of replies that the length limit ended",
    "skipped": "share of updates in which the agent was not trained",
    "ESS": "effective sample size of the compounded factor: 1 if all episodes count equally",
    "clamped": "share of episodes whose compounded factor was clamped",
    "expl. var.": LEGEND["expl. var."],
    "lambda_in": "GAE's lambda inside a round, after the gate",
    "bad updates": "updates with a loss or a gradient that is not finite",
    "skipped batches": "batches without a difference in reward, from which nothing is learned",
    "one update": "seconds of one update",
    "first": "accuracy of the first arm at the budget",
    "second": "accuracy of the second arm at the budget",
}  # fmt: skip
"""Heading of a table -> its meaning."""

ARMS = {
    "untrained": "the team without training",
    "single": "one agent with the token budget of the team",
    "ippo": "independent PPO: each agent has a critic of its own",
    "mappo": "IPPO with one central critic for all agents",
    "mappo_chained": "MAPPO whose bootstrap is the value of the next agent's turn",
    "marft_nofactor": "chained MAPPO whose agents are updated one after another",
    "marft": "sequential multi-agent PPO: an agent's advantages are weighted by the changes of the agents before it",
    "marft_token": "MARFT in which every token is a decision",
    "magrpo": "no critic: several episodes on each problem are compared",
}
"""Arm -> what it is."""
