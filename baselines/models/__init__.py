"""Base models: the shipped tiny ones, SmolLM2, local folders and models of the hub."""
