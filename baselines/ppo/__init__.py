"""The PPO update of every arm, in numbered steps."""
