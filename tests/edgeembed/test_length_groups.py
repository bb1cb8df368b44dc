from __future__ import annotations

import pytest
import torch

from edgeembed.students import length_groups
from edgeembed.students.length_groups import encode_by_length

SIZES = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}


@pytest.mark.parametrize("max_length", [200, 256, 1])
@pytest.mark.parametrize("lengths", [[5], [9, 2, 30, 30], [200] * 40, list(range(1, 201))], ids=len)
def test_texts_keep_their_order_and_groups_have_few_shapes(lengths: list[int], max_length: int) -> None:
    longest = max(lengths)
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    ids = torch.arange(mask.numel()).reshape(mask.shape) * mask
    shapes = []

    def encode(token_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(token_ids.shape))
        return (token_ids * attention_mask)[:, :, None].float()

    encoded = encode_by_length(encode, ids, mask, max_length)
    torch.testing.assert_close(encoded[:, :, 0], ids.float())
    assert {rows for rows, _ in shapes} <= SIZES
    assert {length for _, length in shapes} <= SIZES | {max(longest, max_length)}
    assert all(rows * length <= 3072 for rows, length in shapes)


def test_an_accelerator_encodes_a_batch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_groups, "_TOKENS_ON_CPU", length_groups._TOKENS_ON_ACCELERATORS)
    mask = (torch.arange(200) < torch.arange(1, 201)[:, None]).long()
    shapes = []

    def encode(token_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(token_ids.shape))
        return (token_ids * attention_mask)[:, :, None].float()

    encoded = encode_by_length(encode, mask, mask, 256)
    torch.testing.assert_close(encoded[:, :, 0], mask.float())
    assert shapes == [(256, 256)]
