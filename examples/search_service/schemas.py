"""What requests and responses contain, and the limits of requests."""

from typing import Annotated, Any, Literal

from edgeembed_runtime import Hit
from edgeembed_runtime.characters import is_blank
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

MAX_TEXTS = 128
MAX_CHARACTERS = 20_000
MAX_HITS = 100
MAX_BODY_BYTES = 4_000_000


def _expect_words(text: str) -> str:
    if is_blank(text):
        raise ValueError("the text is blank")
    return text


Text = Annotated[str, StringConstraints(max_length=MAX_CHARACTERS)]
Query = Annotated[Text, AfterValidator(_expect_words)]
_Number = Annotated[int, Field(ge=-(2**63), lt=2**63)] | FiniteFloat
_Value = str | bool | _Number | None
Metadata = dict[str, _Value | list[_Value]]
Id = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EncodeRequest(_Schema):
    """Texts to encode, with the encoder's prompt for queries or documents."""

    texts: list[Text] = Field(min_length=1, max_length=MAX_TEXTS)
    kind: Literal["query", "document"] = "document"


class EncodeResponse(_Schema):
    """An embedding for each text, of unit norm."""

    embeddings: list[list[float]]


class DocumentBody(_Schema):
    """A document to add, or to put in the place of the one with its id."""

    id: Id
    text: Text
    metadata: Metadata = {}


class PutRequest(_Schema):
    """Documents to add or replace."""

    documents: list[DocumentBody] = Field(min_length=1, max_length=MAX_TEXTS)


class PutResponse(_Schema):
    """How many documents were new, and how many replaced others."""

    added: int
    updated: int


class SearchRequest(_Schema):
    """A query, and options of `Index.search`."""

    query: Query
    top_k: int = Field(default=10, ge=1, le=MAX_HITS)
    filter: dict[str, Any] | None = None
    min_score: float | None = None
    method: Literal["embedding", "bm25", "hybrid"] = "embedding"


class HitBody(_Schema):
    """A document that matches, and the passage of it that matches best."""

    id: str
    score: float
    text: str
    metadata: dict[str, Any]
    passage: tuple[int, int] | None

    @classmethod
    def from_hit(cls, hit: Hit) -> "HitBody":
        """Return the JSON form of a hit; a passage becomes its start and end in the text."""
        passage = None if hit.passage is None else (hit.passage.start, hit.passage.end)
        return cls(id=hit.id, score=hit.score, text=hit.text, metadata=hit.metadata, passage=passage)


class SearchResponse(_Schema):
    """The hits, best first."""

    hits: list[HitBody]
