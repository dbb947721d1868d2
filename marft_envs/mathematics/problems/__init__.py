"""Generators of mathematics problems."""
