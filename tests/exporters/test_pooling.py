import pytest
import torch
from edgeembed_exporters.modules import POOLING_MODES, MaskedPooling, modes_for_direction
from sentence_transformers.sentence_transformer.modules import Pooling
from torch.nn import functional

LENGTHS = (1, 2, 5, 9)
WIDTH = 6


def texts() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(length, WIDTH, generator=generator) for length in LENGTHS]


def padded(side: str) -> dict[str, torch.Tensor]:
    """All texts in one batch; what pads is large, so that none of it goes unseen."""
    tokens = torch.full((len(LENGTHS), max(LENGTHS), WIDTH), 1000.0)
    mask = torch.zeros(tokens.shape[:2], dtype=torch.int64)
    for row, text in enumerate(texts()):
        place = slice(0, len(text)) if side == "right" else slice(max(LENGTHS) - len(text), None)
        tokens[row, place], mask[row, place] = text, 1
    return {"token_embeddings": tokens, "attention_mask": mask}


def alone(mode: str) -> torch.Tensor:
    """What sentence-transformers gives for each text alone."""
    pooling = Pooling(WIDTH, mode)
    features = ({"token_embeddings": text[None], "attention_mask": torch.ones(1, len(text)).long()} for text in texts())
    return torch.cat([pooling(each)["sentence_embedding"] for each in features])


def test_the_modes_are_those_of_sentence_transformers() -> None:
    assert sorted(POOLING_MODES) == sorted(Pooling.POOLING_MODES)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("mode", POOLING_MODES)
def test_padding_on_either_side_does_not_change_the_pooling(mode: str, side: str) -> None:
    pooled = MaskedPooling([mode])(padded(side))["sentence_embedding"]
    torch.testing.assert_close(pooled, alone(mode), atol=1e-5, rtol=0)


def test_several_modes_are_concatenated_in_order() -> None:
    modes = ("mean", "cls", "max")
    pooled = MaskedPooling(modes)(padded("right"))["sentence_embedding"]
    torch.testing.assert_close(pooled, torch.cat([alone(mode) for mode in modes], dim=1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("modes", [*([mode] for mode in POOLING_MODES), ["mean", "cls"]])
def test_modes_for_direction_keep_the_direction(modes: list[str]) -> None:
    pooled, simpler = (
        MaskedPooling(each)(padded("right"))["sentence_embedding"] for each in (modes, modes_for_direction(modes))
    )
    torch.testing.assert_close(functional.normalize(simpler), functional.normalize(pooled), atol=1e-5, rtol=0)


def test_a_mean_becomes_a_sum_before_normalization() -> None:
    assert modes_for_direction(["mean"]) == ("sum",)


@pytest.mark.parametrize("mode", [mode for mode in POOLING_MODES if mode != "max"])
def test_no_tokens_result_in_zeros(mode: str) -> None:
    nothing = {"token_embeddings": torch.zeros(1, 0, WIDTH), "attention_mask": torch.zeros(1, 0).long()}
    assert torch.equal(MaskedPooling([mode])(nothing)["sentence_embedding"], torch.zeros(1, WIDTH))
