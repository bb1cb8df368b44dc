"""Samples of several languages: shares, held-out sentences, and memory."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus import LanguageCorpus, label_languages, sample_languages
from edgeembed.corpus.languages import smoothed_shares
from edgeembed.corpus.sampling import DistinctSample


def text(folder: Path, language: str, count: int) -> str:
    file = folder / f"{language}.txt"
    file.write_text("".join(f"{language} sentence {number}\n" for number in range(count)))
    return str(file)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, list[str]]:
    return {"en": [text(tmp_path, "en", 900)], "tr": [text(tmp_path, "tr", 100)]}


def uses(corpus: LanguageCorpus) -> dict[str, int]:
    return {each.language: len(each.training) for each in corpus.languages}


def test_shares_are_exponentiated_and_renormalized() -> None:
    # 0.8 and 0.2 under the square root: 2 to 1.
    assert smoothed_shares({"en": 80, "tr": 20}, 0.5) == pytest.approx({"en": 2 / 3, "tr": 1 / 3})
    assert smoothed_shares({"en": 80, "tr": 20}, 1.0) == pytest.approx({"en": 0.8, "tr": 0.2})
    assert smoothed_shares({"en": 80, "tr": 20}, 0.0) == pytest.approx({"en": 0.5, "tr": 0.5})


@pytest.mark.parametrize("exponent", [-0.1, 1.5, float("nan")])
def test_an_exponent_outside_0_to_1_is_an_error(exponent: float) -> None:
    with pytest.raises(InputError, match=r"smoothing exponent is .*; expected 0, which makes shares equal, to 1"):
        smoothed_shares({"en": 80, "tr": 20}, exponent)


def test_a_label_before_a_source_is_its_language() -> None:
    given = ["en=a.txt", "de=b.tsv#text", "en=pydoc:json", "zh-Hant=folder/c=d.txt"]
    expected = {
        "en": [Path("a.txt"), Path("pydoc:json")],
        "de": [Path("b.tsv#text")],
        "zh-Hant": [Path("folder/c=d.txt")],
    }
    assert label_languages(given) == label_languages([Path(each) for each in given]) == expected


def test_texts_with_equals_signs_have_no_languages() -> None:
    assert label_languages(["x=1", "x=1 for all y", "no label"]) == {}
    assert label_languages("one text") == {}
    with pytest.raises(InputError, match="no text has no language"):
        label_languages([Path("en=a.txt"), Path("no text")])


def test_sources_without_labels_have_no_languages(tmp_path: Path) -> None:
    (tmp_path / "a=b.txt").write_text("a file")
    given = ["a.txt", "-", "pydoc:", "folder/c=d.txt", f"{tmp_path}/a=b.txt"]
    assert label_languages(given) == {}


def test_an_existing_file_name_is_not_split_into_label_and_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en=a.tsv").write_text("text\nA row here.\n")
    assert label_languages(["en=a.tsv", "en=a.tsv#text"]) == {}


def test_labels_on_only_some_sources_are_an_error() -> None:
    with pytest.raises(InputError, match=r"b\.txt has no language .* expected a label .*: en=b\.txt"):
        label_languages(["en=a.txt", "b.txt"])


def test_with_exponent_one_each_sentence_is_used_once(sources: dict[str, list[str]]) -> None:
    corpus = sample_languages(sources, smoothing=1)
    assert uses(corpus) == {"en": 810, "tr": 90}
    assert [len(each.held_out) for each in corpus.languages] == [90, 10]
    for each in corpus.languages:
        assert len({*each.training, *each.held_out}) == each.text_sentences
    assert corpus.counts.to_dict() == {
        "read": 1000, "kept": 1000, "too_short": 0, "too_long": 0, "duplicate": 0, "not_sampled": 0,
    }  # fmt: skip


def test_smoothing_repeats_the_sentences_of_a_small_language(sources: dict[str, list[str]]) -> None:
    corpus = sample_languages(sources, smoothing=0.5)
    # 0.9 and 0.1 under the square root: 3 to 1, of 900 sentences.
    assert uses(corpus) == {"en": 675, "tr": 225}
    english, turkish = corpus.languages
    assert (english.text_share, turkish.text_share) == pytest.approx((0.9, 0.1))
    assert (english.sample_share, turkish.sample_share) == pytest.approx((0.75, 0.25))
    assert len(set(english.training)) == 675
    assert {turkish.training.count(sentence) for sentence in turkish.sentences} == {2, 3}


def test_a_size_limits_the_sample_and_keeps_the_shares(sources: dict[str, list[str]]) -> None:
    assert uses(sample_languages(sources, smoothing=0.5, size=80)) == {"en": 60, "tr": 20}


def test_held_out_sentences_are_not_trained_on_and_do_not_depend_on_the_exponent(tmp_path: Path) -> None:
    sources = {"en": [text(tmp_path, "en", 30_000)], "tr": [text(tmp_path, "tr", 25_000)]}
    first, second = (sample_languages(sources, smoothing=smoothing, seed=3) for smoothing in (1.0, 0.0))
    for one, other in zip(first.languages, second.languages, strict=True):
        assert len(one.held_out) == 2000
        assert one.held_out == other.held_out
        assert not {*one.held_out} & {*one.training}


def test_the_seed_determines_the_sample(sources: dict[str, list[str]]) -> None:
    one, again, other = (sample_languages(sources, smoothing=0.7, size=50, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_dropped_lines_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("A sentence here.\nA  sentence here.\nno\n" + "x" * 2000 + "\nAnother one.\n")
    corpus = sample_languages({"en": [str(file)]}, smoothing=1)
    assert str(corpus.counts) == "5 read, 2 kept, 1 duplicate, 1 too short, 1 too long, 0 not sampled"


def test_a_language_without_text_is_an_error(sources: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="language nl has no usable sentence"):
        sample_languages(sources | {"nl": [str(tmp_path / "empty.txt")]}, smoothing=1)


def test_standard_input_is_an_error_because_text_is_read_twice(sources: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match="language nl comes from standard input, which can be read only once"):
        sample_languages(sources | {"nl": ["-"]}, smoothing=1)


def test_a_size_below_the_number_of_languages_is_an_error(sources: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match="the sample size is 1; expected at least 2, one sentence of each language"):
        sample_languages(sources, smoothing=1, size=1)


def test_a_distinct_sample_ignores_frequencies() -> None:
    stream = [f"rare {number}" for number in range(500)] + [f"often {number}" for number in range(500)] * 20
    sample = DistinctSample(200, seed=0)
    sample.read(stream)
    found = sample.texts()
    assert len(set(found)) == len(found) == 200
    assert sum(each.startswith("rare") for each in found) == pytest.approx(100, abs=25)


def test_a_distinct_sample_ignores_order_and_a_smaller_one_is_its_prefix() -> None:
    stream = [f"text {number}" for number in range(1000)]
    samples = []
    for count, texts in ((300, stream), (300, stream[::-1]), (20, stream)):
        sample = DistinctSample(count, seed=0)
        sample.read(texts)
        samples.append(sample.texts())
    assert samples[0] == samples[1]
    assert samples[0][:20] == samples[2]


def test_memory_is_bounded_by_the_sample() -> None:
    def stream(count: int) -> Iterator[str]:
        return (
            f"{number} is a text of this stream, and it is about as long as a sentence is" for number in range(count)
        )

    peaks = []
    for count in (5_000, 50_000):
        sample = DistinctSample(500, seed=0)
        tracemalloc.start()
        sample.read(stream(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(sample) <= 625
    assert peaks[1] < 1.2 * peaks[0] < 1_000_000


def test_a_corpus_larger_than_its_sample_is_never_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "en.txt"
    with file.open("w") as lines:
        for number in range(15_000):
            lines.write(f"{number} " + "is a line of some two hundred characters " * 5 + "\n")
    tracemalloc.start()
    corpus = sample_languages({"en": [str(file)]}, smoothing=0.7, size=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(corpus.languages[0].training) == 100
    assert file.stat().st_size > 3_000_000
    assert peak < 1_500_000
