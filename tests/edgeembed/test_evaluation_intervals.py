"""Confidence intervals of scores, compared with scipy's own functions."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import bootstrap, spearmanr

from edgeembed.evaluation import RetrievalSet, Score, SentencePairs
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.intervals import MIN_ITEMS, RESAMPLES, mean_interval, share_interval, spearman_interval
from edgeembed.evaluation.tasks.retrieval import Retrieval
from edgeembed.evaluation.tasks.sts import STS

Values = npt.NDArray[np.float64]


@pytest.fixture
def pairs() -> tuple[Values, Values]:
    """Sixty similarities and scores, with ties."""
    draw = np.random.default_rng(3)
    first = draw.normal(size=60).round(1)
    return first, (first + draw.normal(size=60)).round()


def test_spearman_interval_is_scipys_percentile_bootstrap(pairs: tuple[Values, Values]) -> None:
    def correlation(first: Values, second: Values) -> float:
        return float(spearmanr(first, second).statistic)

    options = {"paired": True, "vectorized": False, "n_resamples": RESAMPLES, "method": "percentile", "rng": 0}
    expected = bootstrap(pairs, correlation, **options).confidence_interval
    assert spearman_interval(*pairs) == pytest.approx((expected.low, expected.high))


def test_interval_of_a_correlation_has_its_coverage() -> None:
    draw, covered = np.random.default_rng(0), 0
    true = 6 / np.pi * np.arcsin(0.8 / 2)  # Spearman's, of normal variables whose Pearson correlation is 0.8
    for _ in range(30):
        first, noise = draw.normal(size=(2, 150))
        bounds = spearman_interval(first, 0.8 * first + 0.6 * noise)
        assert bounds is not None
        covered += bounds[0] <= true <= bounds[1]
    assert covered >= 26


def test_interval_of_a_mean_is_that_of_a_normal_mean_for_many_values() -> None:
    values = np.random.default_rng(1).normal(size=4000)
    bounds = mean_interval(values)
    assert bounds is not None
    assert bounds[1] - bounds[0] == pytest.approx(2 * 1.96 / np.sqrt(4000), rel=0.1)


def test_interval_of_a_share_is_wilsons_and_has_a_width_at_100_percent() -> None:
    assert share_interval(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    low, high = share_interval(20, 20) or (0, 0)
    assert low < 0.9 < high == 1


def test_too_few_or_constant_items_have_no_interval() -> None:
    few = np.arange(MIN_ITEMS - 1)
    assert spearman_interval(few, few) is None
    assert mean_interval(few) is None
    assert share_interval(3, MIN_ITEMS - 1) is None
    assert spearman_interval([1, *[0] * 11], range(12)) is None  # most resamples miss the one that differs


class _Letters:
    """Counts letters."""

    def encode(self, texts: list[str], /, *, batch_size: int = 32) -> Values:  # noqa: ARG002
        return np.array([[text.count(letter) + 0.1 * len(text) for letter in "abcde"] for text in texts])

    encode_query = encode
    encode_document = encode


def test_reports_show_intervals_and_json_is_null_without() -> None:
    draw = np.random.default_rng(0)
    texts = ["".join(draw.choice(list("abcde"), size=6)) for _ in range(40)]
    pairs = SentencePairs("pairs", texts[:20], texts[20:], np.arange(20.0), None)
    few = SentencePairs("few", texts[:3], texts[3:6], np.arange(3.0), None)
    documents = {str(place): text for place, text in enumerate(texts)}
    queries = {f"q{place}": text[:4] for place, text in enumerate(texts[:12])}
    found = RetrievalSet("set", queries, documents, {f"q{place}": {str(place)} for place in range(12)})
    report = evaluate(_Letters(), [STS(pairs, few), Retrieval(found)])
    sts, without, retrieval = report.models[0].to_dict()["scores"]
    for score in (sts, retrieval):
        low, high = score["interval"]
        assert low < score["value"] < high
    assert without["interval"] is None
    scores, ranked = report.tables
    assert [" ±" in cell for cell in scores.rows[0]] == [False, True, False]
    assert " ±0." in ranked.rows[0][4]
    assert "±: half the width of the 95 % confidence interval" in scores.legend
    assert report.models[0].scores == evaluate(_Letters(), [STS(pairs, few), Retrieval(found)]).models[0].scores


def test_a_score_is_one_line_with_its_margin() -> None:
    assert str(Score("t", "m", 70.0, 9, interval=(68.0, 73.0))) == "t: 70.00 ±2.50 (m)"
    assert str(Score("t", "m", 70.0, 9)) == "t: 70.00 (m)"
