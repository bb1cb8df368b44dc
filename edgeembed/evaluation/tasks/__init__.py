"""Evaluation tasks: one kind a file, registered by name in `edgeembed.evaluation.task.TASKS`."""
