"""Names of the options of the pure functions. This module does not import torch, so that listing the arms is fast."""

from __future__ import annotations

from typing import Literal, get_args

Aggregation = Literal["token_mean", "turn_mean", "agent_balanced"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)
KLEstimator = Literal["k1", "k2", "k3"]
KL_ESTIMATORS: tuple[str, ...] = get_args(KLEstimator)
Normalization = Literal["sum", "token", "word"]
NORMALIZATIONS: tuple[str, ...] = get_args(Normalization)
