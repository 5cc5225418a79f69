"""Files and directories that appear complete or not at all, and one-line errors for all others."""

import json
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timers.errors import TimerError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MANIFEST = "manifest.json"
CANNOT_WRITE = "cannot write"
"""How the message of an error in writing begins, also where a Spark worker raises it."""

_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}


def reason(error: BaseException) -> str:
    """What an error says, as one line without the path, which the caller names."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def errors_as(error: type[Exception], what: str) -> Iterator[None]:
    """Raise `error("{what}: {reason}")` for a file that the block cannot read or write."""
    from pyarrow import ArrowException

    try:
        yield
    except TimerError:
        raise
    except (OSError, ArrowException) as cause:
        raise error(f"{what}: {reason(cause)}") from None


@contextmanager
def open_parquet(
    path: str | os.PathLike[str], error: type[Exception]
) -> Iterator["pq.ParquetFile"]:
    """Open a Parquet file; its checksums are verified as it is read.

    Raises `error` with one line for what cannot be read, also by the block.
    """
    import pyarrow.parquet as pq

    if not Path(path).exists():
        raise error(f"{path} does not exist")
    with (
        errors_as(error, f"{path} is not a readable Parquet file"),
        pq.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        yield file


def obstacle(path: str | os.PathLike[str]) -> str | None:
    """Why a file or directory cannot be made at `path`, parents included; None if it can."""
    existing = Path(path)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a directory"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"no permission to write in {existing}"
    return None


@contextmanager
def parents(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make the missing parents of a path. They are removed again if the block fails.

    What processes that were killed have left beside the path is removed.
    """
    missing = [parent for parent in Path(path).parents if not parent.exists()]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(Path(path).parent)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # one that is not empty stays
            for directory in missing:
                directory.rmdir()
        raise


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside `path` for a file, which is renamed when the block ends.

    It is removed if the block fails. Two processes may write the same file at the same time: the
    last one to finish wins.
    """
    temporary = _temporary(Path(path))
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def new_directory(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Make a directory under a temporary name beside `path`, and rename it when the block ends.

    Missing parents are made. Everything is removed when the block fails. With `replace` it takes
    the place of an existing directory; the caller has checked what that is. Raises OSError where it
    cannot be made.
    """
    target = Path(path)
    made = _temporary(target)
    old = made.with_name(made.name + _REPLACED)
    with parents(target):
        made.mkdir()
        try:
            yield made
            if replace and target.exists():
                target.rename(old)
            try:
                made.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
            shutil.rmtree(old, ignore_errors=True)
            _remove_leftovers(target.parent, _REPLACED)
        finally:
            shutil.rmtree(made, ignore_errors=True)


_REPLACED = ".old"
"""What the name of a directory ends with that a new one replaces: its only copy for a moment."""


def _temporary(path: Path) -> Path:
    owner = f"{socket.gethostname()}-{os.getpid()}"
    return path.with_name(f".{path.name}.{owner}.{uuid.uuid4().hex}")


def _remove_leftovers(directory: Path, ending: str = "") -> None:
    """Remove the temporary files and directories of processes of this machine that have ended."""
    name = re.compile(rf"\..+\.{re.escape(socket.gethostname())}-(\d+)\.[0-9a-f]{{32}}{ending}")
    with suppress(OSError):  # of a directory that may not be read
        for entry in os.scandir(directory):
            if (found := name.fullmatch(entry.name)) and not _is_alive(int(found[1])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:  # one of another user may not be signalled
        return not isinstance(error, ProcessLookupError)
    return True


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    """Write an object as JSON; the file is the old one or the new one at every moment.

    Raises ValueError or TypeError for what JSON cannot hold, and OSError.
    """
    text = json.dumps(value, indent=1, allow_nan=False)
    with new_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def has_format(file: Path, format_: str) -> bool:
    """Whether the file is a JSON object whose "format" is this."""
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
        return isinstance(found, dict) and found.get("format") == format_
    return False


def read_manifest(
    path: Path,
    what: str,
    format_: str,
    version: int,
    entries: Mapping[str, type | tuple[type, ...]],
    error: type[Exception],
) -> dict[str, Any]:
    """The manifest of the directory `path`, which must have these entries of these types.

    `what` is "a trace" or the like. Raises `error` for a path that is missing or something else,
    and for a manifest that is damaged or of another format or version.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"is not {what}: it has no {MANIFEST}" if path.is_dir() else "does not exist"
        raise error(f"{path} {problem}") from None
    except NotADirectoryError:
        raise error(f"{path} is not {what}: it is not a directory") from None
    except OSError as cause:
        raise error(f"cannot read {file}: {reason(cause)}") from None
    except ValueError as cause:
        raise error(f"{file} is not valid JSON: {reason(cause)}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != format_:
        raise error(f'{file} is not the manifest of {what}: it lacks "format": "{format_}"')
    if manifest.get("version") != version:
        raise error(f"{file} has version {manifest.get('version')!r}; this release reads {version}")
    for name, kind in entries.items():
        if name not in manifest or not isinstance(manifest[name], kind):
            wanted = _KINDS.get(kind, "of the right type") if isinstance(kind, type) else "valid"
            raise error(f"{file}: {name} is missing or not {wanted}")
    return manifest
