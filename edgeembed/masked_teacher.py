"""A teacher that says which token was masked."""

import logging

from transformers import AutoModelForMaskedLM, PreTrainedModel

from edgeembed.models import transformers_folder

_logger = logging.getLogger(__name__)


def load_masked_teacher(name: str) -> PreTrainedModel | None:
    """Load a masked language model; None, and a warning in the log, where it has no head for that.

    Args:
        name: As for `edgeembed.models.model_folder`.

    Raises:
        InputError: If there is no such model, or its folder names code of its own.
    """
    folder = transformers_folder(name)
    # A head that is absent would be made up by chance, and a student would learn noise.
    model, found = AutoModelForMaskedLM.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
    )
    if found["missing_keys"]:
        _logger.warning("%s has no head for masked tokens; the student learns from the text alone", name)
        return None
    teacher: PreTrainedModel = model.float().eval()
    return teacher
