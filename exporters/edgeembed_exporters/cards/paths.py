"""What a card or a manifest may say of a machine: names and commands, without its folders."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath, PureWindowsPath
from typing import Any

from edgeembed_runtime.report import valid_unicode

_QUOTED = re.compile(r"""(["'])(.*?)\1""")
# Options that do not change the bundle.
_OMITTED_OPTIONS = {"--force", "--json"}


def without_paths(value: Any) -> Any:
    """Return a JSON value whose absolute paths, as values or keys, are reduced to their last part.

    Bytes of names that are not UTF-8 are escaped.
    """
    if isinstance(value, str):
        return valid_unicode(_last_part(value) if _is_absolute(value) else value)
    if isinstance(value, dict):
        return {without_paths(key): without_paths(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(each) for each in value]
    return value


def command_line(arguments: Sequence[str]) -> str:
    """Return a command for a model card: the same on every machine, without private paths.

    Of the path of --out, and of paths that are absolute or lead upwards, only the last part stays. Options that do not
    change the bundle are left out.

    Args:
        arguments: The words of the command, starting with its name.
    """
    words = [word for word in arguments if word not in _OMITTED_OPTIONS]
    return shlex.join(valid_unicode(_shown(word, before)) for before, word in zip(["", *words], words, strict=False))


def _shown(word: str, before: str) -> str:
    if before == "--out":
        return PurePath(word).name or word
    option, equals, value = word.partition("=")
    if option == "--out" and equals:
        return f"--out={PurePath(value).name or value}"
    if _is_absolute(word):
        return _last_part(word)
    if equals and _is_absolute(value):
        return f"{option}={_last_part(value)}"
    return _QUOTED.sub(lambda found: f"{found[1]}{without_paths(found[2])}{found[1]}", word)


def _is_absolute(text: str) -> bool:
    """Return whether a text is a path that reveals the folders of a machine, of any operating system."""
    if "\n" in text or len(text) < 3:
        return False
    return text.startswith(("/", "~/", "../", "file:")) or PureWindowsPath(text).is_absolute()


def _last_part(path: str) -> str:
    return PureWindowsPath(path).name or "."
