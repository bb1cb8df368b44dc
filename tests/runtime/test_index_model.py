"""Random changes of an index, compared with a plain dict of documents."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Encoder, Index, InputError
from edgeembed_runtime.index.engine import EngineName, IndexPrecision
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

_KINDS: list[tuple[IndexPrecision, EngineName]] = [
    ("float32", "numpy"),
    ("int8", "numpy"),
    ("binary", "numpy"),
    ("float32", "faiss-ivf"),
    ("float16", "faiss-hnsw"),
]
_ID = st.one_of(st.integers(-2, 6), st.sampled_from("abcdef"))
_TEXT = st.text("cat dog", max_size=8)
_METADATA = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 3), "tags": st.lists(st.sampled_from("xy"), max_size=2)}
)
_VECTOR = st.lists(st.integers(-3, 3), min_size=8, max_size=8)


def _cosine(a: list[int], b: list[int]) -> float:
    norms = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0


class _IndexModel(RuleBasedStateMachine):
    """An index and a dict that maps each id to text, metadata and vector, in order of addition."""

    encoder: Encoder
    folder: Path
    kind: tuple[IndexPrecision, EngineName]

    @initialize()
    def build(self) -> None:
        precision, engine = self.kind
        self.index = Index.build(self.encoder, [], precision=precision, engine=engine)
        self.documents: dict[int | str, tuple[str, dict[str, Any], list[int]]] = {}
        self.next_id = 0

    @rule(data=st.lists(st.tuples(_TEXT, _METADATA, _VECTOR), max_size=4))
    def add(self, data: list[tuple[str, dict[str, Any], list[int]]]) -> None:
        texts, metadata, vectors = zip(*data, strict=True) if data else ((), (), ())
        ids = self.index.add(texts, metadata=metadata, embeddings=_array(vectors))
        assert ids == list(range(self.next_id, self.next_id + len(data)))
        self.documents.update(zip(ids, data, strict=True))
        self.next_id += len(data)

    @rule(document_id=_ID, text=_TEXT, vector=_VECTOR)
    def add_with_id(self, document_id: int | str, text: str, vector: list[int]) -> None:
        if document_id in self.documents:
            with pytest.raises(InputError, match="already, expected new ids"):
                self.index.add([text], ids=[document_id], embeddings=[vector])
            return
        assert self.index.add([text], ids=[document_id], embeddings=[vector]) == [document_id]
        self.documents[document_id] = (text, {}, vector)
        if isinstance(document_id, int):
            self.next_id = max(self.next_id, document_id + 1)

    @rule(document_id=_ID, text=_TEXT, vector=_VECTOR)
    def update_text(self, document_id: int | str, text: str, vector: list[int]) -> None:
        if document_id not in self.documents:
            with pytest.raises(InputError, match="the index has no document with the id"):
                self.index.update([document_id], [text], embeddings=[vector])
            return
        self.index.update([document_id], [text], embeddings=[vector])
        self.documents[document_id] = (text, self.documents[document_id][1], vector)

    @rule(metadata=_METADATA, data=st.data())
    def update_metadata(self, metadata: dict[str, Any], data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from([*self.documents, "a"]), unique=True, max_size=3))
        if not set(ids) <= self.documents.keys():
            return
        self.index.update(ids, metadata=[metadata] * len(ids))
        for document_id in ids:
            text, _, vector = self.documents[document_id]
            self.documents[document_id] = (text, metadata, vector)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from([*self.documents, "z"]), max_size=3))
        if "z" in ids:
            with pytest.raises(InputError, match="the index has no document with the id 'z'"):
                self.index.remove(ids)
            return
        self.index.remove(ids)
        for document_id in set(ids):
            del self.documents[document_id]

    @rule()
    def save_and_open(self) -> None:
        self.index.save(self.folder, force=True)
        self.index = Index.open(self.folder, self.encoder)

    @rule(query=_VECTOR, top_k=st.one_of(st.none(), st.integers(1, 4)), number=st.integers(0, 3))
    def search(self, query: list[int], top_k: int | None, number: int) -> None:
        vector = np.array(query, dtype=np.float32)
        precise = self.kind[0] == "float32"
        for condition in (None, {"n": {"$lte": number}}):
            hits = self.index.search(vector, top_k, filter=condition)
            matching = {
                each: _cosine(query, stored)
                for each, (_, metadata, stored) in self.documents.items()
                if condition is None or metadata.get("n", 9) <= number
            }
            best = sorted(matching.values(), reverse=True)[:top_k]
            tolerance = 1e-5 if precise else 0.02
            assert [hit.score for hit in hits] == pytest.approx(best, abs=tolerance)
            assert [hit.score for hit in hits] == pytest.approx([matching[hit.id] for hit in hits], abs=tolerance)
            assert len({hit.id for hit in hits}) == len(hits)
            assert [(hit.text, hit.metadata) for hit in hits] == [self.documents[hit.id][:2] for hit in hits]

    @invariant()
    def has_the_documents(self) -> None:
        documents = getattr(self, "documents", {})
        if not documents:
            return
        assert [(each.id, each.text, each.metadata) for each in self.index] == [
            (document_id, text, metadata) for document_id, (text, metadata, _) in documents.items()
        ]
        assert len(self.index) == len(documents)
        for document_id in (*documents, "zz"):
            assert (document_id in self.index) == (document_id in documents)


def _array(vectors: Any) -> npt.NDArray[np.float32]:
    return np.array(vectors, dtype=np.float32).reshape(-1, 8)


def _run(encoder: Encoder, kind: tuple[IndexPrecision, EngineName], folder: Path, examples: int) -> None:
    if kind[1] != "numpy":
        pytest.importorskip("faiss")
    machine = type("Machine", (_IndexModel,), {"encoder": encoder, "kind": kind, "folder": folder / "index"})
    quick = settings(
        max_examples=examples, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=quick)


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_index_agrees_with_a_dict(encoder: Encoder, kind: tuple[IndexPrecision, EngineName], tmp_path: Path) -> None:
    _run(encoder, kind, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_index_agrees_with_a_dict_after_many_changes(
    encoder: Encoder, kind: tuple[IndexPrecision, EngineName], tmp_path: Path
) -> None:
    _run(encoder, kind, tmp_path, 60)
