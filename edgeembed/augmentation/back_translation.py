"""Back-translation: sentences translated into another language and back, which paraphrases them."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from edgeembed_exporters.soundness import check_none_missing
from edgeembed_runtime.errors import InputError
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from edgeembed.augmentation.synonyms import Variant
from edgeembed.embeddings.fingerprint import model_fingerprint
from edgeembed.hardware import default_device, has_bf16
from edgeembed.models import find_torch_model, find_transformers_model

_BATCH_SIZE = 32
_BEAMS = 4
_MAX_TOKENS = 512
_EXTRA_TOKENS = 16


class BackTranslation:
    """Translate sentences into another language and back, by beam search, which is deterministic.

    Args:
        there: A model that translates from the sentences' language into another: a folder or a hub id.
        back: A model that translates back.

    Raises:
        InputError: If a model does not exist.
    """

    name = "back_translation"

    def __init__(self, there: str, back: str) -> None:
        self._names = there, back
        self._folders = [find_torch_model(name) for name in self._names]
        self._device = default_device()

    @functools.cached_property
    def key(self) -> str:
        """The models and settings that determine the variants of a sentence, as text."""
        there, back = (model_fingerprint(folder) for folder in self._folders)
        return f"{there} {back} {_BEAMS} {has_bf16(self._device)}"

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Return the back-translation of each sentence. Sentences of similar length are fastest.

        Raises:
            InputError: If a model is not a translation model, or needs custom code.
        """
        texts = list(sentences)
        for translator in self._translators:
            batches = (texts[first : first + _BATCH_SIZE] for first in range(0, len(texts), _BATCH_SIZE))
            texts = [text for batch in batches for text in translator.translate(batch)]
        return [[Variant(" ".join(text.split()), None)] for text in texts]

    @functools.cached_property
    def _translators(self) -> tuple["_Translator", "_Translator"]:
        there, back = (_load(name, self._device) for name in self._names)
        return there, back


@dataclass(frozen=True)
class _Translator:
    model: Any
    tokenizer: Any
    limit: int

    def translate(self, texts: list[str]) -> list[str]:
        inputs = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.limit,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(self.model.device)
        # A model that starts to repeat itself is stopped at twice the length of its input.
        max_new_tokens = min(self.limit - 1, 2 * inputs["input_ids"].shape[1] + _EXTRA_TOKENS)
        with torch.inference_mode():
            generated = self.model.generate(
                **inputs,
                max_new_tokens=max_new_tokens,
                max_length=None,
                min_length=0,
                num_beams=_BEAMS,
                do_sample=False,
            )
        decoded: list[str] = self.tokenizer.batch_decode(generated, skip_special_tokens=True)
        return decoded


def _load(name: str, device: str) -> _Translator:
    folder = find_transformers_model(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model, info = AutoModelForSeq2SeqLM.from_pretrained(
            folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # the errors of a broken folder or a missing package have no common base
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{name} does not load as a translation model ({reason}); expected a sequence-to-sequence model with its "
            "tokenizer, such as Marian: use a folder or hub id of one"
        ) from error
    check_none_missing(info["missing_keys"], name)
    if hasattr(tokenizer, "src_lang"):
        raise InputError(
            f"{name} translates between many languages; expected a model of one language pair, such as Marian"
        )
    tokens, rows = len(tokenizer), int(model.get_input_embeddings().num_embeddings)
    if tokens > rows:
        raise InputError(
            f"{name} has a tokenizer of {tokens:,} tokens and an embedding table of {rows:,} rows; expected the "
            "model's own tokenizer: save both from one source"
        )
    model = (model.bfloat16() if has_bf16(device) else model.float()).to(device).eval()
    return _Translator(model, tokenizer, _limit(model, tokenizer))


def _limit(model: Any, tokenizer: Any) -> int:
    positions = getattr(model.config, "max_position_embeddings", None) or _MAX_TOKENS
    return int(min(positions, tokenizer.model_max_length, _MAX_TOKENS))
