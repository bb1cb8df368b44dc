"""Select the prompt to put before a text."""

from collections.abc import Mapping

from edgeembed_runtime.errors import InputError

# In the order in which sentence-transformers tries them.
_QUERY = ("query",)
_DOCUMENT = ("document", "passage", "corpus")


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
    return _of_type(prompts, str(getattr(prompt_type, "value", prompt_type)))


def _of_type(prompts: Mapping[str, str], prompt_type: str) -> str | None:
    for names in (_QUERY, _DOCUMENT):
        if prompt_type in names:
            return next((prompts[name] for name in names if name in prompts), None)
    raise InputError(f"prompt_type is {prompt_type!r}, expected 'query' or 'document'")
