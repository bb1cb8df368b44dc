"""Ways to run a bundle."""
