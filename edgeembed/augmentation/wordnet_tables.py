"""Open English WordNet as two tables: synsets, and lemmas with their senses in order."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.augmentation.wordnet import PARTS_OF_SPEECH, PartOfSpeech, WordNet, count_uses, files_fingerprint
from edgeembed.corpus.streams import COMPRESSION_ENDINGS, read_lines

_SYNSETS, _LEMMAS = "oewn_synsets.tsv", "oewn_lemmas.tsv"


def find_tables(folder: Path) -> tuple[Path, Path] | None:
    """Find the two tables in a folder.

    Returns:
        The files of the synsets and of the lemmas, plain or compressed; None where either is absent.
    """
    found = [
        next((file for ending in ("", *COMPRESSION_ENDINGS) if (file := folder / f"{name}{ending}").is_file()), None)
        for name in (_SYNSETS, _LEMMAS)
    ]
    return (found[0], found[1]) if found[0] and found[1] else None


def read_tables(synsets: Path, lemmas: Path) -> WordNet:
    """Read the two tables.

    Args:
        synsets: Tab-separated with a header: `synset`, `members` with `|` between them, `definition`, `examples`.
        lemmas: Likewise: `lemma`, `pos` (n, v, a or r) and `synsets_in_sense_order` with commas between them.

    Raises:
        InputError: If a file cannot be read, lacks a column, or names a part of speech or synset that there is not.
    """
    members: dict[str, tuple[str, ...]] = {}
    texts: list[str] = []
    for _, (name, listed, *glosses) in _rows(synsets, ("synset", "members", "definition", "examples")):
        members[name] = tuple(listed.split("|"))
        texts += glosses
    senses: dict[tuple[str, PartOfSpeech], tuple[str, ...]] = {}
    for number, (lemma, marked, listed) in _rows(lemmas, ("lemma", "pos", "synsets_in_sense_order")):
        part = marked.partition("-")[0]  # "n-1" and "n-2" are words that only look alike, such as the two basses
        ids = tuple(listed.split(","))
        unknown = [name for name in ids if name not in members]
        if part not in PARTS_OF_SPEECH or unknown:
            given = f"synset {unknown[0]!r}, which {synsets.name} lacks" if unknown else f"part of speech {marked!r}"
            raise InputError(f"{lemmas} line {number} names {given}; expected both files of one edition: fetch them")
        key = lemma, part
        senses[key] = senses.get(key, ()) + ids
    return WordNet(senses, members, count_uses(texts), files_fingerprint((synsets, lemmas)))


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    lines = read_lines(file)
    header = next(lines, (0, ""))[1].split("\t")
    missing = [name for name in columns if name not in header]
    if missing:
        raise InputError(
            f"{file} has no column {', '.join(missing)}; its columns are {', '.join(header)}: fetch it again"
        )
    chosen = [header.index(name) for name in columns]
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) != len(header):
            raise InputError(
                f"{file} line {number} has {len(fields)} tab-separated fields; expected {len(header)}: fetch it again"
            )
        yield number, [fields[index] for index in chosen]
