"""A plugin of edgeembed: a loss, a kind of student, an evaluation task and a recipe."""
