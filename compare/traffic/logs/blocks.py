"""Files of a log and their blocks: consecutive bytes that are read at a time.

A plain file is cut at line ends, and its blocks are read independently. A compressed file, a pipe,
and a format whose records may contain line ends are one stream of blocks.
"""

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.fs import FileSystem

from compare.base.files import errors_as, reason
from timers import TimerError

BLOCK = 1 << 22
"""Bytes of a block, about: its last line is whole."""
LONGEST_LINE = 1 << 24
"""Bytes of a line, by default. A longer one is rejected without being held in memory."""
HEAD_BYTES = 1 << 20
"""Uncompressed bytes from which the format of a file is determined."""
STDIN = "-"

_STORES = ("s3://", "gs://")
"""Prefixes of URIs that Arrow can read. Trying one that cannot be reached takes seconds."""
_GIVE_UP = "retry_limit_seconds=5"

UTF_16 = "UTF-16"


class _Utf16:
    """A file of UTF-16 that is read as UTF-8."""

    def __init__(self, file: Any) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder("utf-16")()
        self._held = b""

    def read(self, size: int) -> bytes:
        """Read `size` bytes of UTF-8; fewer only at the end."""
        while len(self._held) < size:
            data = self._file.read(size)
            self._held += self._decoder.decode(data, final=not data).encode(errors="replace")
            if not data:
                break
        text, self._held = self._held[:size], self._held[size:]
        return text


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "xz": lzma.open,
    "zstd": lambda file: pa.input_stream(pa.PythonFile(file), compression="zstd"),
    UTF_16: _Utf16,
}
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}
_UNKNOWN = {b"PK\x03\x04": "zip"}
_LONGEST_MAGIC = 6
_UTF_8, _LATIN_1 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]|[\x80-\x9f]"), re.compile(rb"[\xa0-\xff]")


class LogError(TimerError, ValueError):
    """A log cannot be read as asked."""


class EmptyError(LogError):
    """A file has no data."""


def printable(text: str) -> str:
    """Replace the characters of a log's text that cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)


def count_byte(data: bytes, character: bytes) -> int:
    """The number of times that a character is in some data. NumPy is faster than `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord(character)))


def lines_of(data: bytes) -> pa.Array:
    """The lines of some data, as `splitlines`."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).astype(np.int32)
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, np.int32(len(data)))
    # Every second text is a line end.
    offsets = np.concatenate([[0], np.stack([ends, ends + 1], axis=1).ravel()]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data + b"\n")]
    texts = pa.Array.from_buffers(pa.binary(), 2 * len(ends), buffers)
    return texts.take(np.arange(0, 2 * len(ends), 2))


@dataclass
class Source:
    """A file whose head has been read."""

    name: str
    compression: str | None  # or UTF_16, which is read in the same way
    head: bytes  # uncompressed
    stream: Any = field(default=None, repr=False)  # behind the head of a pipe
    line_end: bytes = b"\n"
    encoding: str = "utf-8"  # or latin-1
    envelope: str = ""  # around each line; see `formats.envelopes`
    longest_line: int = LONGEST_LINE  # bytes, at least BLOCK

    @property
    def cut_off(self) -> bool:
        """True if the file may be longer than its head."""
        return len(self.head) == HEAD_BYTES

    def utf8(self, data: bytes) -> bytes:
        """Some data in UTF-8."""
        return data if self.encoding == "utf-8" else data.decode(self.encoding).encode()

    @property
    def seekable(self) -> bool:
        """True if it can be read from any byte."""
        return self.stream is None and self.compression is None


class Block(NamedTuple):
    """A part of a file."""

    first: int  # its first byte or row, uncompressed
    length: int  # lines that begin in these bytes; or the number of a row group
    data: bytes | None = None  # of a stream
    too_long: bool = False  # whether it is a line that is not read; its data is empty then
    year: Any = None  # of times without one, at its beginning: `numbers.Year`
    context: Any = None  # of a format: what the bytes before say, or the rows themselves


_PIPES: dict[str, Source] = {}
"""Pipes that are open: their head has been read and cannot be read again."""


def open_source(name: str) -> Source:
    """Read the head of a file, a pipe, or standard input (`-`). Raises LogError."""
    if name in _PIPES:
        return _PIPES[name]
    with errors_as(LogError, f"cannot read {name}"):
        file = opened(name)
        source, stream = head_of(name, file)
        if file.seekable():
            file.close()
        else:
            source.stream = stream
            _PIPES[name] = source
    return source


def head_of(name: str, file: Any) -> tuple[Source, Any]:
    """Read the head of an open file; the second value is what follows. Raises LogError."""
    start = file.peek(_LONGEST_MAGIC)
    if not start:
        raise EmptyError(f"{name} is empty")
    for magic, other in _UNKNOWN.items():
        if start.startswith(magic):
            raise LogError(
                f"{name} is compressed with {other}; a log is plain or compressed with"
                f" {', '.join(kind for kind in _OPENERS if kind != UTF_16)}"
            )
    compressions = (kind for magic, kind in _MAGIC.items() if start.startswith(magic))
    source = Source(name, next(compressions, None), b"")
    stream = decompressed(file, source)
    source.head = read_some(stream, source, HEAD_BYTES)
    if b"\n" not in source.head and b"\r" in source.head:
        source.line_end = b"\r"
    source.encoding = _encoding(source.head)
    return source, stream


def _encoding(head: bytes) -> str:
    """Latin-1 if that is plain: letters beyond ASCII, and none of them is one of UTF-8."""
    is_utf8 = head.isascii() or _UTF_8.search(head) or not _LATIN_1.search(head)
    return "utf-8" if is_utf8 else "latin-1"


def opened(name: str) -> Any:
    """Open a path, a URI that Arrow can read, or standard input."""
    if name == STDIN:
        return sys.stdin.buffer
    if "://" in name:
        # Arrow tries for 15 minutes to reach Google's store.
        limit = "&?"["?" not in name] + _GIVE_UP if name.startswith("gs://") else ""
        system, path = FileSystem.from_uri(name + limit)
        return io.BufferedReader(system.open_input_file(path), HEAD_BYTES)
    if not Path(name).exists():
        raise LogError(f"{name} does not exist")
    return Path(name).open("rb", HEAD_BYTES)


def decompressed(file: Any, source: Source) -> Any:
    """The uncompressed bytes of an open file."""
    return file if source.compression is None else _OPENERS[source.compression](file)


def read_some(stream: Any, source: Source, size: int) -> bytes:
    """Read up to `size` bytes, fewer only at the end. Raises LogError for damaged data."""
    try:
        return bytes(stream.read(size))
    except (
        *(OSError, EOFError, UnicodeError),
        *(zlib.error, lzma.LZMAError, pa.ArrowException),
    ) as error:
        kind = source.compression
        what = f"has damaged {kind} data:" if kind else "cannot be read:"
        raise LogError(f"{source.name} {what} {reason(error)}") from None


Cut = Callable[[bytes, bool], int]
"""Return how many bytes of some data are whole records: all of them, if these are the last."""


def stream_blocks(source: Source, cut: Cut, *, lines: bool) -> Iterator[Block]:
    """Read a file as one stream of blocks of records, which are one or more lines each or none.

    A line that is too long is a block of its own. Memory: two lines of the longest kind. Raises
    LogError if a record without `lines` is too long.
    """
    first, held, stream = 0, source.head, source.stream
    _PIPES.pop(source.name, None)
    if stream is None:
        held, stream = b"", decompressed(opened(source.name), source)
    longest, line_end = source.longest_line, source.line_end
    is_end = False
    while True:
        if lines and len(held) > longest and held.find(line_end, 0, longest + 1) < 0:
            size, held = _skipped_line(stream, source, held)
            yield Block(first, size, b"", too_long=True)
            first += size
        size = cut(held, is_end)
        if not size and len(held) > longest:
            if not lines:
                raise LogError(f"{source.name} has a record of more than {longest:,} bytes")
            size = held.find(line_end) + 1  # the first line of a record without an end
        if size:
            yield Block(first, size, held[:size])
        first, held = first + size, held[size:]
        if is_end:
            return
        # A record may be longer than a block: look for its end again when the data has doubled.
        more = read_some(stream, source, max(BLOCK - len(held), len(held)))
        held, is_end = held + more, not more


def _skipped_line(stream: Any, source: Source, data: bytes) -> tuple[int, bytes]:
    """Read to the end of a line: the number of its bytes, and the data behind it."""
    size = 0
    while data:
        end = data.find(source.line_end) + 1
        if end:
            return size + end, data[end:]
        size += len(data)
        data = read_some(stream, source, BLOCK)
    return size, b""


def file_blocks(source: Source) -> Iterator[Block]:
    """Divide a plain file into blocks that are read by `load`."""
    with opened(source.name) as file:
        size = file.seek(0, io.SEEK_END)
    for first in range(0, size, BLOCK):
        yield Block(first, min(BLOCK, size - first))


def _plain(name: str) -> str:
    """A name without `file://`, which stands for this machine."""
    return name.removeprefix("file://")


def is_readable(name: str) -> bool:
    """True for a path, or a URI of a file that Arrow can read, if it can be reached.

    Directories and patterns at URIs are Spark's.
    """
    if "://" not in _plain(name):
        return True
    # Behind `?name=` stand options of Arrow's.
    if re.search(r"[*\[{]|\?(?!\w+=)", name) or name.endswith("/"):
        return False
    if name.startswith(_STORES):
        return True
    try:
        return FileSystem.from_uri(name) is not None
    except (pa.ArrowException, OSError):
        return False


def load(source: Source, block: Block) -> tuple[bytes, bool]:
    """Read the lines that begin in a block of a plain file.

    The last one is left out if it is too long, and the second value is then True.
    """
    line_end, longest = source.line_end, source.longest_line
    begin, end = block.first, block.first + block.length
    with errors_as(LogError, f"{source.name} cannot be read"), opened(source.name) as file:
        if begin:  # a line begins behind a line end
            file.seek(begin - 1)
            skipped = file.readline(block.length).find(line_end)
            if skipped < 0:
                return b"", False
            begin += skipped
        file.seek(end - 1)
        rest = file.readline(longest + 1)
        end += (rest.find(line_end) + 1 or len(rest)) - 1
        # The bytes are read once both ends are known, because to copy them takes as long.
        file.seek(begin)
        data: bytes = file.read(end - begin)
    if not rest or len(data) < end - begin:
        raise LogError(f"{source.name} became shorter while it was read")
    last = data.rfind(line_end, 0, -1) + 1
    if len(data) - last - data.endswith(line_end) > longest:
        return data[:last], True
    return data, False


def expand(names: list[str]) -> list[str]:
    """The files of paths, directories and patterns, each once.

    Of a directory with partitions, such as `dt=2026-11-28/hour=3/`, it takes what is in these.

    Raises:
        LogError: if a directory or pattern has none.
    """
    files: dict[str, None] = {}
    for name in names:
        name = _plain(name)
        path = Path(name)
        matches = [name]
        if name != STDIN and "://" not in name and not path.exists() and set("*?[") & set(name):
            # Absolute ones, too.
            matches = sorted(glob(name, recursive=True))  # noqa: PTH207
            if not matches:
                raise LogError(f"no file matches {name}")
        for match in matches:
            inside = _files_in(Path(match)) if match != STDIN and Path(match).is_dir() else [match]
            if not inside and matches == [name]:
                raise LogError(f"{name} is a directory without logs")
            files |= dict.fromkeys(inside)
        if not files:
            raise LogError(f"no file matches {name}")
    return list(files)


def _files_in(directory: Path) -> list[str]:
    """The visible files in a directory, and in its partitions."""
    files: list[str] = []
    for entry in sorted(directory.glob("[!._]*")):
        if entry.is_file():
            files.append(str(entry))
        elif "=" in entry.name and entry.is_dir():
            files += _files_in(entry)
    return files
