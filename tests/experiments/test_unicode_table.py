"""The runtime's table of characters is the one that the installed package `tokenizers` has."""

import json
import zlib
from base64 import b64decode

import pytest
from edgeembed_runtime.tokenization.unicode_table import TABLE

from experiments.runtime.unicode_table import unicode_table


@pytest.mark.slow
def test_the_table_is_that_of_the_installed_library() -> None:
    assert json.loads(zlib.decompress(b64decode(TABLE))) == unicode_table()
