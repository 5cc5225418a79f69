import shutil
import struct

import numpy as np
import pytest
from hypothesis import given

from compare.cli.main import main
from compare.traffic.tapes.flat import (
    NANOSECONDS,
    export,
    layout,
    read_flat,
    tape_name,
    write_flat,
)
from compare.traffic.tapes.tape import CANCEL, START, TapeError, id_space_of
from compare.traffic.tapes.trace import open_trace, write_trace
from tests.compare.small_tapes import tape_of, tapes
from tests.words import one_line

TAPE = tape_of((3, START, 1, 2**63 - 1), (4, CANCEL, 1, 0), (4, START, 0, 9))


def same(one, other):
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


def test_the_bytes_are_those_of_the_specification(tmp_path):
    """Also on a machine with another byte order."""
    path = tmp_path / "some.tape"
    write_flat(path, TAPE, id_space=2, unit="us", phases=(0, 2))
    expected = b"WHLTAPE\0" + struct.pack("<7q", 1, 1000, 3, 2, 3, 2, 0)
    expected += struct.pack("<2q", 0, 2)
    expected += struct.pack("<3q", 3, 4, 4)
    expected += struct.pack("<3b5x", START, CANCEL, START)
    expected += struct.pack("<3i4x", 1, 1, 0)
    expected += struct.pack("<3q", 2**63 - 1, 0, 9)
    assert path.read_bytes() == expected


@given(tape=tapes())
def test_a_tape_is_read_as_it_was_written(tmp_path_factory, tape):
    path = tmp_path_factory.mktemp("flat") / "some.tape"
    for unit in NANOSECONDS:
        write_flat(path, tape, id_space=id_space_of(tape), unit=unit)
        flat = read_flat(path)
        assert same(flat.tape, tape)
        assert (flat.id_space, flat.unit, flat.phases) == (id_space_of(tape), unit, (0,))


def changed(offset, number):
    return lambda data: data[:offset] + struct.pack("<q", number) + data[offset + 8 :]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:40], "is not a tape: it has 40 bytes"),
        (changed(0, 7), "is not a tape: it begins with"),
        (changed(8, 2), "is a tape of version 2; this release reads 1"),
        (changed(16, 12), "has a damaged header"),
        (changed(24, -1), "has a damaged header"),
        (changed(24, 4), "is cut short"),
        (lambda data: data[:-8], "is cut short: it has 136 bytes of 144"),
        (changed(layout(3, 1)[0][0], 5), "row 1: time 4 is before 5"),
        (changed(32, 1), "row 0: id 1 is outside"),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, change, says):
    path = tmp_path / "some.tape"
    write_flat(path, TAPE, id_space=2, unit="ms")
    path.write_bytes(change(path.read_bytes()))
    with one_line(TapeError, f"some.tape:? {says}"):
        read_flat(path)


def test_a_missing_file_is_one_line(tmp_path):
    with one_line(TapeError, "cannot read .*nothing: No such file"):
        read_flat(tmp_path / "nothing")


def test_a_trace_is_exported_shard_by_shard(tmp_path, monkeypatch):
    monkeypatch.setattr("compare.traffic.tapes.blocks.BLOCK", 2)
    empty = tape_of()
    trace = write_trace(tmp_path / "trace", [TAPE, empty], unit="s", source={})
    files = export(trace, tmp_path / "deep" / "tapes")
    assert [file.name for file in files] == [tape_name(0), tape_name(1)]
    for file, tape in zip(files, (TAPE, empty), strict=True):
        assert same(read_flat(file).tape, tape)
        assert read_flat(file).unit == "s"


def test_the_command_exports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_trace("some.trace", [TAPE], unit="ms", source={})
    assert main(["export", "some.trace", "--out", "tapes"]) == 0
    assert capsys.readouterr().out == "tapes: 1 tape, 3 operations\n"
    assert same(read_flat("tapes/shard-00000.tape").tape, open_trace("some.trace").load())
    assert main(["export", "some.trace", "--out", "tapes"]) == 2
    assert "tapes exists; choose another path" in capsys.readouterr().err


def test_nothing_half_written_is_left(tmp_path):
    trace = write_trace(tmp_path / "trace", [TAPE, TAPE], unit="s", source={})
    shutil.rmtree(trace.blocks.path)
    with pytest.raises(ValueError, match="is not a directory"):
        export(trace, tmp_path / "tapes")
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace"]
