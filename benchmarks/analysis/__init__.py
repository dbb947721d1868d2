"""Statistics of a comparison, from its rows. Needs numpy and scipy only."""
