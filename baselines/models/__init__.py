"""Models by name: the shipped tiny ones, SmolLM2, local folders and hub names."""
