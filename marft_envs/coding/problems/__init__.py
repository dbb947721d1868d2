"""Generators of programming problems."""
