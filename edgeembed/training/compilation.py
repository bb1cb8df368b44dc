"""Compile a student's transformer for the time of its training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from edgeembed_runtime.errors import InputError, one_line
from sentence_transformers import SentenceTransformer
from torch._dynamo.exc import BackendCompilerFailed


@contextmanager
def compiled_transformer(student: SentenceTransformer) -> Iterator[None]:
    """Let torch.compile run a student's transformer within the block; weights and their names stay as they are.

    Args:
        student: The student, whose first module is a transformer.

    Raises:
        InputError: If torch cannot compile on this machine.
    """
    encoder = student[0].auto_model
    # On the instance: an own module around it would change the names of the weights in checkpoints.
    encoder.forward = torch.compile(encoder.forward, dynamic=True)
    try:
        yield
    except BackendCompilerFailed as error:
        raise InputError(
            f"torch cannot compile the student here: {one_line(str(error))[:200]}; install a C++ compiler, or set "
            "stages.compile=false"
        ) from error
    finally:
        del encoder.forward
