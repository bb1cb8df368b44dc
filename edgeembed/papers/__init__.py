"""The five published systems, each a plugin of its own."""
