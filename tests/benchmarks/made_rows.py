"""Rows of small comparisons whose figures are known."""

ITEMS = 10
SESSION = {"sources": "0123", "commit": None, "versions": {}, "hardware": "x", "started": "2026-01-01"}
# Items solved of 10, sampled, by arm and seed, at updates 0, 5, 10.
SOLVED = {
    ("ippo", 0): (3, 6, 7),
    ("ippo", 1): (4, 6, 8),
    ("ippo", 2): (2, 5, 6),
    ("marft", 0): (3, 8, 9),
    ("marft", 1): (4, 9, 6),  # falls by 3 items from its best
    ("marft", 2): (2, 5, 9),
}


def eval_row(arm, seed, update, solved, task="relay", mode="sampled", items=ITEMS, **changes):
    scores = [1.0] * solved + [0.0] * (items - solved)
    row = {"kind": "eval", "arm": arm, "task": task, "seed": seed, "update": update, "mode": mode,
           "accuracy": solved / items, "n": items, "no_answer": 1, "not_graded": 2,
           "item_index": list(range(items)), "item_score": scores}  # fmt: skip
    return row | changes


def train_row(arm, seed, update, task="relay", **changes):
    agent = {"clip_fraction": update / 100, "kl_reference": 0.5, "entropy": 1.0 - update / 20, "mean_length": 2.5}
    row = {"kind": "train", "arm": arm, "task": task, "seed": seed, "update": update, "episodes": 64 * update,
           "reward": 0.5, "prompt_tokens": 600 * update, "generated_tokens": (300 + 3 * (arm == "marft")) * update,
           "trained_tokens": 900 * update, "wall_s": 0.8, "seconds": {"rollout": 0.4, "actor": 0.2},
           "agents": {"reasoner_0": agent, "actor_0": agent | ({"factor_ess": 0.9} if arm == "marft" else {})},
           "explained_variance": None if update == 1 else 0.3}  # fmt: skip
    return row | changes


def make_rows(solved=SOLVED, task="relay", modes=("sampled", "greedy"), **config):
    """A finished comparison: greedy solves one more item than sampled."""
    rows = [{"kind": "run", "config": {"updates": 10, **config}, "config_hash": "abc", "sessions": [SESSION]}]
    for (arm, seed), counts in solved.items():
        for update, count in zip((0, 5, 10), counts, strict=True):
            rows += [eval_row(arm, seed, update, count + (mode == "greedy"), task, mode) for mode in modes]
        rows += [train_row(arm, seed, update, task) for update in range(1, 11)]
    return rows


def sampled(summary, task="relay"):
    return summary["tasks"][task]["modes"]["sampled"]
