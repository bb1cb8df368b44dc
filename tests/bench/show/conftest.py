"""What all tests of how a report is shown share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_resamples() -> Iterator[None]:
    """Makes intervals cheap: how they are written is what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgeembed_bench.estimates._RESAMPLES", 99)
        yield
