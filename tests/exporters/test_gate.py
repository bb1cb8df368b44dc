import numpy as np
import pytest
from edgeembed_exporters.gate import GateError, check_parity, check_size, measure_parity


def test_parity_is_the_cosine_sentence_by_sentence() -> None:
    expected = np.array([[1, 0], [0, 2], [3, 4]], dtype=np.float32)
    given = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    parity = measure_parity(["a", "b", "c"], expected, given)
    assert parity.worst_cosine == pytest.approx(0.6)
    assert parity.mean_cosine == pytest.approx(2.6 / 3)
    assert parity.worst_sentences[0].text == "c"


def test_at_most_five_worst_sentences_are_kept() -> None:
    vectors = np.ones((9, 2), dtype=np.float32)
    assert len(measure_parity([str(i) for i in range(9)], vectors, vectors).worst_sentences) == 5


@pytest.mark.parametrize("vector", [[0.0, 0.0], [np.nan, 1.0], [-1.0, 0.0]])
def test_a_broken_vector_does_not_pass(vector: list[float]) -> None:
    parity = measure_parity(["text"], np.array([[1, 0]], np.float32), np.array([vector], np.float32))
    with pytest.raises(GateError, match=r"demanded is 0\.5.*'text'"):
        check_parity(parity, 0.5)


def test_a_megabyte_is_a_million_bytes() -> None:
    check_size(1_000_000, 1)
    check_size(10**12, None)
    with pytest.raises(GateError, match="at most 1"):
        check_size(1_000_001, 1)
