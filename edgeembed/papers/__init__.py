"""Five published systems, each a plugin: what only this paper needs, its recipes, and what it claims."""
