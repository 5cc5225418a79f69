"""Files and directories that appear complete or not at all."""

import json
import os
import socket
import stat
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.base.files import (
    errors_as,
    has_format,
    new_directory,
    new_file,
    obstacle,
    open_parquet,
    parents,
    read_manifest,
    reason,
    write_json,
)
from timers.errors import ParameterError, TimerError


class SomeError(TimerError, ValueError):
    """Raised by these tests."""


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with new_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        with new_file(path) as other:  # as two attempts at one task may
            other.write_text("another")
        assert path.read_text() == "another"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_process_left_behind_is_removed(tmp_path):
    """Only what ended processes of this machine have left, and nothing that resembles it."""
    process = subprocess.Popen(["true"])
    process.wait()
    ours, code = socket.gethostname(), "0123456789abcdef" * 2
    left = [f".{name}.{ours}-{process.pid}.{code}" for name in ("out", "other")]
    replaced = f"{left[0]}.old"
    kept = [
        f".out.{ours}-{os.getpid()}.{code}",
        f".out.{ours}-{process.pid}.notes",
        f".out.elsewhere-{process.pid}.{code}",
        f"out.{ours}-{process.pid}.{code}",
    ]
    (tmp_path / f".file.{ours}-{process.pid}.{code}").touch()
    for name in (*left, *kept, replaced):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with new_directory(tmp_path / "out") as directory:
        # The only copy of what was to be replaced stays until there is a new one.
        assert names(tmp_path) == sorted([*kept, replaced, directory.name])
    assert names(tmp_path) == sorted([*kept, "out"])


def test_what_a_process_of_another_user_writes_stays(tmp_path, monkeypatch):
    def kill(process, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    other = tmp_path / f".out.{socket.gethostname()}-1.{'0123456789abcdef' * 2}"
    other.mkdir()
    with new_directory(tmp_path / "out"):
        pass
    assert other.is_dir()


def test_a_file_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_file(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    with pytest.raises(TypeError):
        write_json(path, {"x": object()})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"x": float("nan")})
    assert path.read_text() == "old"
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for other in ("directory", "pipe"):  # or a device: /dev/null must stay one
        with pytest.raises(OSError, match="it is not a regular file"):
            write_json(tmp_path / other, {})
    assert names(tmp_path) == ["directory", "file", "pipe"]


def test_a_link_stays_and_what_it_names_is_written(tmp_path):
    disk, file, directory = tmp_path / "disk", tmp_path / "file", tmp_path / "directory"
    disk.mkdir()
    file.symlink_to("disk/file")
    directory.symlink_to("disk/directory")
    for _ in range(2):
        write_json(file, {})
        with new_directory(directory, replace=True):
            pass
        assert file.is_symlink()
        assert directory.is_symlink()
        assert names(disk) == ["directory", "file"]
    assert names(tmp_path) == ["directory", "disk", "file"]


def test_a_directory_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "made"
    with new_directory(path) as directory:
        (directory / "a").touch()
        assert not path.exists()
    assert names(path) == ["a"]
    (tmp_path / "usual").mkdir()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    with new_directory(path, replace=True) as directory:
        (directory / "b").touch()
        assert names(path) == ["a"]
    assert names(path) == ["b"]
    with pytest.raises(OSError, match="another process has"), new_directory(path) as directory:
        (directory / "c").touch()
    with pytest.raises(KeyboardInterrupt), new_directory(path, replace=True):
        raise KeyboardInterrupt
    assert names(path) == ["b"]
    assert names(tmp_path) == ["made", "usual"]


def test_a_directory_that_cannot_be_renamed_leaves_the_old_one(tmp_path):
    path = tmp_path / "made"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(FileNotFoundError), new_directory(path, replace=True) as directory:
        directory.rmdir()
    assert names(tmp_path) == ["made"]
    assert names(path) == ["old"]


def test_reasons_are_one_line_without_a_path():
    assert reason(FileNotFoundError(2, "x\ny", "path")) == "No such file or directory"
    assert reason(ValueError("first\nsecond")) == "first"
    assert reason(ValueError()) == "ValueError"
    assert reason(OSError("no number\nhere")) == "no number"


def test_errors_become_the_callers(tmp_path):
    for error in (OSError(28, "x"), pa.ArrowInvalid("bad\ndata")):
        with (
            pytest.raises(SomeError, match=r"^cannot write x: (No space left on device|bad)$"),
            errors_as(SomeError, "cannot write x"),
        ):
            raise error
    with pytest.raises(ParameterError, match="^own$"), errors_as(SomeError, "cannot write x"):
        raise ParameterError("own")
    with (
        pytest.raises(SomeError, match="nothing does not exist$"),
        open_parquet(tmp_path / "nothing", SomeError),
    ):
        raise AssertionError
    file = tmp_path / "file.parquet"
    file.write_bytes(b"text")
    with (
        pytest.raises(SomeError, match=r"file.parquet is not a readable Parquet file: Parquet"),
        open_parquet(file, SomeError),
    ):
        raise AssertionError
    pq.write_table(pa.table({"number": [1, 2]}), file)
    with (
        pytest.raises(SomeError, match="is not a readable Parquet file: bad$"),
        open_parquet(file, SomeError) as opened,
    ):
        assert opened.metadata.num_rows == 2
        raise pa.ArrowInvalid("bad")


def test_what_stands_in_the_way(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert obstacle(tmp_path / "new" / "deep") is None
    assert obstacle(tmp_path / "file" / "below") == f"{tmp_path / 'file'} is not a directory"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert obstacle(tmp_path / "new") == f"no permission to write in {tmp_path}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not valid JSON: "),
        ("[]", 'is not the manifest of a thing: it lacks "format": "thing"'),
        ('{"format": "other"}', "is not the manifest of a thing"),
        ('{"format": "thing", "version": 2}', "has version 2; this release reads 1"),
        ('{"format": "thing", "version": 1}', "list is missing or not a list"),
        ('{"format": "thing", "version": 1, "list": [], "id": 0.5}', "id is missing or not valid"),
    ],
)
def test_manifests(tmp_path, text, says):
    def read(path):
        return read_manifest(
            path, "a thing", "thing", 1, {"list": list, "id": (int, str)}, SomeError
        )

    file = tmp_path / "manifest.json"
    with pytest.raises(SomeError, match=r"is not a thing: it has no manifest\.json$"):
        read(tmp_path)
    write_json(file, {"format": "thing", "version": 1, "list": [1], "id": "a"})
    assert read(tmp_path) == json.loads(file.read_text())
    assert has_format(file, "thing")
    file.write_text(text)
    with pytest.raises(SomeError) as raised:
        read(tmp_path)
    assert str(raised.value).startswith(str(file))
    assert says in str(raised.value)
    with pytest.raises(SomeError, match="is not a thing: it is not a directory"):
        read(file)
    with pytest.raises(SomeError, match="nothing does not exist"):
        read(tmp_path / "nothing")
    assert not has_format(tmp_path / "nothing", "thing")


def test_missing_parents_are_made_and_removed_with_what_failed(tmp_path):
    with parents(tmp_path / "a" / "b" / "file"):
        (tmp_path / "a" / "b" / "file").touch()
    with pytest.raises(KeyboardInterrupt), parents(tmp_path / "a" / "c" / "d" / "file"):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), parents(tmp_path / "e" / "f" / "file"):
        (tmp_path / "e" / "other").touch()
        raise KeyboardInterrupt
    with new_directory(tmp_path / "g" / "h"):
        pass
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        *("a", "a/b", "a/b/file"),
        *("e", "e/other"),
        *("g", "g/h"),
    ]


def test_an_old_directory_is_never_lost(tmp_path, monkeypatch):
    path = tmp_path / "made"
    path.mkdir()
    (path / "old").touch()
    rename = Path.rename

    def fails_after_the_first(self, target):
        if self != path:
            raise OSError(28, "x")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_after_the_first)
    with pytest.raises(OSError, match="x"), new_directory(path, replace=True):
        pass
    (kept,) = tmp_path.iterdir()
    assert names(kept) == ["old"]
