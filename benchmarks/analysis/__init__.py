"""From rows to figures: runs, pairs, intervals; numpy and scipy only."""
