"""Write files and directories that are never visible half-written; report errors in one line."""

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
"""The start of every message about a failed write, including those from Spark workers."""

CACHE = "WHEELWORK_PEERS"
"""The environment variable that names the folder for built programs."""

_NAMES: dict[Any, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}


def reason(error: BaseException) -> str:
    """The message of an error in one line, without the path."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def errors_as(error: type[Exception], problem: str) -> Iterator[None]:
    """Raise `error("{problem}: {reason}")` if the block cannot read or write a file."""
    from pyarrow import ArrowException

    try:
        yield
    except TimerError:
        raise
    except (OSError, ArrowException) as cause:
        raise error(f"{problem}: {reason(cause)}") from None


@contextmanager
def open_parquet(
    path: str | os.PathLike[str], error: type[Exception]
) -> Iterator["pq.ParquetFile"]:
    """Open a Parquet file; its checksums are verified as it is read.

    Raises `error` with a one-line message if the file cannot be read, here or in the block.
    """
    import pyarrow.parquet as pq

    if not Path(path).exists():
        raise error(f"{path} does not exist")
    with (
        errors_as(error, f"{path} is not a readable Parquet file"),
        pq.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        yield file


def cache_folder() -> Path:
    """Where programs of other languages are built: $WHEELWORK_PEERS, or in the user's cache."""
    if given := os.environ.get(CACHE):
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "wheelwork", "peers")


def obstacle(path: str | os.PathLike[str]) -> str | None:
    """Return why `path` cannot be created, or None if it can. Parents are checked too."""
    existing = _target(path) if Path(path).is_symlink() else Path(path)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a directory"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"no permission to write in {existing.absolute()}"
    return None


@contextmanager
def parents(path: str | os.PathLike[str]) -> Iterator[None]:
    """Create the missing parents of a path. They are removed if the block fails.

    Temporary files that killed processes have left beside the path are removed, too.
    """
    target = _target(path)
    missing = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # a directory that is not empty stays
            for directory in missing:
                directory.rmdir()
        raise


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path for a file, which is renamed to `path` when the block ends.

    It is removed if the block fails. Two processes may write the same file at the same time; the
    last one to finish wins. A link stays; the file that it names is written. Raises OSError if it
    cannot be written or is not a regular file.
    """
    target = _target(path)
    if target.exists() and not target.is_file():
        raise OSError("it is not a regular file")
    temporary = _temporary(target)
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def new_directory(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Create a temporary directory, and rename it to `path` when the block ends.

    Missing parents are created. Everything is removed if the block fails. With `replace`, it
    replaces an existing directory, which the caller has checked. A link stays; the directory that
    it names is written. Raises OSError if it cannot be created.
    """
    target = _target(path)
    temporary = _temporary(target)
    old = temporary.with_name(temporary.name + _REPLACED)
    with parents(target):
        temporary.mkdir()
        try:
            yield temporary
            if replace and target.exists():
                target.rename(old)
            try:
                temporary.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                elif target.is_dir():
                    raise OSError("another process has written it meanwhile") from None
                raise
            shutil.rmtree(old, ignore_errors=True)
            remove_leftovers(target.parent, _REPLACED)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


_REPLACED = ".old"
"""The suffix of a directory that is being replaced, which for a moment is the only copy."""


def _target(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path))


def _temporary(path: Path) -> Path:
    owner = f"{socket.gethostname()}-{os.getpid()}"
    return path.with_name(f".{path.name}.{owner}.{uuid.uuid4().hex}")


def remove_leftovers(directory: Path, ending: str = "") -> None:
    """Remove the temporary files and directories of processes of this machine that have ended."""
    name = re.compile(rf"\..+\.{re.escape(socket.gethostname())}-(\d+)\.[0-9a-f]{{32}}{ending}")
    with suppress(OSError):  # no permission to read the directory
        for entry in os.scandir(directory):
            if (match := name.fullmatch(entry.name)) and not _is_alive(int(match[1])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:  # PermissionError if it belongs to another user
        return not isinstance(error, ProcessLookupError)
    return True


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    """Write an object as JSON. Readers see the old file or the new one, never a mixture.

    Raises ValueError or TypeError for a value that JSON cannot represent, and OSError.
    """
    text = json_text(value)
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def json_text(value: Mapping[str, Any]) -> str:
    """An object as JSON. Raises ValueError or TypeError for a value that JSON cannot represent."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def has_format(file: Path, format_: str) -> bool:
    """Whether the file is a JSON object with this "format"."""
    with suppress(OSError, ValueError):
        value = json.loads(file.read_text(encoding="utf-8"))
        return isinstance(value, dict) and value.get("format") == format_
    return False


def manifest_text(path: Path, kind: str, error: type[Exception]) -> str:
    """The text of the manifest of the directory `path`.

    `kind` is "a trace" or similar. Raises `error` if the path does not exist or is something else.
    """
    file = path / MANIFEST
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        problem = f"is not {kind}: it has no {MANIFEST}" if path.is_dir() else "does not exist"
        raise error(f"{path} {problem}") from None
    except NotADirectoryError:
        raise error(f"{path} is not {kind}: it is not a directory") from None
    except OSError as cause:
        raise error(f"cannot read {file}: {reason(cause)}") from None
    except ValueError as cause:
        raise error(f"{file} is not valid JSON: {reason(cause)}") from None


def read_manifest(
    path: Path,
    kind: str,
    format_: str,
    version: int,
    entries: Mapping[str, type | tuple[type, ...]],
    error: type[Exception],
) -> dict[str, Any]:
    """The manifest of the directory `path`; see `manifest_text` and `parse_manifest`."""
    text = manifest_text(path, kind, error)
    return parse_manifest(text, path / MANIFEST, kind, format_, version, entries, error)


def parse_manifest(
    text: str,
    file: str | os.PathLike[str],
    kind: str,
    format_: str,
    version: int,
    entries: Mapping[str, type | tuple[type, ...]],
    error: type[Exception],
) -> dict[str, Any]:
    """A manifest, which must have entries of these types; `file` is its name in messages.

    Raises `error` if it is damaged, or of another format or version.
    """
    try:
        manifest = json.loads(text)
    except ValueError as cause:
        raise error(f"{file} is not valid JSON: {reason(cause)}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != format_:
        raise error(f'{file} is not the manifest of {kind}: it lacks "format": "{format_}"')
    if manifest.get("version") != version:
        found = manifest.get("version")
        older = ", of an older release" if isinstance(found, int) and found < version else ""
        raise error(f"{file} has version {found!r}{older}; this release reads {version}")
    for name, types in entries.items():
        if name not in manifest or not isinstance(manifest[name], types):
            raise error(f"{file}: {name} is missing or not {_NAMES.get(types, 'valid')}")
    return manifest
