"""Report of a comparison as text and figures, from its summary."""
