"""Classifiers on top of an encoder: what they read, what they are made of, how they learn, how they are measured."""

from edgeembed.tasks.examples import Task, read_task
from edgeembed.tasks.model import TaskModel
from edgeembed.tasks.settings import TaskSettings
from edgeembed.tasks.training import TaskReport, finetune

__all__ = ["Task", "TaskModel", "TaskReport", "TaskSettings", "finetune", "read_task"]
