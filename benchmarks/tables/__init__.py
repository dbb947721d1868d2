"""From figures to text and pictures."""
