"""The files of a bundle: model, tokenizer, manifest, model card, golden vectors and Hugging Face configuration."""
