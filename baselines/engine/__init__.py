"""Generation: token ids in, token ids and behaviour log-probabilities out."""
