"""A sentence into a pivot language and back, which says the same in other words."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from edgeembed.augmentation.synonyms import Variant
from edgeembed.hardware import default_device, has_bf16
from edgeembed.models import model_folder, transformers_folder
from edgeembed.teacher import teacher_fingerprint

_BATCH = 32
_BEAMS = 4
_MOST_TOKENS = 512
_SPARE_TOKENS = 16


class BackTranslation:
    """Translates sentences there and back, by beam search: nothing is drawn, so there is no seed.

    Args:
        there: A model that translates the sentences' language into another one: a folder or a hub id.
        back: One that translates that back.

    Raises:
        InputError: If there is no such model.
    """

    name = "back_translation"

    def __init__(self, there: str, back: str) -> None:
        self._names = there, back
        self._folders = [model_folder(name) for name in self._names]
        self._device = default_device()

    @functools.cached_property
    def key(self) -> str:
        """What decides the variants, apart from the sentences."""
        prints = [teacher_fingerprint(folder) for folder in self._folders]
        return f"{prints[0]} {prints[1]} {_BEAMS} {has_bf16(self._device)}"

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Give each sentence's translation back; sentences of like length are cheapest.

        Raises:
            InputError: If a model does not translate text to text, or its folder names code of its own.
        """
        texts = list(sentences)
        for translator in self._translators:
            batches = (texts[first : first + _BATCH] for first in range(0, len(texts), _BATCH))
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
        given = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.limit,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(self.model.device)
        # A model that falls into repeating itself stops at twice the length of what it was given.
        most = min(self.limit - 1, 2 * given["input_ids"].shape[1] + _SPARE_TOKENS)
        with torch.inference_mode():
            made = self.model.generate(
                **given, max_new_tokens=most, max_length=None, min_length=0, num_beams=_BEAMS, do_sample=False
            )
        decoded: list[str] = self.tokenizer.batch_decode(made, skip_special_tokens=True)
        return decoded


def _load(name: str, device: str) -> _Translator:
    folder = transformers_folder(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # what a broken folder or an absent package brings up has no common base
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{name} does not load as a translation model ({reason}); expected a sequence-to-sequence model with its "
            "tokenizer, such as Marian: give a folder or hub id of one"
        ) from error
    if hasattr(tokenizer, "src_lang"):
        raise InputError(
            f"{name} translates between many languages; expected a model of one pair, such as Marian: choose another"
        )
    tokens, rows = len(tokenizer), int(model.get_input_embeddings().num_embeddings)
    if tokens > rows:
        raise InputError(
            f"{name} has a tokenizer of {tokens:,} tokens and a table of {rows:,}; expected the model's own tokenizer: "
            "save both from one source"
        )
    model = (model.bfloat16() if has_bf16(device) else model.float()).to(device).eval()
    return _Translator(model, tokenizer, _limit(model, tokenizer))


def _limit(model: Any, tokenizer: Any) -> int:
    positions = getattr(model.config, "max_position_embeddings", None) or _MOST_TOKENS
    return int(min(positions, tokenizer.model_max_length, _MOST_TOKENS))
