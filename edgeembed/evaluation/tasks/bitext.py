"""Bitext retrieval: accuracy of finding a sentence's translation as its nearest neighbor in the other language."""

import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sampling import DistinctSample
from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.tables import read_header, read_tsv
from edgeembed.evaluation.encoders import CachingEncoder, SentenceEncoder
from edgeembed.evaluation.intervals import scaled, share_interval
from edgeembed.evaluation.language_pairs import AVERAGE, split_task_name, task_name
from edgeembed.evaluation.layout import first_scores, table_of_scores
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.ranking import rank
from edgeembed.evaluation.retrieval_set import RetrievalSet
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, Setting

METRIC = "accuracy x100, bitext"
MAX_ROWS = 1000
"""Accuracy falls as pairs are added; Tatoeba has 1,000 per language (Artetxe and Schwenk 2019, section 4.3)."""
_EXPECTED = "expected TSV with a header, and a sentence and its translation in each row: PATH#column1,column2"
_SEED = 0


@dataclass(frozen=True)
class BitextFile:
    """Sentences and their translations.

    Attributes:
        name: The file's name with its folder's.
        languages: Names of the two columns.
        pairs: Distinct pairs of a sentence and its translation.
    """

    name: str
    languages: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class BitextSet:
    """Several bitexts.

    Attributes:
        name: Name of the set in progress reports.
        files: One bitext per file.
    """

    name: str
    files: tuple[BitextFile, ...]


@TASKS.register("bitext")
class Bitext(EvaluationTask):
    """Retrieval of a sentence's translation, in both directions.

    Args:
        sources: Files of sentences and their translations, as `read_bitext` takes them.
        rows: Maximum number of distinct pairs per file; a random sample with a fixed seed.

    Raises:
        InputError: If a file cannot be read, or has fewer than two distinct pairs.
    """

    metavar = "FILE[#COLUMNS]"
    help = (
        "TSV of sentences and their translations: its first two columns, or FILE#column1,column2. Accuracy of the "
        "nearest neighbor, in both directions."
    )

    def __init__(
        self,
        *sources: PathLike,
        rows: Annotated[int, Setting("Maximum number of rows of such a file, a random sample.", minimum=2)] = MAX_ROWS,
    ) -> None:
        self.check_settings(rows=rows)
        self.sets = [read_bitext(self.check_sources(sources), rows)]

    def score(self, encoder: SentenceEncoder, data: BitextSet) -> list[Score]:
        """Score an encoder, see `score_bitext`."""
        return score_bitext(encoder, data)

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return a table with a column per direction of a file."""
        sizes = {score.items for score in first_scores(rows) if split_task_name(score.task)[1] != AVERAGE}
        legends = [
            "accuracy x100: sentences whose nearest neighbor by cosine similarity is a translation",
            f"sentences: {' to '.join(f'{size:,}' for size in sorted({min(sizes), max(sizes)}))} per column",
        ]
        return [table_of_scores("Bitext retrieval", rows, legends)]


def read_bitext(paths: Sequence[str | os.PathLike[str]], max_rows: int = MAX_ROWS) -> BitextSet:
    """Read files of sentences and their translations.

    Args:
        paths: TSV or CSV files, see `edgeembed.corpus.tables.read_rows`. The first two columns are the
            languages, unless `#en,de` after the path selects others.
        max_rows: Maximum number of distinct pairs per file; a random sample with a fixed seed.

    Raises:
        InputError: If a file cannot be read, a row lacks a sentence, or a file has fewer than two distinct pairs.
    """
    return BitextSet("bitext", tuple(_read(os.fspath(path), max_rows) for path in paths))


def score_bitext(encoder: SentenceEncoder, task: BitextSet) -> list[Score]:
    """Compute the accuracy of finding a translation as the nearest neighbor by cosine similarity.

    Equal sentences count once; if the sample has several translations of a sentence, any of them is correct.

    Args:
        encoder: The encoder; both languages are encoded as sentences, not as queries.
        task: The bitexts.

    Returns:
        Two scores per file, one per direction; with several files also the mean of all.

    Raises:
        CheckError: If embeddings are not finite.
    """
    caching = CachingEncoder(encoder, symmetric=True)
    scores = []
    for file in task.files:
        first, second = file.languages
        scores.append(_score(caching, task_name(file.name, f"{first} to {second}"), file.pairs))
        scores.append(
            _score(caching, task_name(file.name, f"{second} to {first}"), [pair[::-1] for pair in file.pairs])
        )
    if len(task.files) > 1:
        mean = statistics.fmean(score.value for score in scores)
        scores.append(Score(task_name(task.name, AVERAGE), METRIC, mean, sum(score.items for score in scores)))
    return scores


def _score(encoder: CachingEncoder, name: str, pairs: Iterable[tuple[str, str]]) -> Score:
    translations: dict[str, set[str]] = {}
    for sentence, translation in pairs:
        translations.setdefault(sentence, set()).add(translation)
    candidates = dict.fromkeys(text for each in translations.values() for text in each)
    # Equal texts are one query or one document. Ids differ, since a query may be its own translation, such as a name.
    queries = {f"q{text}": text for text in translations}
    documents = {f"d{text}": text for text in candidates}
    relevant = {f"q{text}": {f"d{each}" for each in found} for text, found in translations.items()}
    task = RetrievalSet(name, queries, documents, relevant)
    found = rank(encoder, task)
    interval = scaled(share_interval(round(sum(found.values("accuracy@k", 1))), len(translations)))
    accuracy = 100 * float(found.mean["accuracy@k"][1])
    return Score(name, METRIC, accuracy, len(translations), {"candidates": len(candidates)}, interval=interval)


def _read(path: str, max_rows: int) -> BitextFile:
    file, columns = split_columns(path)
    languages = columns or tuple(read_header(file)[:2])
    if len(languages) != 2:
        raise InputError(f"{file}: {len(languages)} columns, {', '.join(languages) or 'none'}; {_EXPECTED}")
    first, second = languages
    sample = DistinctSample(max_rows, _SEED)
    for number, row in enumerate(read_tsv(file, languages, (), _EXPECTED), start=1):
        if not (row[first] and row[second]):
            raise InputError(f"{file}, row {number} lacks a sentence; {_EXPECTED}")
        sample.read([f"{row[first]}\t{row[second]}"])
    pairs = [text.split("\t") for text in sample.texts()]
    if len(pairs) < 2:
        raise InputError(f"{file} has {len(pairs)} distinct pairs; expected at least two")
    name = f"{Path(file).resolve().parent.name}/{file.name.partition('.')[0]}"
    return BitextFile(name, (first, second), tuple((one, other) for one, other in pairs))
