"""The head of a log: its first bytes and lines."""

import gzip
import re
import zlib
from pathlib import Path

from compare.files import errors_as, reason
from timers import TimerError

HEAD_BYTES = 1 << 20
"""The size of the head, in uncompressed bytes."""

OTHER_COMPRESSIONS = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
}


class LogError(TimerError, ValueError):
    """A log cannot be read as asked."""


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file. Raises LogError if it has none or cannot be read."""
    with errors_as(LogError, f"cannot read {path}"):
        if path.is_dir():
            raise LogError(f"{path} is a directory; a log is a file")
        if not path.exists():
            raise LogError(f"{path} does not exist")
        if not path.is_file():
            raise LogError(f"{path} is not a plain file")
        with path.open("rb") as file:
            start = file.read(max(map(len, OTHER_COMPRESSIONS)))
    if not start:
        raise LogError(f"{path} is empty")
    return start


def head_lines(path: Path, compressed: bool) -> list[str]:
    """The lines of the head. Raises LogError if they cannot be read or are not text."""
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise read_error(path, compressed, reason(error)) from None
    if b"\0" in head:
        raise LogError(f"{path} is neither text nor a Parquet file")
    # Hadoop's line ends; Python's splitlines has more.
    lines = re.split("\r\n|\n|\r", head.decode(errors="replace"))
    # The last one may be cut off.
    return lines[:-1] if len(head) == HEAD_BYTES and len(lines) > 1 else lines


def read_error(log: object, compressed: bool, why: str) -> LogError:
    """The error for a log whose data cannot be read."""
    return LogError(
        f"{log} {'is damaged: its gzip data' if compressed else 'cannot be read:'} {why}"
    )
