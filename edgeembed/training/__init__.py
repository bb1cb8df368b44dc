"""Training of students with the Hugging Face trainer: data, samplers, checkpoints, one stage."""
