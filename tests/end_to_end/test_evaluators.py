"""sentence-transformers' evaluators and mteb's tasks take an encoder as they take a SentenceTransformer."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.builtin_models import builtin_bundle
from scipy.stats import pearsonr, spearmanr

from edgeembed.corpus.pairs import SentencePairs
from edgeembed.evaluation import RetrievalSet
from edgeembed.evaluation.tasks.retrieval import score_retrieval
from edgeembed.evaluation.tasks.sts import score_sts

Vectors = npt.NDArray[np.float64]

# Household notes, and how alike two of them are, from 0 to 4.
PAIRS = [
    ("The cat sleeps on the warm stove.", "A cat is asleep on the stove.", 4.0),
    ("She waters the tomatoes every evening.", "In the evening she waters her tomato plants.", 3.8),
    ("The train to the coast was late again.", "Once more the coastal train did not arrive on time.", 3.5),
    ("He mended the gate with a piece of wire.", "He repaired the fence.", 2.6),
    ("The bakery opens at seven.", "The shop that sells bread is open from seven o'clock.", 3.2),
    ("Two boys kick a ball against the wall.", "Children are playing in the yard.", 2.2),
    ("The kettle whistles in the kitchen.", "Somebody is making tea.", 1.9),
    ("Snow covered the whole valley.", "It rained on the mountains.", 1.2),
    ("She plays the cello in the evening.", "He collects old stamps.", 0.3),
    ("The bridge is closed for repairs.", "A cat is asleep on the stove.", 0.0),
    ("My bicycle has a flat tyre.", "The wheel of my bike needs air.", 3.1),
    ("The library lends films as well.", "You can borrow films at the library.", 3.9),
]
DOCUMENTS = {
    "bread": "Knead flour, water, salt and yeast, let the dough rise, then bake it in a hot oven.",
    "tyre": "Take off the wheel, find the hole in the inner tube, glue a patch on it and pump it up.",
    "tea": "Pour boiling water over the leaves and wait for three minutes.",
    "cat": "A cat that scratches the sofa wants a post of its own beside it.",
    "frost": "Cover young plants with fleece when the night will be freezing.",
    "train": "Tickets for the coastal railway are sold at the station and on board.",
    "cello": "Tighten the bow, rub rosin on its hair and tune the four strings.",
    "stain": "Rub salt into red wine at once and wash the cloth in cold water.",
    "library": "With a library card you may borrow six books and two films for a month.",
    "gate": "A sagging garden gate is lifted by a diagonal wire with a turnbuckle.",
}
QUERIES = {
    "q1": "how do I repair a puncture on my bike",
    "q2": "baking a loaf at home",
    "q3": "my pet ruins the furniture",
    "q4": "protect seedlings from cold",
    "q5": "get rid of wine on a tablecloth",
    "q6": "hot drinks and things to bake",
}
RELEVANT = {"q1": {"tyre"}, "q2": {"bread"}, "q3": {"cat"}, "q4": {"frost"}, "q5": {"stain"}, "q6": {"tea", "bread"}}
FIRST, SECOND, SCORES = (list(column) for column in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """The same encoder, but one that puts a word before queries, and another before documents."""
    folder = tmp_path_factory.mktemp("prompted") / "bundle"
    shutil.copytree(str(builtin_bundle()), folder)
    manifest = json.loads((folder / "edgeembed.json").read_text(encoding="utf-8"))
    manifest["prompts"] = {"query": "question: ", "document": "advice about the garden: "}
    (folder / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Encoder.load(folder)


def alike(a: Vectors, b: Vectors) -> dict[str, Vectors]:
    """How alike each row is to the one in its place, by sentence-transformers' names."""
    dots: Vectors = np.einsum("ij,ij->i", a, b)
    return {
        "cosine": dots / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1),
        "dot": dots,
        "euclidean": -np.linalg.norm(a - b, axis=1),
        "manhattan": -np.abs(a - b).sum(axis=1),
    }


def quantize(vectors: Vectors, precision: str) -> Vectors:
    """Vectors in a precision, their bits unpacked."""
    known = {"float32": vectors, "int8": np.rint(127 * vectors), "ubinary": vectors > 0}
    return np.asarray(known[precision], dtype=np.float64)


def ndcg(scores: Vectors, keys: list[str], relevant: set[str], k: int = 10) -> float:
    gains = [float(keys[place] in relevant) for place in np.argsort(-scores)[:k]]
    discounts = 1 / np.log2(np.arange(k) + 2)
    return float(np.dot(gains, discounts[: len(gains)]) / discounts[: len(relevant)].sum())


def mean_ndcg(scores: Vectors) -> float:
    return float(np.mean([ndcg(row, list(DOCUMENTS), RELEVANT[key]) for row, key in zip(scores, QUERIES, strict=True)]))


# What this evaluator compares rightly in few bytes, of a SentenceTransformer too: its cosine refuses whole numbers,
# differences of bits overflow, and it fails on "binary".
@pytest.mark.parametrize("truncate_dim", [None, 64])
@pytest.mark.parametrize(("precision", "name"), [("float32", "cosine"), ("int8", "manhattan"), ("ubinary", "dot")])
def test_the_similarity_evaluator_scores_vectors_of_fewer_bytes(
    encoder: Encoder, precision: Any, name: Any, truncate_dim: int | None
) -> None:
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    found = EmbeddingSimilarityEvaluator(
        FIRST, SECOND, SCORES, precision=precision, similarity_fn_names=[name], truncate_dim=truncate_dim
    )(encoder)
    first, second = (quantize(encoder.encode(texts, truncate_dim=truncate_dim), precision) for texts in (FIRST, SECOND))
    expected = alike(first, second)[name]
    assert found[f"spearman_{name}"] == pytest.approx(spearmanr(expected, SCORES).statistic, abs=1e-6)
    assert found[f"pearson_{name}"] == pytest.approx(pearsonr(expected, SCORES).statistic, abs=1e-5)


@pytest.mark.parametrize("truncate_dim", [None, 48])
def test_the_similarity_evaluator_compares_by_every_function_and_writes_its_table(
    encoder: Encoder, truncate_dim: int | None, tmp_path: Path
) -> None:
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    evaluator = EmbeddingSimilarityEvaluator(
        FIRST,
        SECOND,
        SCORES,
        name="notes",
        main_similarity="dot",
        similarity_fn_names=["cosine", "dot", "euclidean", "manhattan"],
        truncate_dim=truncate_dim,
        write_csv=True,
    )
    found = evaluator(encoder, output_path=str(tmp_path), epoch=1, steps=7)
    # Without a precision the evaluator asks for vectors that are not scaled to unit length after cutting.
    first, second = (encoder.encode(texts).astype(np.float64)[:, :truncate_dim] for texts in (FIRST, SECOND))
    for name, values in alike(first, second).items():
        assert found[f"notes_spearman_{name}"] == pytest.approx(spearmanr(values, SCORES).statistic, abs=1e-6)
        assert found[f"notes_pearson_{name}"] == pytest.approx(pearsonr(values, SCORES).statistic, abs=1e-5)
    assert evaluator.primary_metric == "notes_spearman_dot"
    with (tmp_path / "similarity_evaluation_notes_results.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["epoch"], row["steps"]) == ("1", "7")
    assert float(row["cosine_spearman"]) == found["notes_spearman_cosine"]


@pytest.mark.parametrize("truncate_dim", [None, 32])
def test_the_retrieval_evaluator_ranks_as_numpy_does(
    prompted: Encoder, truncate_dim: int | None, tmp_path: Path
) -> None:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    evaluator = InformationRetrievalEvaluator(
        QUERIES, DOCUMENTS, RELEVANT, name="advice", truncate_dim=truncate_dim, corpus_chunk_size=3, write_csv=True
    )
    found = evaluator(prompted, output_path=str(tmp_path))
    queries = prompted.encode(list(QUERIES.values()), prompt="question: ", truncate_dim=truncate_dim)
    documents = prompted.encode(list(DOCUMENTS.values()), prompt="advice about the garden: ", truncate_dim=truncate_dim)
    scores = (queries @ documents.T).astype(np.float64)
    keys = list(DOCUMENTS)
    ranked = [[keys[place] for place in np.argsort(-row)] for row in scores]
    places = [
        min(order.index(document) for document in RELEVANT[key]) for key, order in zip(QUERIES, ranked, strict=True)
    ]
    assert found["advice_cosine_ndcg@10"] == pytest.approx(mean_ndcg(scores), abs=1e-9)
    assert found["advice_cosine_mrr@10"] == pytest.approx(np.mean([1 / (place + 1) for place in places]), abs=1e-9)
    assert found["advice_cosine_accuracy@1"] == pytest.approx(np.mean([place == 0 for place in places]))
    with (tmp_path / "Information-Retrieval_evaluation_advice_results.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["cosine-NDCG@10"]) == found["advice_cosine_ndcg@10"]


def test_the_retrieval_evaluator_takes_functions_and_prompts_of_its_own(prompted: Encoder) -> None:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.util import cos_sim, euclidean_sim

    found = InformationRetrievalEvaluator(
        QUERIES,
        DOCUMENTS,
        RELEVANT,
        score_functions={"cosine": cos_sim, "euclidean": euclidean_sim},
        main_score_function="euclidean",
        query_prompt="note: ",
        corpus_prompt_name="query",
        write_csv=False,
    )(prompted)
    queries = prompted.encode(list(QUERIES.values()), prompt="note: ")
    documents = prompted.encode(list(DOCUMENTS.values()), prompt_name="query")
    expected = mean_ndcg((queries @ documents.T).astype(np.float64))
    # Vectors of unit length are in the same order by either.
    assert found["cosine_ndcg@10"] == pytest.approx(expected, abs=1e-9)
    assert found["euclidean_ndcg@10"] == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def similarity_task() -> Any:
    """An mteb task over the pairs."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskSTS

    class Notes(AbsTaskSTS):
        metadata = task_metadata("STS", "cosine_spearman")
        min_score, max_score = 0, 4

        def load_data(self, *_: Any, **__: Any) -> None:
            columns = {"sentence1": FIRST, "sentence2": SECOND, "score": SCORES}
            self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
            self.data_loaded = True

    return Notes


@pytest.fixture(scope="module")
def retrieval_task() -> Any:
    """An mteb task over the queries and documents."""
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval

    class Advice(AbsTaskRetrieval):
        metadata = task_metadata("Retrieval", "ndcg_at_10")

        def load_data(self, *_: Any, **__: Any) -> None:
            corpus, queries = (
                Dataset.from_dict({"id": list(texts), "text": list(texts.values())}) for texts in (DOCUMENTS, QUERIES)
            )
            relevant = {query: dict.fromkeys(documents, 1) for query, documents in RELEVANT.items()}
            split: Any = {"corpus": corpus, "queries": queries, "relevant_docs": relevant, "top_ranked": None}
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return Advice


def task_metadata(kind: Any, main_score: str) -> Any:
    from mteb.abstasks.task_metadata import TaskMetadata

    return TaskMetadata(
        name=f"Household{kind}",
        description="Household notes, made up for this test.",
        reference=None,
        dataset={"path": "none", "revision": "1"},
        type=kind,
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=main_score,
    )


def evaluate(encoder: Encoder, task: Any, **options: Any) -> dict[str, float]:
    import mteb

    result = mteb.evaluate(encoder, task(), show_progress_bar=False, **({"cache": None} | options))
    (scores,) = result.task_results[0].scores["test"]
    return dict(scores)


def test_an_mteb_similarity_task_scores_as_our_own_evaluation_does(encoder: Encoder, similarity_task: Any) -> None:
    found = evaluate(encoder, similarity_task)
    (ours,) = score_sts(encoder, SentencePairs("notes", FIRST, SECOND, np.array(SCORES), None))
    assert 100 * found["cosine_spearman"] == pytest.approx(ours.value, abs=1e-6)
    first, second = encoder.encode(FIRST), encoder.encode(SECOND)
    for name, values in alike(first.astype(np.float64), second.astype(np.float64)).items():
        key = "spearman" if name == "dot" else f"{name}_spearman"  # mteb's own name for the encoder's similarity
        assert found[key] == pytest.approx(spearmanr(values, SCORES).statistic, abs=1e-6)


def test_an_mteb_retrieval_task_scores_as_our_own_evaluation_does(encoder: Encoder, retrieval_task: Any) -> None:
    found = evaluate(encoder, retrieval_task)
    ours = score_retrieval(encoder, RetrievalSet("advice", QUERIES, DOCUMENTS, RELEVANT))
    # mteb rounds to five digits.
    assert 100 * found["ndcg_at_10"] == pytest.approx(ours.value, abs=1e-3)
    assert 100 * found["mrr_at_10"] == pytest.approx(ours.details["MRR@10 x100"], abs=1e-3)


def test_mteb_puts_the_bundles_prompts_before_queries_and_documents(
    prompted: Encoder, encoder: Encoder, retrieval_task: Any, tmp_path: Path
) -> None:
    found = evaluate(prompted, retrieval_task, prediction_folder=tmp_path)
    queries = encoder.encode(["question: " + text for text in QUERIES.values()])
    documents = encoder.encode(["advice about the garden: " + text for text in DOCUMENTS.values()])
    scores = queries @ documents.T
    assert found["ndcg_at_10"] == pytest.approx(mean_ndcg(scores), abs=1e-5)
    predictions = json.loads((tmp_path / "HouseholdRetrieval_predictions.json").read_text(encoding="utf-8"))
    assert predictions["mteb_model_meta"]["revision"] == prompted.bundle.fingerprint
    for query, row in zip(QUERIES, scores, strict=True):
        given = predictions["default"]["test"][query]
        assert [given[document] for document in DOCUMENTS] == pytest.approx(row, abs=1e-5)


def test_mteb_never_gives_one_encoder_the_scores_of_another(
    prompted: Encoder, encoder: Encoder, retrieval_task: Any, tmp_path: Path
) -> None:
    from mteb.cache import ResultCache

    cache = ResultCache(tmp_path)
    alone = [evaluate(one, retrieval_task)["ndcg_at_10"] for one in (encoder, prompted)]
    assert [evaluate(one, retrieval_task, cache=cache)["ndcg_at_10"] for one in (encoder, prompted)] == alone
    kept = {file.parent.name for file in (tmp_path / "results").rglob("HouseholdRetrieval.json")}
    assert kept == {encoder.bundle.fingerprint, prompted.bundle.fingerprint}
