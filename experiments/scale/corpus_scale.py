"""Measure memory, processor time and temporary files of the steps that read a corpus, at 1, 3 and 10 million sentences.

Run with `python -m experiments.scale.corpus_scale`. It writes docs/results/corpus-scale.json and corpus-scale.md. Each
step runs in a fresh process. The sentences are synthetic, the same in every run. Other processes may run beside: they
change processor time little, unlike wall-clock time.
"""

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click
from edgeembed_bench.machine import this_machine

SAMPLE = 100_000
VOCABULARY = 30_000
_BATCH = 1000
_REPEATED = 5  # every fifth batch repeats an earlier one
_EXPONENT = 1.2
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"]
_RESULTS = Path(__file__).parents[2] / "docs/results"

_PAGE = """# Corpora larger than memory

Peak memory, processor time and temporary files of the steps that read a corpus, for three sizes of corpus:

```
{command}
```

Each step runs in a fresh process ({cpu}; [all values](corpus-scale.json)). The peak includes Python and the
libraries. The columns of the tables are numbers of sentences.

The sentences are synthetic: 5 to 20 words by Zipf's law with exponent {exponent}, without an upper limit, so that new
words keep appearing. A fifth of the sentences repeat one from any earlier position. The corpus is Parquet files.

{tables}

- **filter**: read the files, normalize white space and drop texts by length. All other steps include it.
- **deduplicate**: `stream_corpus` without a limit, read once. The texts are copied to temporary files.
- **sample**: `read_corpus` with a limit of {sample:,}; that is how `distill` selects its sentences.
- **count words**: exact counts of all words, repeated sentences included.
- **vocabulary**: `train_vocabulary` with {vocabulary:,} tokens and without a limit. It deduplicates, counts words, and
  trains on the {words:,} most frequent words, which need most of its memory.
"""


def synthetic_sentences(seed: int = 0) -> Iterator[str]:
    """Yield sentences without end. The first ones are the same however many are taken."""
    import numpy as np

    common = [_word(rank) for rank in range(100_000)]
    sources: list[int] = []
    for number in range(sys.maxsize):
        is_repeated = number % _REPEATED == _REPEATED - 1
        generator = np.random.default_rng([seed, number])
        source = sources[generator.integers(number)] if is_repeated else number
        sources.append(source)
        generator = np.random.default_rng([seed, source])
        lengths = generator.integers(5, 21, size=_BATCH)
        ranks = iter(generator.zipf(_EXPONENT, size=int(lengths.sum())).tolist())
        for length in lengths:
            words = (common[rank] if rank < len(common) else _word(rank) for rank in islice(ranks, int(length)))
            yield " ".join(words).capitalize() + "."


def _word(rank: int) -> str:
    """Return a pronounceable word for a rank; the lower the rank, the shorter the word."""
    syllables = []
    while True:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
        if not rank:
            return "".join(syllables)


def write_files(folder: Path, files: int, sentences: int) -> None:
    """Write Parquet files of synthetic sentences, a part of them in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet

    schema = pa.schema([("text", pa.string())])
    texts = synthetic_sentences()
    for number in range(files):
        with pyarrow.parquet.ParquetWriter(folder / f"{number:03d}.parquet", schema) as writer:
            for start in range(0, sentences, 50_000):
                part = list(islice(texts, min(50_000, sentences - start)))
                writer.write_table(pa.table([pa.array(part)], schema))


def filter_texts(files: list[Path]) -> dict[str, Any]:
    """Clean all texts."""
    from edgeembed.corpus.filtering import TextFilter
    from edgeembed.corpus.inputs import iter_texts

    return {"kept": sum(1 for _ in TextFilter().clean(iter_texts(files)))}


def deduplicate(files: list[Path]) -> dict[str, Any]:
    """Read the distinct sentences once."""
    from edgeembed.corpus import stream_corpus

    with stream_corpus(files) as sentences:
        return {"kept": sum(1 for _ in sentences)}


def sample(files: list[Path]) -> dict[str, Any]:
    """Draw a sample of the distinct sentences."""
    from edgeembed.corpus import read_corpus

    return {"kept": len(read_corpus(files, limit=SAMPLE))}


def count_words(files: list[Path]) -> dict[str, Any]:
    """Count all words."""
    from tokenizers import normalizers

    from edgeembed.corpus.inputs import iter_texts
    from edgeembed.vocabulary.word_counts import WordCounts

    with WordCounts(iter_texts(files), normalizers.BertNormalizer()) as words:
        return {"distinct_words": sum(1 for _ in words)}


def vocabulary(files: list[Path]) -> dict[str, Any]:
    """Train a vocabulary on all distinct sentences."""
    from edgeembed.vocabulary import train_vocabulary

    with tempfile.TemporaryDirectory() as folder:
        report = train_vocabulary(files, Path(folder) / "tokenizer.json", size=VOCABULARY)
    return {"kept": report.corpus.kept, "tokens": report.size}


STEPS: dict[str, Callable[[list[Path]], dict[str, Any]]] = {
    "filter": filter_texts,
    "deduplicate": deduplicate,
    "sample": sample,
    "count words": count_words,
    "vocabulary": vocabulary,
}


def measure(step: str, files: list[Path]) -> dict[str, Any]:
    """Run a step in this process, and return its peak memory and temporary files in MB, and its processor time."""
    ended, largest = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(0.2):
            largest[0] = max(largest[0], _temporary_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.process_time()
    try:
        counts = STEPS[step](files)
    finally:
        ended.set()
        watcher.join()
    return {
        "cpu_seconds": round(time.process_time() - start, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1),
        "temporary_mb": round(largest[0] / 1e6, 1),
        **counts,
    }


def _temporary_bytes() -> int:
    """Return the size of this process's open files that have no name any more, as SQLite's temporary files on Linux."""
    total = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if descriptor.readlink().name.endswith(" (deleted)"):
                total += descriptor.stat().st_size
        except OSError:  # closed in the meantime
            continue
    return total


def render(report: dict[str, Any]) -> str:
    """Return the page of a report, as Markdown."""
    from edgeembed.vocabulary.wordpiece import MAX_WORDS

    counts = sorted({row["sentences"] for row in report["rows"]})
    titles = {"peak_mb": "peak MB", "cpu_seconds": "processor time, seconds", "temporary_mb": "temporary files, MB"}
    tables = []
    for key, title in titles.items():
        lines = [f"| {title} | {' | '.join(f'{count:,}' for count in counts)} |", f"|---|{'---:|' * len(counts)}"]
        for step in report["steps"]:
            cells = {row["sentences"]: row[key] for row in report["rows"] if row["step"] == step}
            lines.append(f"| {step} | {' | '.join(f'{cells[count]:,.0f}' for count in counts)} |")
        tables.append("\n".join(lines))
    return _PAGE.format(
        command=report["command"],
        cpu=report["machine"]["cpu"],
        exponent=_EXPONENT,
        tables="\n\n".join(tables),
        sample=SAMPLE,
        vocabulary=VOCABULARY,
        words=MAX_WORDS,
    )


@click.command()
@click.option("--file-sentences", default=1_000_000, help="Sentences in each file.")
@click.option("--files", "file_counts", default=[1, 3, 10], multiple=True, help="Numbers of files to read.")
@click.option("--out", default=_RESULTS, type=click.Path(path_type=Path), help="The folder of the results.")
@click.option("--step", hidden=True, type=click.Choice([*STEPS, "write"]), help="Run only this step, in this process.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(  # one parameter for each option
    file_sentences: int, file_counts: list[int], out: Path, step: str | None, paths: tuple[Path, ...]
) -> None:
    """Run each step in a fresh process, and write the results."""
    if step == "write":
        write_files(paths[0], max(file_counts), file_sentences)
        return
    if step:
        click.echo(json.dumps(measure(step, list(paths))))
        return
    rows = []
    command = [sys.executable, "-m", "experiments.scale.corpus_scale"]
    with tempfile.TemporaryDirectory() as folder:
        size = ["--file-sentences", str(file_sentences), "--files", str(max(file_counts))]
        subprocess.run([*command, "--step", "write", *size, folder], check=True)  # noqa: S603  # this file
        files = sorted(map(str, Path(folder).iterdir()))
        for count in file_counts:
            for name in STEPS:
                output = subprocess.check_output([*command, "--step", name, *files[:count]])  # noqa: S603  # this file
                rows.append({"step": name, "sentences": count * file_sentences, **json.loads(output)})
                click.echo(json.dumps(rows[-1]), err=True)
    report = {
        "command": " ".join(["python -m experiments.scale.corpus_scale", *sys.argv[1:]]),
        "machine": asdict(this_machine()),
        "steps": list(STEPS),
        "rows": rows,
    }
    (out / "corpus-scale.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (out / "corpus-scale.md").write_text(render(report), encoding="utf-8")


if __name__ == "__main__":
    main()
