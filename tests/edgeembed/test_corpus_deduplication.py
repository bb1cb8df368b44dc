"""Deduplication in temporary files: order, domains, samples, memory, and full disks."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus import deduplication, gather_corpus, stream_corpus, temporary_database
from edgeembed.corpus.deduplication import DistinctTexts
from edgeembed.corpus.sampling import new_rng, sample_stream


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let temporary databases keep no more than 64 KiB in memory."""
    monkeypatch.setattr(temporary_database, "CACHE_KIB", 64)


def repeated(count: int, distinct: int) -> Iterator[tuple[str, int]]:
    return ((f"{number * 7919 % distinct} is the number of this text", number % 5) for number in range(count))


def test_first_occurrences_keep_their_order_and_domain() -> None:
    with DistinctTexts([("b", 0), ("a", 0), ("b", 1), ("\0c", 1), ("a", 2), ("\0d", 2)]) as texts:
        assert list(texts) == [("b", 0), ("a", 0), ("\0c", 1), ("\0d", 2)]
        assert (len(texts), texts.duplicates) == (4, 2)


@pytest.mark.usefixtures("small_cache")
def test_more_texts_than_the_cache_holds_are_deduplicated_alike() -> None:
    expected: dict[str, int] = {}
    for text, domain in repeated(60_000, 50_000):
        expected.setdefault(text, domain)
    with DistinctTexts(repeated(60_000, 50_000)) as texts:
        assert dict(texts) == expected
        assert list(texts) == list(expected.items())
        assert (len(texts), texts.duplicates) == (50_000, 10_000)


_TURKISH = """
from tokenizers import normalizers
from edgeembed.corpus.deduplication import DistinctTexts
from edgeembed.vocabulary.word_counts import WordCounts
with DistinctTexts([("b", 0), ("a", 0), ("b", 1)]) as texts:
    print(len(texts), texts.duplicates, *texts)
with WordCounts(["one word", "one"], normalizers.BertNormalizer()) as counts:
    print(*counts)
"""


def test_texts_and_words_are_counted_in_a_turkish_locale(tmp_path: Path) -> None:
    build = ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(tmp_path / "tr_TR.UTF-8")]
    if not shutil.which("localedef") or subprocess.run(build, check=False, capture_output=True).returncode > 1:
        pytest.skip("no Turkish locale can be built here")
    environment = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "tr_TR.UTF-8"}
    run = subprocess.run([sys.executable, "-c", _TURKISH], env=environment, check=False, capture_output=True, text=True)
    assert run.stdout == "2 1 ('b', 0) ('a', 0)\n('one', 2) ('word', 1)\n", run.stderr


def test_an_error_of_the_stream_is_raised_unchanged() -> None:
    def texts() -> Iterator[tuple[str, int]]:
        yield "a text", 0
        raise InputError("line 2 is not UTF-8")

    with pytest.raises(InputError, match=r"^line 2 is not UTF-8$"):
        DistinctTexts(texts())


@pytest.mark.usefixtures("small_cache")
def test_a_full_disk_is_an_error_that_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication, "_SCHEMA", f"PRAGMA max_page_count = 50; {deduplication._SCHEMA}")
    with pytest.raises(InputError, match=r"temporary files: database or disk is full; expected free space .* TMPDIR"):
        DistinctTexts(repeated(10_000, 10_000))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files with equal lines in themselves and in each other."""
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for number, path in enumerate(paths):
        path.write_text("".join(f"sentence {line * (number + 3) % 500}\n" for line in range(400)))
    return paths


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("limit_per_source", [None, 50])
def test_samples_are_those_of_a_deduplication_in_memory(
    files: list[Path], limit: int | None, limit_per_source: int | None
) -> None:
    seen: set[str] = set()
    samples: list[str] = []
    for number, path in enumerate(files):
        distinct = [text for text in dict.fromkeys(path.read_text().splitlines()) if text not in seen]
        seen.update(distinct)
        samples += sample_stream(distinct, limit_per_source, new_rng(f"3 {number}"))
    expected = list(sample_stream(samples, limit, new_rng(3)))
    corpus = gather_corpus(files, limit=limit, limit_per_source=limit_per_source, seed=3)
    assert corpus.sentences == expected
    assert corpus.counts.read == 1200
    assert corpus.counts.duplicate == 1200 - len(seen)


def test_a_stream_can_be_read_again(files: list[Path]) -> None:
    gathered = gather_corpus(files)
    with stream_corpus(files) as sentences:
        assert list(sentences) == list(sentences) == gathered.sentences
        assert dict(sentences.with_domains()) == gathered.domains
        assert sentences.counts == gathered.counts
        assert len(sentences) == gathered.counts.kept


PEAK = """
import resource, sys
from edgeembed.corpus.deduplication import DistinctTexts
count = int(sys.argv[1])
stream = ((f"{number * 7919 % 400_000} is the number of this text of a long corpus", 0) for number in range(count))
with DistinctTexts(stream) as texts:
    assert sum(1 for _ in texts) == min(count, 400_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is counted in other units, or not at all")
def test_peak_memory_does_not_grow_with_the_texts() -> None:
    def peak_kib(count: int) -> int:
        command = [sys.executable, "-c", PEAK, str(count)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    small, large = peak_kib(300_000), peak_kib(1_200_000)
    assert large < 1.1 * small  # a set of their digests would need 100 MB more
