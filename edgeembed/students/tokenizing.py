"""What first modules of students share: they begin with text."""

from typing import Any

import torch
from sentence_transformers.base.modules import InputModule
from transformers import PreTrainedTokenizerBase


class TokenizingModule(InputModule):  # type: ignore[misc]  # sentence-transformers carries no types
    """A first module that cuts texts into tokens.

    Args:
        tokenizer: The student's tokenizer.
        max_seq_length: Longest input in tokens, special ones included.
    """

    save_in_root = True

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_seq_length: int) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        """Tokenize texts, padded to the longest: int64 `input_ids` and `attention_mask` (batch, tokens)."""
        texts = [prompt + text for text in inputs] if prompt else list(inputs)
        encoded = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.max_seq_length,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        return dict(encoded)

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write weights, configuration and tokenizer into a folder."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)
        self.tokenizer.save_pretrained(output_path)
