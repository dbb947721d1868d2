"""Generation engines: prompts as token ids, and actions as token ids with their behaviour log-probabilities."""
