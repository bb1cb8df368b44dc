"""Lines of UTF-8 text files, decompressed on the fly."""

import contextlib
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.remote import AnyPath, remote_errors

COMPRESSION_ENDINGS = (".xz", ".gz", ".zst")
_CHUNK_BYTES = 1 << 16


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
        contextlib.closing(_decompressed(raw, path.suffix)) as file,
    ):
        lines = _split_lines(_decompress_zstandard(file)) if path.suffix == ".zst" else file
        yield from decode_lines(lines, name=str(path))


def read_standard_input() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input, numbered from 1.

    Raises:
        InputError: If a line is not UTF-8.
    """
    yield from decode_lines(sys.stdin.buffer, name="standard input")


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield lines of bytes as numbered lines of text. Invalid UTF-8 is an error; nothing is replaced.

    Args:
        lines: Lines that end in a newline byte.
        name: The origin of the lines, for error messages.

    Raises:
        InputError: If a line is not UTF-8.
    """
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name} line {number} is not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x}); "
                "expected UTF-8 text: convert the file, for example with iconv"
            ) from error
        yield number, text.rstrip("\r\n")


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
