"""Advantages, losses and ratios: pure functions of tensors."""
