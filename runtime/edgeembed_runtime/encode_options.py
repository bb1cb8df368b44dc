"""The options of `Encoder.encode`."""

from typing import Literal, TypedDict

from edgeembed_runtime._validation import validate_batch_size
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.quantization import PRECISIONS, Precision
from edgeembed_runtime.text_policy import TextAction

OutputValue = Literal["sentence_embedding"]
_OUTPUT_VALUES = ("sentence_embedding", None)


class EncodeOptions(TypedDict, total=False):
    """The keyword arguments of `Encoder.encode`, which describes them, except `prompt_type` and `return_info`."""

    prompt_name: str | None
    prompt: str | None
    batch_size: int
    show_progress_bar: bool | None
    output_value: OutputValue | None
    precision: Precision | None
    convert_to_numpy: bool
    convert_to_tensor: bool
    device: str | None
    normalize_embeddings: bool
    truncate_dim: int | None
    on_truncate: TextAction
    on_unknown: TextAction
    task_metadata: object
    hf_split: str | None
    hf_subset: str | None


def validate_encode_options(precision: object, batch_size: object, device: object, output_value: object) -> None:
    """Raise InputError unless all of these arguments of `Encoder.encode` have supported values."""
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}")
    validate_batch_size(batch_size)
    if device is not None and str(device) != "cpu":
        raise InputError(f"device is {str(device)!r}, expected None or 'cpu': the runtime runs on the CPU only")
    if output_value not in _OUTPUT_VALUES:
        raise InputError(f"output_value is {output_value!r}, expected 'sentence_embedding' or None")
