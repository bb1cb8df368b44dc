"""Documents that can be searched."""
