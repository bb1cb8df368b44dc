"""The public function `encode`: texts in, a store of embeddings out."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.file_lock import locked
from edgeembed_runtime.store_manifest import Shard

from edgeembed.arguments import check_argument_types, check_integer, check_path
from edgeembed.corpus.inputs import CorpusLike, TextSource, open_corpus
from edgeembed.embeddings.prompts import check_prompt
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.progress import Advance, Reporter, SilentReporter

if TYPE_CHECKING:
    from edgeembed.embeddings.text_encoder import TextEncoder

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
TEXTS_PER_SHARD = 16_384
"""About a second of a GPU's work, or a minute of a core's: little is lost with a shard."""


@dataclass(frozen=True)
class EncodingReport(Report):
    """The result of `encode`.

    Attributes:
        path: The store's folder.
        model: The model's name.
        dimension: The dimension of an embedding.
        texts: Texts in the store, those of earlier corpora included.
        shards: The number of shards.
        reused_texts: Texts that earlier runs had encoded.
        seconds: Wall-clock time, including the time to load the model.
    """

    path: Path
    model: str
    dimension: int
    texts: int
    shards: int
    reused_texts: int
    seconds: float

    def __str__(self) -> str:
        """Return the counts in one line."""
        return (
            f"{self.path}: {self.texts:,} texts in {self.shards:,} shards, {self.reused_texts:,} of them from an "
            f"earlier run; {self.dimension} dimensions, by {self.model}, in {self.seconds:.1f} s"
        )


class WrittenShard(NamedTuple):
    """A shard that is on disk.

    Attributes:
        shard: The shard.
        is_new: Whether it was written now, not by an interrupted run.
    """

    shard: Shard
    is_new: bool


@check_argument_types
def encode(  # noqa: PLR0913  # one argument for each option of the command
    corpus: CorpusLike,
    model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    engine: EngineName = "local",
    address: str | None = None,
    workers: int | None = None,
    texts_per_shard: int = TEXTS_PER_SHARD,
    normalize: bool = True,
    prompt: str | None = None,
    reporter: Reporter | None = None,
) -> EncodingReport:
    """Encode a corpus of any size into a store: Parquet files of texts and float16 embeddings.

    Only some shards are in memory at a time. Texts that the store holds already are not encoded again: a run that was
    interrupted continues when it is called again, and a larger corpus adds what is new. White space is cleaned as
    `missing_shards` does it. A text that is twice in the corpus is encoded and stored twice.

    Args:
        corpus: Files, folders, a list of texts, or a dataset; see `edgeembed.corpus.inputs.open_corpus`.
        model: A model or a bundle: a built-in name, a folder, an installed package that carries a model, or a hub id.
        out: The folder to write, or to add to.
        engine: "local" encodes in this process; "ray" on a Ray cluster, or on a local one that is started for the run.
        address: The address of a Ray cluster; None starts a local one, unless Ray is already initialized. All machines
            must see the corpus, the model and `out` under the same paths.
        workers: With "ray", the maximum number of copies of the model; None means one per GPU or, without GPUs, per
            core. Those that the cluster has no GPU or core for wait until it grows.
        texts_per_shard: The number of texts in a shard.
        normalize: Whether the embeddings are L2-normalized.
        prompt: The text that the model reads before each text, such as "query: "; empty for none. None for the model's
            own prompt for documents: of the name "document", "passage" or "corpus", otherwise its default prompt.
        reporter: Receives progress.

    Returns:
        The counts.

    Raises:
        InputError: If an argument is invalid, the corpus or model cannot be read, `out` holds embeddings of another
            model, or the cluster cannot be reached.
        MissingExtraError: If the engine is "ray" and Ray is not installed.
    """
    start = time.perf_counter()
    if engine not in ENGINES:
        raise InputError(f"engine is {short_repr(engine)}; expected one of {', '.join(ENGINES)}")
    if engine != "ray" and (address is not None or workers is not None):
        raise InputError("address and workers are settings of the engine ray; omit them, or choose that engine")
    check_integer("texts_per_shard", texts_per_shard, minimum=1)
    if workers is not None:
        check_integer("workers", workers, minimum=1)
    check_prompt("prompt", prompt)
    folder = check_path("out", out)
    sources = open_corpus(corpus)

    # Imports torch, which takes seconds: mistakes in the arguments above are reported at once.
    from edgeembed.embeddings.text_encoder import load_text_encoder

    if engine == "ray":
        from edgeembed.embeddings.ray import RayJob, check_ray_arguments, encode_on_ray

        check_ray_arguments(sources, address)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder), (reporter or SilentReporter()).step("encode") as advance:
        encoder = load_text_encoder(model, normalize=normalize, prompt=prompt, threads=None)
        identity = encoder.identity
        store = EmbeddingStore.create(folder, identity)
        written: Iterable[WrittenShard]
        if engine == "ray":
            del encoder  # the workers load copies of their own
            job = RayJob(store, os.fspath(model), normalize, identity.prompt, texts_per_shard)
            written = _counted(encode_on_ray(job, sources, address=address, workers=workers), advance)
        else:
            written = _encode_locally(store, encoder, sources, texts_per_shard, advance)
        before = len(store)
        shards = sorted(written, key=lambda each: each.shard.name)
        if not shards and not before:
            raise InputError(f"{sources[0].name} holds no text; expected a corpus with at least one text")
        store.commit([each.shard for each in shards], is_complete=True)
        store.remove_unlisted()
    reused = before + sum(each.shard.rows for each in shards if not each.is_new)
    seconds = time.perf_counter() - start
    count = len(store.manifest.shards)
    return EncodingReport(folder, identity.name, identity.dimension, len(store), count, reused, seconds)


def missing_shards(
    store: EmbeddingStore, source: TextSource, number: int, texts_per_shard: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of a source that a store lacks, shard by shard, with one in memory at a time.

    Runs of white space are replaced by single spaces, and blank texts are skipped.

    Args:
        store: The store.
        source: The source.
        number: Its number in the corpus.
        texts_per_shard: The number of texts in each shard but the last.

    Yields:
        The beginning of the shard's name, and its texts.
    """
    cleaned = (" ".join(text.split()) for text in source.texts())
    missing = _missing(store, (text for text in cleaned if text), texts_per_shard)
    count = 0
    while shard := list(islice(missing, texts_per_shard)):
        yield f"{number:05d}-{count:06d}", shard
        count += 1


def _missing(store: EmbeddingStore, texts: Iterator[str], at_once: int) -> Iterator[str]:
    while part := list(islice(texts, at_once)):
        yield from (part[row] for row in np.flatnonzero(store.find(part) < 0))


def _encode_locally(
    store: EmbeddingStore, encoder: TextEncoder, sources: Sequence[TextSource], texts_per_shard: int, advance: Advance
) -> Iterator[WrittenShard]:
    """Write the missing shards, one after the other."""
    done = 0
    for number, source in enumerate(sources):
        for prefix, texts in missing_shards(store, source, number, texts_per_shard):
            yield write_missing(store, prefix, texts, encoder, functools.partial(_advance_after, advance, done))
            done += len(texts)
            advance(done)


def write_missing(
    store: EmbeddingStore, prefix: str, texts: list[str], encoder: TextEncoder, advance: Advance = lambda _done: None
) -> WrittenShard:
    """Encode and write a shard, unless an interrupted run has written it."""
    if found := store.find_shard(prefix, texts):
        return WrittenShard(found, is_new=False)
    return WrittenShard(store.write_shard(prefix, texts, encoder.encode(texts, advance)), is_new=True)


def _counted(written: Iterable[WrittenShard], advance: Advance) -> Iterator[WrittenShard]:
    done = 0
    for each in written:
        done += each.shard.rows
        advance(done)
        yield each


def _advance_after(advance: Advance, before: int, done: int) -> None:
    advance(before + done)
