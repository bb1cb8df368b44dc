"""The public function `encode`: texts in, shards of embeddings out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.file_lock import locked

from edgeembed.arguments import check_argument_types, check_integer, check_path
from edgeembed.corpus.inputs import CorpusLike, TextSource, open_corpus
from edgeembed.encoding.corpus_shards import TEXTS_PER_SHARD, source_shards
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.teacher.prompts import check_prompt

if TYPE_CHECKING:
    from edgeembed.encoding.text_encoder import TextEncoder
    from edgeembed.teacher.shards import ShardFolder, WrittenShard

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass(frozen=True)
class EncodingReport(Report):
    """The result of `encode`.

    Attributes:
        path: The folder of shards.
        model: The model's name.
        dimension: The dimension of an embedding.
        texts: Texts in all shards.
        shards: The number of shards.
        reused_shards: Shards that an earlier run had written.
        seconds: Wall-clock time, including the time to load the model.
    """

    path: Path
    model: str
    dimension: int
    texts: int
    shards: int
    reused_shards: int
    seconds: float

    def __str__(self) -> str:
        """Return the counts in one line."""
        return (
            f"{self.path}: {self.texts:,} texts in {self.shards:,} shards, {self.reused_shards:,} of them from an "
            f"earlier run; {self.dimension} dimensions, by {self.model}, in {self.seconds:.1f} s"
        )


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
    """Encode a corpus of any size into Parquet files of texts and float16 embeddings.

    Only some shards are in memory at a time. A run that was interrupted continues at the missing shards when it is
    called again. Texts are cleaned like `corpus_shards.source_shards` does, and not deduplicated.

    Args:
        corpus: Files, folders, a list of texts, or a dataset; see `edgeembed.corpus.inputs.open_corpus`.
        model: A model or a bundle: a built-in name, a folder, an installed package that carries a model, or a hub id.
        out: The folder to write, or to continue.
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
        InputError: If an argument is invalid, the corpus or model cannot be read, `out` holds shards of another model
            or corpus, or the cluster cannot be reached.
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
    from edgeembed.encoding.text_encoder import load_text_encoder
    from edgeembed.teacher.shards import ShardFolder

    if engine == "ray":
        from edgeembed.encoding.ray_engine import RayJob, check_ray_arguments, encode_on_ray

        check_ray_arguments(sources, address)
    folder.parent.mkdir(parents=True, exist_ok=True)
    reused = 0
    counts: dict[str, int] = {}
    with locked(folder), (reporter or SilentReporter()).step("encode") as advance:
        encoder, encoded_by = load_text_encoder(model, normalize=normalize, prompt=prompt, threads=None)
        shards = ShardFolder.create(folder, encoded_by)
        if engine == "ray":
            del encoder  # the workers load copies of their own
            job = RayJob(shards, os.fspath(model), normalize, encoded_by.prompt, texts_per_shard)
            done = encode_on_ray(job, sources, address=address, workers=workers)
        else:
            done = _encode_locally(shards, encoder, sources, texts_per_shard)
        for shard in done:
            counts[shard.name] = shard.texts
            reused += not shard.is_new
            advance(sum(counts.values()))
        if not counts:
            raise InputError(f"{sources[0].name} holds no text; expected a corpus with at least one text")
        shards.finish(dict(sorted(counts.items())))
    seconds = time.perf_counter() - start
    model_name, dimension = encoded_by.name, encoded_by.dimension
    return EncodingReport(folder, model_name, dimension, sum(counts.values()), len(counts), reused, seconds)


def _encode_locally(
    shards: ShardFolder, encoder: TextEncoder, sources: Sequence[TextSource], texts_per_shard: int
) -> Iterator[WrittenShard]:
    """Write the missing shards, one after the other."""
    for number, source in enumerate(sources):
        for name, texts in source_shards(source, number, texts_per_shard):
            yield shards.write_missing(name, texts, encoder)
