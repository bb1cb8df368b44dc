"""Student architectures, one a file."""
