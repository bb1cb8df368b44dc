"""Lines of UTF-8 text files, decompressed on the fly."""

import codecs
import contextlib
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import BinaryIO, cast

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.remote import AnyPath, remote_errors

COMPRESSION_ENDINGS = (".xz", ".gz", ".zst")
_CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # those of UTF-32 begin with, or hold, the same bytes


def file_ending(path: AnyPath) -> str:
    """Return the ending of a file's name in lower case, without that of its compression: `.tsv` for `A.TSV.gz`."""
    return PurePath(path.stem).suffix.lower() if compression_ending(path) else path.suffix.lower()


def compression_ending(path: AnyPath) -> str:
    """Return the ending of a compressed file in lower case; empty for a file that is not compressed."""
    ending = path.suffix.lower()
    return ending if ending in COMPRESSION_ENDINGS else ""


def read_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, one in memory at a time.

    Args:
        path: A UTF-8 file, plain or compressed (.xz, .gz, .zst), local or remote.

    Yields:
        The line's number, from 1, and its text without the line end.

    Raises:
        InputError: If the file cannot be opened or decompressed, or a line is not UTF-8.
    """
    with (
        _input_errors(path),
        remote_errors(path),
        path.open("rb") as raw,
        contextlib.closing(_decompressed(raw, compression_ending(path))) as file,
    ):
        lines = _split_lines(_decompress_zstandard(file)) if compression_ending(path) == ".zst" else file
        yield from decode_lines(lines, name=str(path))


def read_standard_input() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input, numbered from 1.

    Raises:
        InputError: If standard input is closed, or a line is not UTF-8.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed; expected text to read: leave it open, or give a file")
    yield from decode_lines(sys.stdin.buffer, name="standard input")


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield lines of bytes as numbered lines of text. Invalid UTF-8 is an error; nothing is replaced.

    A byte order mark at the start of a line is dropped: files that were joined have it in the middle, too.

    Args:
        lines: Lines that end in a newline byte.
        name: The origin of the lines, for error messages.

    Raises:
        InputError: If a line is not UTF-8, or holds a NUL, as UTF-16 does.
    """
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            problem = f"is not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x})"
            raise _not_text(f"{name} line {number}", problem, line) from error
        if "\0" in text:
            raise _not_text(f"{name} line {number}", "holds a NUL character", line)
        yield number, text.lstrip(_BYTE_ORDER_MARK).rstrip("\r\n")


def _not_text(where: str, problem: str, line: bytes) -> InputError:
    likely = ", and looks like UTF-16" if line.startswith(_UTF16_MARKS) or b"\0" in line else ""
    return InputError(
        f"{where} {problem}{likely}; expected UTF-8 text: save the file as UTF-8, or convert it, for example with iconv"
    )


@contextlib.contextmanager
def _input_errors(path: AnyPath) -> Iterator[None]:
    try:
        yield
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} cannot be decompressed ({error}); expected a complete {path.suffix} file: get the file again"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; expected a readable file") from error


def _decompressed(file: BinaryIO, suffix: str) -> BinaryIO:
    match suffix:
        case ".xz":
            return cast("BinaryIO", lzma.LZMAFile(file))
        case ".gz":
            return cast("BinaryIO", gzip.GzipFile(fileobj=file))
        case _:
            return file


def _decompress_zstandard(file: BinaryIO) -> Iterator[bytes]:
    """Yield the decompressed chunks of a file. zstandard's own reader accepts a file that is cut off in a frame."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None
    while chunk := file.read(_CHUNK_BYTES):
        while chunk:
            frame = frame or decompressor.decompressobj()
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            chunk = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("the file ends in the middle of a frame")


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest
