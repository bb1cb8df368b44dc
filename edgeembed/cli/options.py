"""Options that several commands share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_TEXT = "Text: a file, a folder, - for stdin, or pydoc: for Python's documentation."


def _corpus_option(metavar: str, text: str, *, required: bool = True) -> Callable[[Command], Command]:
    return click.option(
        "--corpus", "sources", multiple=True, required=required, metavar=metavar, help=f"{text} Repeatable."
    )


corpus_option = _corpus_option("TEXT", _TEXT)
optional_corpus_option = _corpus_option("TEXT", _TEXT, required=False)
labelled_corpus_option = _corpus_option("[LANGUAGE=]TEXT", f"{_TEXT} With its language before it: de=news.txt.")


def _existing(_context: click.Context, _option: click.Parameter, sources: tuple[str, ...]) -> tuple[str, ...]:
    from edgeembed_runtime.errors import InputError

    from edgeembed.corpus.sources import split_columns

    for path, _ in map(split_columns, sources):
        if not path.is_file():
            raise InputError(f"{path} is no file; expected a TSV of labelled pairs")
    return sources


def pairs_option(*, required: bool = False) -> Callable[[Command], Command]:
    """Give `--pairs`, for a command that can do without or cannot."""
    return click.option(
        "--pairs",
        multiple=True,
        required=required,
        callback=_existing,
        metavar="FILE[#COLUMNS]",
        help="TSV of labelled pairs: anchor, positive, perhaps hard_negative; or FILE#column1,column2 of another. "
        "Repeatable.",
    )


sts_option = click.option(
    "--sts",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="TSV of scored sentence pairs: sentence1, sentence2, score. Or a folder of the papers' seven sets: "
    "sts12/test.tsv to sts16/test.tsv, stsb/test.tsv, sickr/test.tsv, those that it has. Repeatable.",
)
retrieval_option = click.option(
    "--retrieval",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv. Or a TSV of duplicate questions: question1, "
    "question2, is_duplicate. Repeatable.",
)
wordnet_option = click.option(
    "--wordnet", metavar="FOLDER", help="Add sentences in which words are synonyms, from this WordNet."
)
back_translation_option = click.option(
    "--back-translation",
    nargs=2,
    metavar="THERE BACK",
    help="Add sentences that one model translated into another language, and the other back.",
)


def augmentation_overrides(wordnet: str | None, back_translation: tuple[str, str] | None) -> list[str]:
    """Give what the two options set in a recipe."""
    there, back = back_translation or (None, None)
    values = {"wordnet": wordnet, "there": there, "back": back}
    return [f"augmentation.{name}={json.dumps(value)}" for name, value in values.items() if value is not None]
