"""Model cards: one template a kind of model, and the front matter that the Hugging Face Hub reads."""
