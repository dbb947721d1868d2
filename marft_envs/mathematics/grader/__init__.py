"""From a reply to a verdict: answer extraction, equality in layers, and the symbolic worker."""
