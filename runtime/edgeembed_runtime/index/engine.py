"""Settings of an index: the precision of its vectors, the search engine and the search method."""

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.json_fields import JsonFields

IndexPrecision = Literal["float32", "float16", "int8", "binary"]
INDEX_PRECISIONS: tuple[IndexPrecision, ...] = get_args(IndexPrecision)
EngineName = Literal["numpy", "faiss-ivf", "faiss-hnsw"]
ENGINE_NAMES: tuple[EngineName, ...] = get_args(EngineName)
SearchMethod = Literal["embedding", "bm25", "hybrid"]
SEARCH_METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)


def check_precision(precision: object) -> None:
    """Raise InputError unless this is the precision of an index."""
    if precision not in INDEX_PRECISIONS:
        raise InputError(f"the precision is {precision!r}, expected one of {', '.join(INDEX_PRECISIONS)}")


@dataclass(frozen=True)
class Engine:
    """A search engine and its settings. Each setting belongs to one engine.

    Attributes:
        name: "numpy" compares the query with every vector and is exact. "faiss-ivf" (inverted file) compares it with
            the vectors of the nearest clusters, and "faiss-hnsw" follows a graph of neighbors: both are faster for very
            many documents and miss some of the best hits. HNSW builds its graph again when the index is opened and
            after a removal. In a forked process, faiss uses one thread.
        nlist: faiss-ivf: the number of lists (clusters). None means the square root of the number of documents. There
            are never more lists than documents.
        nprobe: faiss-ivf: the number of lists that are searched. For 100,000 documents, 16 of 316 lists contain nearly
            all of the best hits.
        m: faiss-hnsw: the number of neighbors per document. More improve recall and use more memory: 16 take about 130
            bytes per document.
        ef_search: faiss-hnsw: the size of the candidate list during search. More improve recall and take longer.
        rescore: numpy with the precision "binary": the number of candidates per requested hit whose cosine is computed
            exactly, at least 100 in all. More improve recall and take longer.

    Raises:
        InputError: If the name is unknown or a setting is out of range.
    """

    name: EngineName = "numpy"
    _: KW_ONLY
    nlist: int | None = None
    nprobe: int = 16
    m: int = 16
    ef_search: int = 64
    rescore: int = 20

    def __post_init__(self) -> None:
        """Validate the settings."""
        if self.name not in ENGINE_NAMES:
            raise InputError(f"the engine is {self.name!r}, expected one of {', '.join(ENGINE_NAMES)}")
        if self.nlist is not None:
            self._check_range("nlist", 1, 1_000_000)
        self._check_range("nprobe", 1, 1_000_000)
        self._check_range("m", 2, 256)
        self._check_range("ef_search", 1, 1_000_000)
        self._check_range("rescore", 1, 1_000_000)

    @classmethod
    def from_name(cls, engine: "str | Engine") -> "Engine":
        """Return the engine of a name; return an Engine unchanged."""
        if isinstance(engine, Engine):
            return engine
        return cls(engine)  # type: ignore[arg-type] # validated there

    @classmethod
    def parse(cls, fields: JsonFields) -> "Engine":
        """Return the engine that `to_json` wrote.

        Raises:
            InputError: If a field is missing or wrong.
        """
        return cls(
            name=fields.string("name", ENGINE_NAMES),  # type: ignore[arg-type]
            nlist=fields.integer("nlist") or None,
            nprobe=fields.integer("nprobe"),
            m=fields.integer("m"),
            ef_search=fields.integer("ef_search"),
            rescore=fields.integer("rescore"),
        )

    def to_json(self) -> dict[str, str | int]:
        """Return the settings as JSON fields; `nlist` is 0 for None."""
        return {**dataclasses.asdict(self), "nlist": self.nlist or 0}

    def _check_range(self, name: str, minimum: int, maximum: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise InputError(f"{name} is {value!r}, expected an integer from {minimum} to {maximum:,}")
