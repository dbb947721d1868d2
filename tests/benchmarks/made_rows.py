"""Rows of small comparisons whose figures are known."""

import json

ITEMS = 10
SESSION = {"command": "python compare.py", "sources": "0123", "commit": None, "versions": {}, "hardware": "x",
           "started": "2026-01-01"}  # fmt: skip
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
    row = {"kind": "eval", "arm": arm, "task": task, "seed": seed, "learning_rate": None, "update": update,
           "mode": mode, "accuracy": solved / items, "n": items, "answers": items, "no_answer": 1, "not_graded": 2,
           "item_index": list(range(items)), "item_score": scores, "messages": {}}  # fmt: skip
    return row | changes


def train_row(arm, seed, update, task="relay", **changes):
    agent = {"clip_fraction": update / 100, "kl_reference": 0.5, "entropy": 1.0 - update / 20, "mean_length": 2.5}
    row = {"kind": "train", "arm": arm, "task": task, "seed": seed, "learning_rate": None, "update": update,
           "episodes": 64 * update, "not_graded": 0, "truncated": 0,
           "reward": 0.5, "prompt_tokens": 600 * update, "generated_tokens": (300 + 3 * (arm == "marft")) * update,
           "trained_tokens": 900 * update, "wall_s": 0.8, "seconds": {"rollout": 0.4, "actor": 0.2},
           "agents": {"reasoner_0": agent, "actor_0": agent | ({"factor_ess": 0.9} if arm == "marft" else {})},
           "messages": {}, "explained_variance": None if update == 1 else 0.3}  # fmt: skip
    return row | changes


def make_rows(solved=SOLVED, task="relay", modes=("sampled", "greedy"), **config):
    """Return a finished comparison; greedy decoding solves one more item than sampling."""
    head = {"kind": "comparison", "config": {"updates": 10, **config}, "config_hash": "abc", "data": {}}
    rows = [head | {"sessions": [SESSION]}]
    for (arm, seed), counts in solved.items():
        for update, count in zip((0, 5, 10), counts, strict=True):
            rows += [eval_row(arm, seed, update, count + (mode == "greedy"), task, mode) for mode in modes]
        rows += [train_row(arm, seed, update, task) for update in range(1, 11)]
    return rows


def change_rows(rows, kind, change):
    """Apply ``change`` to every row of a kind, and return the rows."""
    for row in rows:
        if row["kind"] == kind:
            change(row)
    return rows


def write_rows(folder, rows, tail=""):
    """Write rows.jsonl into a folder and return the folder; ``tail`` follows the last row."""
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return folder


def sampled(summary, task="relay"):
    """Return the figures of sampled decoding on a task."""
    return summary["tasks"][task]["modes"]["sampled"]
