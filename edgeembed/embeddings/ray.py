"""Encode a corpus on a Ray cluster: Ray Data reads the sources in parallel and keeps one model per worker."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from edgeembed_runtime.errors import InputError, MissingExtraError, one_line
from edgeembed_runtime.store_manifest import Shard

from edgeembed.corpus.inputs import TextSource
from edgeembed.corpus.sources import Source
from edgeembed.embeddings.encode import WrittenShard, missing_shards, write_missing
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_encoder import TextEncoder, load_text_encoder

Batch = dict[str, Any]

_CONNECTION_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class RayJob:
    """What every worker needs.

    Attributes:
        store: The store to add to.
        model: The model's name or folder, which every machine must have.
        normalize: Whether the embeddings are L2-normalized.
        prompt: The text that the model reads before each text.
        texts_per_shard: The number of texts in a shard.
    """

    store: EmbeddingStore
    model: str
    normalize: bool
    prompt: str
    texts_per_shard: int


def encode_on_ray(
    job: RayJob, sources: Sequence[TextSource], *, address: str | None, workers: int | None
) -> Iterator[WrittenShard]:
    """Write the missing shards on a cluster, and yield each shard once it is written.

    Args:
        job: What to do.
        sources: The sources: files that every machine can read.
        address: The address of the cluster; None starts one on this machine, unless Ray is already initialized.
        workers: The maximum number of copies of the model; None means one per GPU or, without GPUs, per core.

    Raises:
        InputError: If the cluster cannot be reached, or a worker fails. The shards that are written stay.
    """
    with _cluster(address) as ray:
        context = ray.data.DataContext.get_current()
        context.target_max_block_size = 1  # one shard a block, so that workers share the shards evenly
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors are raised below
        gpus = int(ray.cluster_resources().get("GPU", 0))
        slots = gpus or max(1, int(ray.cluster_resources().get("CPU", 1)))
        count = workers or slots
        # ray.data.range would wait for a core of its own, and the workers have them all.
        rows = [{"number": number} for number in range(len(sources))]
        shards = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _ShardReader(job, tuple(sources)),
            batch_size=1,
            compute=ray.data.TaskPoolStrategy(size=count),
            num_cpus=0,  # the workers may take all cores
        )
        written = shards.map_batches(
            _ShardWriter,
            fn_constructor_args=(job,),
            batch_size=1,
            # Workers beyond what the cluster has now start if it grows; waiting for them might take forever.
            compute=ray.data.ActorPoolStrategy(min_size=min(count, slots), max_size=count),
            num_cpus=0 if gpus else 1,
            num_gpus=1 if gpus else 0,
        )
        try:
            for row in written.iter_rows():
                if row["error"]:
                    raise InputError(row["error"])
                yield WrittenShard(Shard(row["name"], int(row["rows"]), row["sha256"]), bool(row["is_new"]))
        except ray.exceptions.RayError as error:
            raise _input_error(error) from error


def check_ray_arguments(sources: Sequence[TextSource], address: str | None) -> None:
    """Raise an error at once if a corpus cannot be encoded on a cluster; arguments are those of `encode_on_ray`.

    Raises:
        InputError: If a source is not a file, or nothing listens at the address.
        MissingExtraError: If Ray is not installed.
    """
    for source in sources:
        if not (isinstance(source, Source) and source.is_file):
            raise InputError(f"{source.name} is not a file; expected files, which every machine reads for itself")
    if not _import_ray().is_initialized():
        _check_address(address)


# Errors travel as values: Ray replaces exceptions by its own, and logs them with all their frames.
class _ShardReader:
    """Read the shards of sources."""

    def __init__(self, job: RayJob, sources: Sequence[TextSource]) -> None:
        self._job = job
        self._sources = sources

    def __call__(self, batch: Batch) -> Iterator[Batch]:
        (number,) = map(int, batch["number"])
        job = self._job
        try:
            for prefix, texts in missing_shards(job.store, self._sources[number], number, job.texts_per_shard):
                yield {"prefix": [prefix], "texts": [texts], "error": [""]}
        except InputError as error:
            yield {"prefix": [""], "texts": [[""]], "error": [_with_machine(error)]}


class _ShardWriter:
    """Encode shards and write them; each instance loads the model once."""

    def __init__(self, job: RayJob) -> None:
        self._store = job.store
        self._error = ""
        try:
            job.store.check_visible()
            self._encoder = _load_same_model(job)
        except InputError as error:
            self._error = _with_machine(error)

    def __call__(self, batch: Batch) -> Batch:
        (prefix,), (texts,), (error,) = batch["prefix"], batch["texts"], batch["error"]
        written = WrittenShard(Shard("", 0, ""), is_new=False)
        error = str(error) or self._error
        if not error:
            try:
                written = write_missing(self._store, str(prefix), list(texts), self._encoder)
            except InputError as caught:
                error = _with_machine(caught)
        row = {**asdict(written.shard), "is_new": written.is_new, "error": error}
        return {field: np.array([value]) for field, value in row.items()}


def _load_same_model(job: RayJob) -> TextEncoder:
    encoder = load_text_encoder(job.model, normalize=job.normalize, prompt=job.prompt)
    if encoder.identity.fingerprint != job.store.encoder.fingerprint:
        raise InputError(f"{job.model} is another model there; expected the same one on all machines")
    return encoder


def _with_machine(error: InputError) -> str:
    return f"on the machine {socket.gethostname()}: {error}"


def _import_ray() -> Any:
    try:
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", "ray") from error
    return ray


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield the module ray, connected to a cluster, and disconnect if this function connected it."""
    ray = _import_ray()
    is_ours = not ray.is_initialized()
    address = address or os.environ.get("RAY_ADDRESS")
    # A cluster that only this command uses needs no web page, and no address that other machines can reach.
    options = {} if address else {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    with redirect_stdout(sys.stderr):  # Ray prints messages about workers until it is shut down; stdout is for results
        try:
            if is_ours:
                # Ray warns in red of a fault that only concerns actors whose driver has ended.
                os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
                ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
        except (OSError, RuntimeError, ValueError) as error:
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
    reason = one_line(str(error))[:200]
    if address is None:
        return InputError(
            f"cannot start Ray on this machine: {reason}; expected a writable home and temporary folder, and free "
            "shared memory: mend that, or use the engine local"
        )
    return InputError(
        f"cannot connect to the Ray cluster at {address}: {reason}; expected the address of a running cluster, as "
        "`ray start --head` prints it"
    )


def _input_error(error: Exception) -> InputError:
    """Return an InputError that names the exception of a worker, or else what Ray says first."""
    text = str(error)
    found = re.search(r"^[\w.]+(?:Error|Exception): .+$", text, re.MULTILINE)
    reason = found[0] if found else next(iter(text.strip().splitlines()), type(error).__name__)
    return InputError(
        f"a worker of the Ray cluster failed: {one_line(reason)[:300]}; expected all workers to run: repeat the "
        "command to write the missing shards"
    )
