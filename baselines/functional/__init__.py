"""Advantages, losses and probability ratios as pure functions of tensors (equations: docs/reference/algorithms.md)."""
