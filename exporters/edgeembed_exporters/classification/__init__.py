"""Export of text classifiers: an encoder and a classification head in one graph."""
