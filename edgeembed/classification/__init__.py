"""Text classifiers: an encoder with a classification head, trained on labeled texts or pairs of texts."""
