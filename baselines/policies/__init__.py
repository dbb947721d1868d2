"""Policies on frozen base models: LoRA adapters or full copies."""
