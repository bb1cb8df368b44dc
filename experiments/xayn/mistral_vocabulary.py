"""An existing multilingual vocabulary in the form that `vocabulary.file` takes: Mistral's, for Xayn's ablation.

python -m experiments.xayn.mistral_vocabulary FOLDER SIZE tokenizer.json

FOLDER has the wheel of mistral-common. Its merges are in the order of training, so that its first tokens are the
vocabulary of that size.
"""

import base64
import json
import zipfile
from pathlib import Path

import click
from tokenizers import processors
from transformers.integrations.mistral import MistralConverter

_FILE = "mistral_common/data/tekken_240911.json"
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("size", type=click.IntRange(min=5))
@click.argument("out")
def main(folder: Path, size: int, out: str) -> None:
    """Convert it."""
    wheel = next(folder.glob("mistral_common-*.whl"), None)
    if wheel is None:
        raise click.BadParameter(f"{folder} has no mistral_common-*.whl; expected the wheel of mistral-common")
    with zipfile.ZipFile(wheel) as files:
        found = json.loads(files.read(_FILE))
    tokens: dict[str | bytes, int] = {token: place for place, token in enumerate(_SPECIAL)}
    for each in found["vocab"][: size - len(_SPECIAL)]:
        tokens[base64.b64decode(each["token_bytes"])] = len(tokens)
    converter = MistralConverter(vocab=tokens, pattern=found["config"]["pattern"], additional_special_tokens=_SPECIAL)
    tokenizer = converter.converted()
    ends = [(token, tokens[token]) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.save(out)


if __name__ == "__main__":
    main()
