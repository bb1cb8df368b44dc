"""Student models: architectures, initialization from a teacher, assembly from a recipe, model card."""
