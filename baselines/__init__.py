"""Learners for teams of language models: MARFT, matched Independent PPO, and the rungs between them."""

from importlib.util import find_spec

_missing = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
if _missing:
    raise ImportError(f"baselines needs {', '.join(_missing)}: pip install marft-envs[train]")

from baselines.ladder import ARMS, LearnerConfig, ippo, marft  # noqa: E402

__all__ = ["ARMS", "LearnerConfig", "ippo", "marft"]
