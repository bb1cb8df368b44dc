"""Encode a corpus on a Ray cluster: Ray Data reads the sources in parallel and keeps one model per worker."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from edgeembed_runtime.errors import InputError, MissingExtraError, one_line

from edgeembed.corpus.inputs import TextSource
from edgeembed.corpus.sources import Source
from edgeembed.encoding.corpus_shards import source_shards
from edgeembed.encoding.text_encoder import load_text_encoder
from edgeembed.teacher.shards import ShardFolder, WrittenShard

Batch = dict[str, Any]

_CONNECTION_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class RayJob:
    """What every worker needs.

    Attributes:
        shards: The folder to write.
        model: The model's name or folder, which every machine must have.
        normalize: Whether the embeddings are L2-normalized.
        texts_per_shard: The number of texts in a shard.
    """

    shards: ShardFolder
    model: str
    normalize: bool
    texts_per_shard: int


def encode_on_ray(
    job: RayJob, sources: Sequence[TextSource], *, address: str | None, workers: int | None
) -> Iterator[WrittenShard]:
    """Write the missing shards on a cluster, and yield each shard once it is written.

    Args:
        job: What to do.
        sources: The sources: files that every machine can read.
        address: The address of the cluster; None starts a local one, unless Ray is already initialized.
        workers: The number of copies of the model; None means one per GPU or, without GPUs, per core.

    Raises:
        InputError: If a source is not a file, the cluster cannot be reached, or a worker raises InputError.
        MissingExtraError: If Ray is not installed.
    """
    for source in sources:
        if not (isinstance(source, Source) and source.is_file):
            raise InputError(f"{source.name} is not a file; expected files, which every machine reads for itself")
    with _cluster(address) as ray:
        context = ray.data.DataContext.get_current()
        context.target_max_block_size = 1  # one shard a block, so that workers share the shards evenly
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        gpus = int(ray.cluster_resources().get("GPU", 0))
        count = workers or gpus or max(1, int(ray.cluster_resources().get("CPU", 1)))
        rows = [{"number": number, "source": source} for number, source in enumerate(sources)]
        shards = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _ShardReader(job.texts_per_shard),
            batch_size=1,
            num_cpus=0,  # the workers may take all cores
        )
        written = shards.map_batches(
            _ShardWriter,
            fn_constructor_args=(job,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=count),
            num_cpus=0 if gpus else 1,
            num_gpus=1 if gpus else 0,
        )
        try:
            for row in written.iter_rows():
                yield WrittenShard(row["name"], int(row["texts"]), bool(row["is_new"]))
        except ray.exceptions.RayError as error:
            raise _input_error(error) from error


class _ShardReader:
    """Read the shards of sources."""

    def __init__(self, texts_per_shard: int) -> None:
        self._texts_per_shard = texts_per_shard

    def __call__(self, batch: Batch) -> Iterator[Batch]:
        for number, source in zip(batch["number"], batch["source"], strict=True):
            for name, texts in source_shards(source, int(number), self._texts_per_shard):
                yield {"name": [name], "texts": [texts]}


class _ShardWriter:
    """Encode shards and write them; each instance loads the model once."""

    def __init__(self, job: RayJob) -> None:
        self._shards = job.shards
        self._encode, encoded_by = load_text_encoder(job.model, normalize=job.normalize)
        if encoded_by.fingerprint != job.shards.model.fingerprint:
            raise InputError(f"a machine of the cluster has another model called {job.model}; expected the same")

    def __call__(self, batch: Batch) -> Batch:
        written = [
            self._shards.write_missing(name, list(texts), self._encode)
            for name, texts in zip(batch["name"], batch["texts"], strict=True)
        ]
        return {field: np.array([getattr(shard, field) for shard in written]) for field in WrittenShard._fields}


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield the module ray, connected to a cluster, and disconnect if this function connected it."""
    try:
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", "ray") from error
    is_ours = not ray.is_initialized()
    if is_ours:
        _check_address(address)
    with redirect_stdout(sys.stderr):  # Ray prints messages about workers until it is shut down; stdout is for results
        try:
            if is_ours:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _unreachable(address, error) from error
        try:
            yield ray
        finally:
            if is_ours:
                ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raise InputError if nothing listens at an address: Ray itself would try for minutes, and then exit."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if not port.isdigit():  # None, or "auto"
        return
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECTION_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str | None, error: Exception) -> InputError:
    return InputError(
        f"cannot connect to the Ray cluster at {address or 'this machine'}: {one_line(str(error))[:200]}; "
        "expected the address of a running cluster, as `ray start --head` prints it"
    )


def _input_error(error: Exception) -> InputError:
    """Return the InputError that a worker raised, or one that names the worker's error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, InputError):
            return InputError(str(cause).splitlines()[-1])
        cause = getattr(cause, "cause", None) or cause.__cause__
    return InputError(
        f"a worker of the Ray cluster failed: {one_line(str(error).strip().splitlines()[-1])[:200]}; expected all "
        "workers to run: repeat the command to write the missing shards"
    )
