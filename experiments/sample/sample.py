"""Make up a small copy of the data, with their files and columns, from the docstrings of Python's standard library.

    python -m experiments.sample.sample build/small/out/sample

Pipelines run on it in minutes, offline. "Translations" have the language's ending on each word; a pair's score is the
share of the words that its second sentence keeps. Numbers measured on it mean nothing.
"""

import ast
import json
import lzma
import random
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

ENGLISH = (
    *("wikipedia", "tatoeba", "dialogue_sgd", "questions_titles", "commonvoice", "captions", "news", "ted"),
    *("nltk_mixed", "amazon", "books", "wordnet_examples"),
)
LANGUAGES = ("de", "es", "fr", "it", "nl", "pl", "pt", "ru", "tr")
_CROSSED = ("es-en", "tr-en")
_PAIRS = {
    "tatoeba_pivot_en_paraphrase": ("sentence1", "sentence2"),
    "captions5_en": ("c1", "c2", "c3", "c4", "c5"),
    "medquad_qa": ("question", "answer"),
    "wikipedia_title_lead": ("title", "lead"),
    "wikisplit": ("complex", "split"),
    "opentrivia_qa": ("question", "answer"),
    "wordnet_gloss": ("term", "definition"),
}
_RETRIEVAL = ("scifact", "cacm", "adi", "time", *(f"xquad/{each}" for each in ("en", "de", "es", "ru", "tr")))
_LABELED = {
    "senteval/subj": ("0", "1"),
    "senteval/trec_train": ("DESC", "HUM"),
    "senteval/trec_test": ("DESC", "HUM"),
    "senteval/sst2_train": ("0", "1"),
    "senteval/sst2_dev": ("0", "1"),
    "glue/cola_train": ("0", "1"),
    "glue/cola_dev": ("0", "1"),
}
_LABELED_PAIRS = ("senteval/mrpc_tok_train", "glue/mrpc_train_full", "glue/rte_train", "glue/rte_dev")


class Sample:
    """Writer of the files, in the layout of the data.

    Args:
        out: New folder.
        sentences: What all files are made of.
        rows: Rows of each file of pairs.
    """

    def __init__(self, out: Path, sentences: Sequence[str], rows: int) -> None:
        self.out, self.sentences, self.rows = out, sentences, rows
        self.rng = random.Random(0)  # noqa: S311  # no secret depends on it

    def write(self) -> None:
        """Write every file."""
        share = len(self.sentences) // len(ENGLISH)
        for number, name in enumerate(ENGLISH):
            self._lines(f"train/en/{name}.txt.xz", self.sentences[number * share : (number + 1) * share])
        for language in ("en", *LANGUAGES):
            texts = (translate(each, language) for each in self.sentences[: 4 * self.rows])
            self._lines(f"train/multilingual/{language}.txt.xz", texts)
            self._lines(f"words/{language}.txt", (translate(each, language) for each in self.sentences[: self.rows]))
        for language in LANGUAGES:
            self._translations(language)
        for name, columns in _PAIRS.items():
            self._table(f"train/pairs/{name}.tsv.xz", columns, (self._similar(len(columns)) for _ in range(self.rows)))
        triplets = ((*self._similar(2), self._sentence()) for _ in range(self.rows))
        self._table("train/pairs/nli_triplets.tsv.xz", ("anchor", "positive", "hard_negative"), triplets)
        self._wordnet()
        self._similarity()
        for name in _RETRIEVAL:
            self._retrieval(name)
        self._labeled()

    def _sentence(self) -> str:
        return self.rng.choice(self.sentences)

    def _similar(self, count: int) -> list[str]:
        """Return a sentence and variants of it that keep most of its words."""
        sentence = self._sentence()
        return [sentence, *(self._shortened(sentence, 0.8) for _ in range(count - 1))]

    def _shortened(self, sentence: str, share: float) -> str:
        words = sentence.split()
        kept = [word for word in words if self.rng.random() < share]
        return " ".join(kept or words)

    def _scored(self, first: str, second: str) -> Iterator[tuple[str, str, str]]:
        """Yield pairs of a sentence in one language and part of it in another, with a score from 1 to 5."""
        for _ in range(self.rows):
            sentence, score = self._sentence(), self.rng.randint(1, 5)
            part = self._shortened(sentence, score / 5) if score > 1 else self._sentence()
            yield translate(sentence, first), translate(part, second), str(score)

    def _similarity(self) -> None:
        columns = ("sentence1", "sentence2", "score")
        for name in ("stsb/train", "stsb/dev", "stsb/test", "sickr/test", "sickr/trial"):
            self._table(f"eval/{name}.tsv", columns, self._scored("en", "en"))
        for name in ("sts12", "sts14"):
            known = ((*row, str(number % 2)) for number, row in enumerate(self._scored("en", "en")))
            self._table(f"eval/{name}/test.tsv", (*columns, "in_stsb"), known)
        for language in ("en", *LANGUAGES):
            for split in ("train", "dev", "test"):
                self._table(f"eval/stsb_multi_mt/{language}/{split}.tsv", columns, self._scored(language, language))
        for name in ("en-en", "es-es", *_CROSSED):
            self._table(f"eval/sts17/{name}.tsv", columns, self._scored(*name.split("-")))

    def _translations(self, language: str) -> None:
        sentences = [self._sentence() for _ in range(self.rows)]
        rows = ((each, translate(each, language), "sample") for each in sentences)
        self._table(f"train/parallel/en-{language}.tsv.xz", ("en", language, "source"), rows)

    def _retrieval(self, name: str) -> None:
        language = name.partition("/")[2] or "en"
        folder = self.out / "eval/retrieval" / name
        (folder / "qrels").mkdir(parents=True)
        documents = self.sentences[: self.rows]
        queries = [self._shortened(each, 0.6) for each in documents[:20]]
        for file, texts in (("corpus", documents), ("queries", queries)):
            lines = (
                json.dumps({"_id": str(number), "title": "", "text": translate(text, language)})
                for number, text in enumerate(texts)
            )
            (folder / f"{file}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for split in ("train", "test"):
            rows = ((str(number), str(number), "1") for number in range(len(queries)))
            self._table(f"eval/retrieval/{name}/qrels/{split}.tsv", ("query-id", "corpus-id", "score"), rows)

    def _labeled(self) -> None:
        for name, labels in _LABELED.items():
            rows = ((self._sentence(), self.rng.choice(labels)) for _ in range(self.rows))
            self._table(f"eval/{name}.tsv", ("text", "label"), rows)
        for name in _LABELED_PAIRS:
            # Enough for the development split that the last rows of MRPC's training split become.
            pairs = ((*self._similar(2), self.rng.choice("01")) for _ in range(500))
            self._table(f"eval/{name}.tsv", ("sentence1", "sentence2", "label"), pairs)
        inferences = ((*self._similar(2), self.rng.choice("012"), "lingnli") for _ in range(2500))
        self._table("train/pairs/nli_pairs.tsv.xz", ("premise", "hypothesis", "label", "source"), inferences)

    def _wordnet(self) -> None:
        words = sorted({word for each in self.sentences for word in each.lower().split() if word.isalpha()})[:1000]
        columns = ("synset", "pos", "lexfile", "members", "definition", "examples", "hypernyms_or_similar")
        synsets = [(f"{number:08}-n", "|".join(words[number : number + 2])) for number in range(0, len(words), 2)]
        rows = ((name, "n", "noun.all", members, self._sentence(), "", "") for name, members in synsets)
        self._table("train/wordnet/oewn_synsets.tsv.xz", columns, rows)
        lemmas = ((word, "n", name) for name, members in synsets for word in members.split("|"))
        self._table("train/wordnet/oewn_lemmas.tsv.xz", ("lemma", "pos", "synsets_in_sense_order"), lemmas)

    def _table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self._lines(name, ("\t".join(row) for row in (columns, *rows)))

    def _lines(self, name: str, lines: Iterable[str]) -> None:
        file = self.out / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode()
        file.write_bytes(lzma.compress(content) if file.suffix == ".xz" else content)


def translate(text: str, language: str) -> str:
    """Return a text with the language's ending on each word; English stays as it is."""
    return text if language == "en" else " ".join(f"{word}{language}" for word in text.split())


def docstring_sentences(count: int) -> list[str]:
    """Return first lines and sentences of docstrings of the standard library, without repetitions."""
    found: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                found |= dict.fromkeys(each for each in text.split(". ") if 20 <= len(each) <= 200)
        if len(found) >= count:
            break
    return list(found)[:count]


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--rows", default=60, show_default=True, help="Rows of each file of pairs.")
def main(out: Path, rows: int) -> None:
    """Write it."""
    Sample(out, docstring_sentences(50 * rows), rows).write()


if __name__ == "__main__":
    main()
