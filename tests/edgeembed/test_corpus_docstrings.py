"""Docstrings as a corpus: found without running code, and split into sentences."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus import Docstring, docstrings, gather_corpus, read_corpus, split_sentences
from edgeembed.corpus.sentences import looks_like_language, split_paragraph


def sentences(docstring: str) -> list[str]:
    return list(split_sentences(docstring))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace site-packages by an empty folder."""
    find = sysconfig.get_path
    monkeypatch.setattr(
        sysconfig, "get_path", lambda name: str(tmp_path) if name in ("purelib", "platlib") else find(name)
    )
    return tmp_path


def test_the_standard_library_has_thousands_of_sentences(packages: Path) -> None:
    counts = gather_corpus(["pydoc:"]).counts
    assert counts.kept > 10_000


def test_modules_can_be_selected() -> None:
    names = [found.name for found in docstrings(["json", "email.utils"])]
    assert "json.decoder.JSONDecoder.decode" in names
    assert "email.utils.make_msgid" in names
    assert all(name.startswith(("json", "email.utils")) for name in names)


def test_builtins_and_c_modules_are_documented_too() -> None:
    names = {found.name for found in docstrings(["builtins", "math", "os"])}
    assert {"open", "str.split", "len", "math.sqrt", "os.listdir", "os.walk"} <= names


def test_names_are_unique_and_in_a_fixed_order() -> None:
    names = [found.name for found in docstrings(["datetime", "functools", "io"])]
    assert len(names) == len(set(names))
    assert names == [found.name for found in docstrings(["datetime", "functools", "io"])]


def test_only_public_names_are_read() -> None:
    names = [found.name for found in docstrings(["collections", "threading"])]
    assert not [name for name in names if any(part.startswith("_") for part in name.split("."))]


def test_an_unknown_module_is_an_error() -> None:
    with pytest.raises(InputError, match="no docstrings of nowhere"):
        list(docstrings(["json", "nowhere"]))


def test_code_is_not_run_and_invalid_files_are_skipped(packages: Path) -> None:
    (packages / "loud.py").write_text('"""A module that must not run."""\nraise SystemExit\n')
    (packages / "broken.py").write_text('"""A module that no Python reads."""\ndef\n')
    (packages / "escape.py").write_text('"""A module with an odd escape: \\d."""\n')
    (packages / "half.py").write_text('"""Half of a pair: \\ud800."""\n')
    (packages / "_private.py").write_text('"""A private module."""\n')
    (packages / "tests").mkdir()
    (packages / "tests" / "more.py").write_text('"""A test."""\n')
    names = [found.name for found in docstrings(["loud", "escape"])]
    assert names == ["escape", "loud"]
    everything = {found.name for found in docstrings()}
    assert not everything & {"broken", "half", "_private", "tests.more"}


def test_definitions_under_conditions_are_found_but_not_inside_functions(packages: Path) -> None:
    (packages / "shapes.py").write_text(
        "try:\n    import nothing\nexcept ImportError:\n    class Circle:\n        '''A round shape.'''\n"
        "if True:\n    async def draw():\n        '''Draw it.'''\n"
        "        def inner():\n            '''Inner.'''\n"
    )
    assert [found.name for found in docstrings(["shapes"])] == ["shapes.Circle", "shapes.draw"]


def test_a_summary_is_the_first_sentence() -> None:
    assert Docstring("f", "f(x) -> int\n\nReturn the length of it. And more.").summary == "Return the length of it."
    assert Docstring("f", "f(x)").summary == ""


GOOGLE = """Read a file line by line, e.g. a log.

    The lines are given one after
    another. Nothing is kept in memory.

    Args:
        path: The file that is to be read.
        size: How many bytes are
            read at a time.

    Returns:
        The lines of the file.

    Note:
        The file must not be empty.

    Example::

        for line in read(path): print the line
    """

NUMPY = """
    Compute the mean of an array.

    Parameters
    ----------
    a : array_like
        Array that holds the numbers.

    Notes
    -----
    The mean is the sum over the count [1]_.

    See Also
    --------
    median : The middle of the numbers.

    References
    ----------
    .. [1] A book about means and more.
    """

SPHINX = """Open a :class:`~http.client.Connection` to a ``host`` named in `the list <https://x.org>`_.

    :param host: The host that is asked
        for the page.
    :returns: A connection to the host.

    .. note:: The *first* connection is **always** slow.

    .. deprecated:: 3.1
       Use another function for this purpose.

    >>> open_it("here is a host")
    The connection is open now

    +------+------+
    | some | table |
    +------+------+

    * The first item of a list.
    * The second item, which is
      wrapped to two lines.

    ```
    some code in a fence is here
    ```
    """


def test_google_sections_are_dropped_and_notes_are_kept() -> None:
    assert sentences(GOOGLE) == [
        "Read a file line by line, e.g. a log.",
        "The lines are given one after another.",
        "Nothing is kept in memory.",
        "The file must not be empty.",
    ]


def test_numpy_sections_are_dropped_and_notes_are_kept() -> None:
    assert sentences(NUMPY) == ["Compute the mean of an array.", "The mean is the sum over the count."]


def test_sphinx_fields_code_and_tables_are_dropped_and_markup_is_removed() -> None:
    assert sentences(SPHINX) == [
        "Open a Connection to a host named in the list.",
        "The first connection is always slow.",
        "The first item of a list.",
        "The second item, which is wrapped to two lines.",
    ]


def test_paragraphs_are_split_before_capitals_but_not_after_abbreviations() -> None:
    text = "It works, e.g. Linux has it. (Windows too.) See J. Smith et al. 1999! Is it 3.5 or 4.0? Yes."
    assert split_paragraph(text) == [
        "It works, e.g. Linux has it.", "(Windows too.)", "See J. Smith et al. 1999!",
        "Is it 3.5 or 4.0?", "Yes.",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["Return the number of items.", "Don't close it twice (it's an error)."])
def test_sentences_look_like_language(text: str) -> None:
    assert looks_like_language(text)


@pytest.mark.parametrize(
    "text",
    ["", "x = f(a, b=3)", "range(stop) -> range object", "a_b c_d e_f of the", "The options are:",
     "--help -v -q",
     "see https://example.org for all of it", "1 2 3 4 5 6 words in here"],
)  # fmt: skip
def test_code_and_introductions_of_lists_do_not_look_like_language(text: str) -> None:
    assert not looks_like_language(text)


def test_reading_docstrings_imports_no_torch() -> None:
    code = (
        "import sys; from edgeembed.corpus import read_corpus; read_corpus(['pydoc:json']);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_standard_library_can_be_read_alone() -> None:
    library = read_corpus(["pydoc:stdlib"])
    assert "Return the arc cosine (measured in radians) of x." in library
    assert not any("pytest" in sentence for sentence in library[:2000])
    assert len(library) > 10_000
