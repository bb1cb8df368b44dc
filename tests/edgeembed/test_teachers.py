"""Distillation and export of teachers with other architectures and tokenizers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from edgeembed_exporters import BundleSettings, export
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from edgeembed.distillation import distill, pipeline
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


def byte_pairs(sentences: list[str]) -> Tokenizer:
    """As RoBERTa has it."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(sentences, trainer)
    return made


def unigram(sentences: list[str]) -> Tokenizer:
    """As XLM-RoBERTa has it."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    made.train_from_iterator(sentences, trainer)
    return made


def teacher_at(folder: Path, architecture: str, tokenizer: Tokenizer) -> Path:
    """A random teacher of an architecture, with a tokenizer that is not WordPiece."""
    bos, eos = ("<s>", 0), ("</s>", 2)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[bos, eos])
    config = AutoConfig.for_model(
        architecture,
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=50,
        initializer_range=0.2,
    )
    torch.manual_seed(2)
    AutoModel.from_config(config).save_pretrained(folder / "raw")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=48,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder / "raw")
    modules = [Transformer(str(folder / "raw")), Pooling(32, "mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "teacher"), create_model_card=False)
    return folder / "teacher"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "kind"),
    [("roberta", "bpe"), ("roberta-prelayernorm", "bpe"), ("xlm-roberta", "unigram"), ("mpnet", "unigram")],
)
def test_teachers_of_other_architectures_are_distilled_and_exported(
    architecture: str, kind: str, sentences: list[str], tmp_path: Path
) -> None:
    tokenizer = byte_pairs(sentences) if kind == "bpe" else unigram(sentences)
    teacher = teacher_at(tmp_path, architecture, tokenizer)
    sizes = ["student.token_dim=8", "student.layers=2", "student.max_seq_length=40", "stages.batch_size=64"]
    sizes += ["vocabulary.kind=teacher", "head.kind=none", "head.normalize=false", "corpus.heldout=0"]
    distill(load_recipe("compact", [f'teacher="{teacher}"', *sizes]), sentences, tmp_path / "student")
    student = load_model(str(tmp_path / "student"))
    export(student, tmp_path / "bundle", BundleSettings(precision="fp32"), sentences=sentences[:40])
    texts = [*sorted(sentences, key=len)[:5], "Unseen & 12 signs"]
    wanted = student.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(Encoder.load(tmp_path / "bundle").encode(texts), wanted, atol=1e-4)


def test_training_a_vocabulary_needs_a_wordpiece_teacher(sentences: list[str], tmp_path: Path) -> None:
    teacher = teacher_at(tmp_path, "roberta", byte_pairs(sentences))
    sizes = ["student.token_dim=8", "student.layers=1", "student.max_seq_length=40", "head.dim=8"]
    recipe = load_recipe("compact", [f'teacher="{teacher}"', *sizes])
    with pytest.raises(InputError, match=r"is a BPE tokenizer; expected WordPiece"):
        distill(recipe, sentences, tmp_path / "student")
