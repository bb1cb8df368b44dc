"""The options of `Encoder.encode`: keywords, prompts, and what to do with texts that a model cannot represent well."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from edgeembed_runtime._validation import validate_batch_size
from edgeembed_runtime.errors import InputError, TruncationWarning, UnknownTextWarning, caller_stacklevel

if TYPE_CHECKING:
    from edgeembed_runtime.quantization import Precision

TextAction = Literal["warn", "error", "ignore"]
_ACTIONS = get_args(TextAction)
OutputValue = Literal["sentence_embedding"]
_OUTPUT_VALUES = ("sentence_embedding", None)
# The names of prompts, in the order in which sentence-transformers tries them.
_QUERY_PROMPTS = ("query",)
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class EncodeOptions(TypedDict, total=False):
    """The keyword arguments of `Encoder.encode`, which describes them, except `prompt_type` and `return_info`."""

    prompt_name: str | None
    prompt: str | None
    batch_size: int
    show_progress_bar: bool | None
    output_value: OutputValue | None
    precision: "Precision | None"
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
    if precision != "float32":
        from edgeembed_runtime.quantization import validate_precision

        validate_precision(precision)
    validate_batch_size(batch_size)
    if device is not None and str(device) != "cpu":
        raise InputError(f"device is {str(device)!r}, expected None or 'cpu': the runtime runs on the CPU only")
    if output_value not in _OUTPUT_VALUES:
        raise InputError(f"output_value is {output_value!r}, expected 'sentence_embedding' or None")


class TextPolicy:
    """What to do with texts that a model cannot represent well.

    Args:
        on_truncate: What to do if a text has too many tokens, so that its end is not read: warn once per call, raise
            InputError, or ignore it.
        on_unknown: What to do if the vocabulary knows almost no word of a text; likewise.

    Raises:
        InputError: If one of them is something else.
    """

    def __init__(self, on_truncate: TextAction = "warn", on_unknown: TextAction = "warn") -> None:
        for name, action in (("on_truncate", on_truncate), ("on_unknown", on_unknown)):
            if action not in _ACTIONS:
                raise InputError(f"{name} is {action!r}, expected one of {', '.join(_ACTIONS)}")
        self._on_truncate = on_truncate
        self._on_unknown = on_unknown

    def check(self, position: int, *, truncated: bool, unknown: bool, max_seq_length: int) -> None:
        """Raise InputError if a text has a problem that is an error.

        Args:
            position: The text's position in the list of texts.
            truncated: Whether the end of the text is not read.
            unknown: Whether the vocabulary knows almost none of its words.
            max_seq_length: The maximum number of tokens.
        """
        if truncated and self._on_truncate == "error":
            raise InputError(
                f"text {position} is too long, expected at most {max_seq_length} tokens; "
                "split it, or pass on_truncate='ignore'"
            )
        if unknown and self._on_unknown == "error":
            raise InputError(
                f"text {position}: the vocabulary knows almost none of its words, expected a text in a language of the "
                "model; leave it out, or use a model for its language"
            )

    def warn(self, texts: int, truncated: int, unknown: int, max_seq_length: int) -> None:
        """Emit one warning for each problem that texts have, as far as it is not ignored.

        Args:
            texts: The number of texts.
            truncated: The number of texts whose ends were not read.
            unknown: The number of texts of which the vocabulary knows almost no word.
            max_seq_length: The maximum number of tokens.

        Warns:
            TruncationWarning: If texts were truncated.
            UnknownTextWarning: If texts are unknown.
        """
        if truncated and self._on_truncate == "warn":
            message = f"{truncated:d} of {texts} texts: only the first {max_seq_length} tokens were read"
            warnings.warn(message, TruncationWarning, stacklevel=caller_stacklevel())
        if unknown and self._on_unknown == "warn":
            message = (
                f"{unknown:d} of {texts} texts: the vocabulary knows almost none of their words, so that the results "
                "for them mean little; use a model for their language"
            )
            warnings.warn(message, UnknownTextWarning, stacklevel=caller_stacklevel())


def prompt_for(
    prompts: Mapping[str, str], *, prompt: str | None, prompt_name: str | None, prompt_type: str | None
) -> str | None:
    """Return the prompt to put before each text, or None if the caller asked for none.

    Args:
        prompts: The bundle's prompts, by name.
        prompt: The prompt itself.
        prompt_name: The name of one of the bundle's prompts.
        prompt_type: "query" or "document", as mteb passes it: selects the bundle's prompt for this type, if any.

    Raises:
        InputError: If both a prompt and a name are given, or the bundle has no prompt of that name.
    """
    if prompt is not None and not isinstance(prompt, str):
        raise InputError(f"prompt is {type(prompt).__name__}, expected str")
    if prompt is not None:
        if prompt_name is not None:
            raise InputError("both prompt and prompt_name were given, expected one of them")
        return prompt
    if prompt_name is not None:
        if not isinstance(prompt_name, str) or prompt_name not in prompts:
            expected = f"one of {', '.join(prompts)}" if prompts else "None, because this bundle has no prompts"
            raise InputError(f"prompt_name is {prompt_name!r}, expected {expected}")
        return prompts[prompt_name]
    if prompt_type is None:
        return None
    return _prompt_of_type(prompts, str(getattr(prompt_type, "value", prompt_type)))


def _prompt_of_type(prompts: Mapping[str, str], prompt_type: str) -> str | None:
    for names in (_QUERY_PROMPTS, _DOCUMENT_PROMPTS):
        if prompt_type in names:
            return next((prompts[name] for name in names if name in prompts), None)
    raise InputError(f"prompt_type is {prompt_type!r}, expected 'query' or 'document'")
