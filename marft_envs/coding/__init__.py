"""Programming tasks: so far their teams; the environment and its sandbox are not here yet."""
