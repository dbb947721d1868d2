"""Training runs: configuration, folder, checkpoints, evaluation and tracking."""
