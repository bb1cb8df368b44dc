"""Quality, one task a file."""
