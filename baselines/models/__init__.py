"""Base models: the shipped tiny ones, small real ones from wheels, local folders and models of the hub."""
