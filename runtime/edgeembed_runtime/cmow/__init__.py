"""CMOW, CBOW and hybrid models: embedding tables, matrix products, and their model file."""
