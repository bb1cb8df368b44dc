"""Turn a student, or any sentence-transformer, into a bundle."""
