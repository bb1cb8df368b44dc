"""Files: read with care, written whole or not at all."""
