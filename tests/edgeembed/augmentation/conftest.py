"""A small WordNet in both formats, and a pair of tiny random translation models."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Synset, its part of speech, and its lemmas.
SYNSETS = {
    "00000001-n": ("n", "car|automobile|machine"),
    "00000002-n": ("n", "machine|apparatus"),
    "00000003-n": ("n", "child|kid"),
    "00000004-n": ("n", "sports car"),
    "00000005-v": ("v", "buy|purchase"),
    "00000006-a": ("a", "large|big"),
    "00000007-r": ("r", "quickly|rapidly"),
    "00000008-n": ("n", "help|assistance"),
    "00000009-v": ("v", "help|assist"),
    "00000010-n": ("n", "week|hebdomad"),
    "00000011-n": ("n", "can|tin"),
    "00000012-n": ("n", "rose|bloom"),
    "00000013-n": ("n", "Rome|roman"),
    "00000014-v": ("v", "make|create"),
}
# Lemma, part of speech, its senses in order.
LEMMAS = [
    ("car", "n", "00000001-n"),
    ("automobile", "n", "00000001-n"),
    ("machine", "n-1", "00000002-n"),
    ("machine", "n-2", "00000001-n"),
    ("apparatus", "n", "00000002-n"),
    ("child", "n", "00000003-n"),
    ("kid", "n", "00000003-n"),
    ("sports car", "n", "00000004-n"),
    ("buy", "v", "00000005-v"),
    ("purchase", "v", "00000005-v"),
    ("large", "a", "00000006-a"),
    ("big", "a", "00000006-a"),
    ("quickly", "r", "00000007-r"),
    ("rapidly", "r", "00000007-r"),
    ("help", "n", "00000008-n"),
    ("help", "v", "00000009-v"),
    ("assistance", "n", "00000008-n"),
    ("assist", "v", "00000009-v"),
    ("week", "n", "00000010-n"),
    ("hebdomad", "n", "00000010-n"),
    ("can", "n", "00000011-n"),
    ("tin", "n", "00000011-n"),
    ("rose", "n", "00000012-n"),
    ("bloom", "n", "00000012-n"),
    ("Rome", "n", "00000013-n"),
    ("make", "v", "00000014-v"),
    ("create", "v", "00000014-v"),
]


def gloss(synset: str) -> str:
    """Return a definition in which every word except the rare ones is frequent enough to be common."""
    return " ".join([SYNSETS[synset][1].replace("|", " ").replace("hebdomad", "")] * 5)


def write_tables(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    synsets = ["synset\tpos\tlexfile\tmembers\tdefinition\texamples\thypernyms_or_similar"]
    synsets += [f"{name}\t{part}\tx\t{members}\t{gloss(name)}\t\t" for name, (part, members) in SYNSETS.items()]
    lemmas = ["lemma\tpos\tsynsets_in_sense_order", *("\t".join(row) for row in LEMMAS)]
    (folder / "oewn_synsets.tsv").write_text("\n".join(synsets) + "\n", encoding="utf-8")
    (folder / "oewn_lemmas.tsv").write_text("\n".join(lemmas) + "\n", encoding="utf-8")
    return folder


def write_classic(folder: Path) -> Path:
    """Write the same in Princeton's format: synsets are identified by byte offset, and the index folds case."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lexnames").write_text("00\tadj.all\t3\n", encoding="utf-8")
    for part, stem in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        (folder / f"{stem}.exc").write_text("", encoding="utf-8")
        data, offsets = "  1 a made-up header\n", {}
        for name, (kind, listed) in SYNSETS.items():
            if kind == part:
                members = listed.split("|")
                words = " ".join(f"{member.replace(' ', '_')} 0" for member in members)
                frames = "00 " if part == "v" else ""
                offsets[name] = f"{len(data):08}"
                data += f"{offsets[name]} 00 {kind} {len(members):02x} {words} 000 {frames}| {gloss(name)}\n"
        index = "  1 a made-up header\n"
        senses: dict[str, list[str]] = {}
        for lemma, marked, listed in LEMMAS:
            if marked[0] == part:
                senses.setdefault(lemma.lower().replace(" ", "_"), []).append(offsets[listed])
        for key, ids in senses.items():
            index += f"{key} {part} {len(ids)} 0 {len(ids)} 0 {' '.join(ids)}\n"
        (folder / f"data.{stem}").write_text(data, encoding="utf-8")
        (folder / f"index.{stem}").write_text(index, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def wordnet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("wordnet"))


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory, tokenizer: "Tokenizer") -> tuple[str, str]:
    """Return two random sequence-to-sequence models that generate at least one token."""
    import torch
    from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

    folders = []
    for seed, name in enumerate(("there", "back")):
        torch.manual_seed(seed)
        folder = tmp_path_factory.mktemp("translators") / name
        config = MarianConfig(
            vocab_size=tokenizer.get_vocab_size(),
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            max_position_embeddings=48,
            init_std=1.0,
            pad_token_id=0,
            eos_token_id=3,
            decoder_start_token_id=2,
            forced_eos_token_id=None,
        )
        MarianMTModel(config).save_pretrained(folder)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
        ).save_pretrained(folder)
        folders.append(str(folder))
    return folders[0], folders[1]
