"""Generators of mathematics problems: arithmetic, word problems, the relay, the team report and the curriculum."""
