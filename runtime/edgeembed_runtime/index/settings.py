"""The settings of an index, which index.json states."""

from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, Engine, IndexPrecision
from edgeembed_runtime.index.passages import PassageSettings
from edgeembed_runtime.storage.json_fields import JsonFields


@dataclass(frozen=True)
class IndexSettings:
    """How an index stores and searches documents.

    Attributes:
        precision: The precision of the vectors.
        engine: The search engine.
        passages: How documents are split into passages when they are added; None if they are not.
        built_by: The encoder that built the index.
    """

    precision: IndexPrecision
    engine: Engine
    passages: PassageSettings | None
    built_by: EncoderIdentity

    @classmethod
    def parse(cls, fields: JsonFields) -> "IndexSettings":
        """Return the settings that `to_json` wrote.

        Raises:
            InputError: If a field is missing or wrong.
        """
        encoder = fields.child("encoder")
        name, fingerprint = encoder.string("name"), encoder.string("fingerprint")
        has_passages = fields.nullable_object("passages") is not None
        return cls(
            precision=fields.string("precision", INDEX_PRECISIONS),  # type: ignore[arg-type] # one of them
            engine=Engine.parse(fields.child("engine")),
            passages=PassageSettings.parse(fields.child("passages")) if has_passages else None,
            built_by=EncoderIdentity(name, fingerprint, fields.integer("dimension"), encoder.optional_string("space")),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON fields."""
        encoder = self.built_by
        return {
            "encoder": {"name": encoder.name, "fingerprint": encoder.fingerprint, "space": encoder.space},
            "dimension": encoder.dimension,
            "precision": self.precision,
            "engine": self.engine.to_json(),
            "passages": None if self.passages is None else self.passages.to_json(),
        }
