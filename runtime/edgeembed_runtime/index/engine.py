"""How an index keeps its vectors, and how it is searched."""

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.json_fields import JsonFields

IndexPrecision = Literal["float32", "float16", "int8", "binary"]
INDEX_PRECISIONS: tuple[IndexPrecision, ...] = get_args(IndexPrecision)
EngineName = Literal["numpy", "faiss-flat", "faiss-ivf", "faiss-hnsw"]
ENGINE_NAMES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass(frozen=True)
class Engine:
    """How an index is searched, where the name of an engine does not say enough. Each setting concerns one engine.

    Attributes:
        name: "numpy" compares the query with every vector. "faiss-flat" does so too, and gives the same hits.
            "faiss-ivf" compares it with the vectors near to it, kept in lists, and "faiss-hnsw" follows a graph of
            neighbours: both are faster where there are very many documents, and miss some of the best. In a process
            that was forked, faiss works on one thread in the thread that forked.
        nlist: faiss-ivf: how many lists. None, the default, takes the square root of the number of documents. There
            are never more than documents.
        nprobe: faiss-ivf: how many lists are searched. 16 of 316, for 100,000 documents, find nearly all of the best.
        m: faiss-hnsw: how many neighbours a document has. More find better, and take more memory: 16 takes about
            130 bytes a document.
        ef_search: faiss-hnsw: how many candidates a search keeps on its way. More find better, and take longer.
        rescore: numpy, with vectors of the precision "binary": how many times as many documents as were asked for
            are scored exactly, those whose signs differ least from the query's, and 100 in any case. More find
            better, and take longer.

    Raises:
        InputError: If there is no such engine, or a setting is outside its range.
    """

    name: EngineName = "numpy"
    _: KW_ONLY
    nlist: int | None = None
    nprobe: int = 16
    m: int = 16
    ef_search: int = 64
    rescore: int = 20

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.name not in ENGINE_NAMES:
            raise InputError(f"the engine is {self.name!r}, expected one of {', '.join(ENGINE_NAMES)}")
        if self.nlist is not None:
            self._check("nlist", 1, 1_000_000)
        self._check("nprobe", 1, 1_000_000)
        self._check("m", 2, 256)
        self._check("ef_search", 1, 1_000_000)
        self._check("rescore", 1, 1_000_000)

    @classmethod
    def of(cls, engine: "str | Engine") -> "Engine":
        """Give the engine of a name, or the one that is one already."""
        if isinstance(engine, Engine):
            return engine
        return cls(engine)  # type: ignore[arg-type] # it is checked there

    @classmethod
    def parse(cls, fields: JsonFields) -> "Engine":
        """Give the engine that was written as JSON.

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
        """Give what `parse` reads: `nlist` is 0 for None."""
        return {**dataclasses.asdict(self), "nlist": self.nlist or 0}

    def _check(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"{name} is {value!r}, expected a whole number from {least} to {most:,}")
