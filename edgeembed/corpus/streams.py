"""Text files as streams of lines: compression undone, UTF-8 checked."""

import contextlib
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError

COMPRESSION_ENDINGS = (".xz", ".gz", ".zst")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give a text file's lines, decompressed by the file's ending, one in memory at a time.

    Args:
        path: A UTF-8 file, plain or compressed (.xz, .gz, .zst).

    Yields:
        The line's number, from 1, and its text without the line end.

    Raises:
        InputError: If the file cannot be opened, its compression is broken, or a line is not UTF-8.
    """
    with _readable_errors(path), _opened(path) as file:
        yield from decode_lines(file, name=str(path))


def read_standard_input() -> Iterator[tuple[int, str]]:
    """Give the lines of standard input, numbered from 1.

    Raises:
        InputError: If a line is not UTF-8.
    """
    yield from decode_lines(sys.stdin.buffer, name="standard input")


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Give lines of bytes as text.

    Args:
        lines: Lines that end in a newline byte.
        name: What errors call the origin of the lines.

    Raises:
        InputError: If a line is not UTF-8; nothing is replaced in silence.
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
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} cannot be decompressed ({error}); expected a whole {path.suffix} file: fetch it again"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; give a file that can") from error


def _opened(path: Path) -> io.BufferedIOBase:
    match path.suffix:
        case ".xz":
            return lzma.LZMAFile(path)
        case ".gz":
            return gzip.GzipFile(path)
        case ".zst":
            return io.BufferedReader(_ZstandardFile(path))
        case _:
            return path.open("rb")


class _ZstandardFile(io.RawIOBase):
    """Decompresses frame after frame; unlike zstandard's own reader it refuses a file cut off in a frame."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._file = path.open("rb")
        self._frame = self._new_frame()
        self._started = False
        self._decoded = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        while not self._decoded and (encoded := self._next_input()):
            self._decoded = self._decode(encoded)
        count = min(len(buffer), len(self._decoded))
        buffer[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()

    def _next_input(self) -> bytes:
        if self._frame.eof:
            encoded = bytes(self._frame.unused_data)
            self._frame, self._started = self._new_frame(), False
            if encoded:
                return encoded
        encoded = self._file.read(1 << 16)
        if not encoded and self._started:
            raise EOFError("the file ends in the middle of a frame")
        return encoded

    def _decode(self, encoded: bytes) -> bytes:
        self._started = True
        try:
            return bytes(self._frame.decompress(encoded))
        except self._error as error:
            raise EOFError(str(error)) from error
