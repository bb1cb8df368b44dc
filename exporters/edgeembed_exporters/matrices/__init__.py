"""Students that multiply matrices, or add up vectors: their tensor file, and their graph."""
