"""Rows of kind "episodes" and "run" for reports: two agents, one of which reads the other's message."""

AGENTS = ("reasoner_0", "actor_0")


def run_row(arm, seed, task="relay"):
    model = {"name": "tiny", "revision": "v1", "sha256": "0" * 64, "device": "cpu", "dtype": "float32",
             "quantization": "none"}  # fmt: skip
    return {"kind": "run", "arm": arm, "task": task, "seed": seed, "learning_rate": None, "config_hash": "x",
            "models": {"tiny": model}, "pass_gib": 2.0, "versions": {}, "hardware": "2 cores", "threads": 1,
            "started": "2026-01-01 00:00:00"}  # fmt: skip


def header(**notes):
    team = {"roles": {agent: {} for agent in AGENTS}, "dependency": {"edges": [list(AGENTS)]}, "decided_by": None,
            "answering": ["actor_0"], "stop": None}  # fmt: skip
    return {"kind": "header", "schema": "marft-trace/1", "environment": "math_v0", "arguments": {}, "notes": notes,
            "team": team, "game": {"rounds": 1}, "versions": {}}  # fmt: skip


def episode(index, right, words="so the sum is", trained=True):
    turns = []
    for k, agent in enumerate(AGENTS):
        text = f"{words} {index if right else index + 1}"
        turns.append({
            "round": 0, "agent": agent, "kind": "say", "text": text,
            "observation": {"messages": [{"role": "user", "content": f"Add {index} and 0."}], "reply_prefix": ""},
            "tokens": text.split(" "), "logprobs": [-0.1 * (i + 1) for i in range(len(text.split(" ")))],
            **({"value": 0.25 + k / 4, "advantage": float(right) - 0.25 - k / 4} if trained else {}),
        })  # fmt: skip
    outcome = {"outcome": "correct" if right else "wrong", "score": float(right), "isolation": "", "reason": ""}
    return {"kind": "episode", "number": index, "index": index, "seed": 0, "group": 0, "member": 0,
            "prompt": f"Add {index} and 0.", "private": {}, "turns": turns, "verdicts": {"actor_0": outcome},
            "score": float(right), "rewards": dict.fromkeys(AGENTS, float(right)), "terminated": True, "truncated": "",
            "not_graded": "", "flags": {}, "gold": str(index)}  # fmt: skip


def episodes_row(arm, seed, update, task="relay", mode="sampled", count=4, **changes):
    """A sample of an evaluation: after training (update > 0) every second problem is solved, before none."""
    made = [episode(i, right=update > 0 and i % 2 == 0, trained=update > 0, **changes) for i in range(count)]
    about = {"update": update, "mode": mode, "dataset": "", "items": 4 * count}
    return {"kind": "episodes", "arm": arm, "task": task, "seed": seed, "learning_rate": None, "update": update,
            "mode": mode, "header": header(**about), "episodes": made}  # fmt: skip
