"""Tasks of studies that are no part of the product."""
