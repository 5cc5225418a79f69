"""From events to a tape: rounding, ids, and files that are damaged or in use."""

# Private members: `_ids` and `_due` are the memory of a tape that is being made.

import fcntl
import json
import random
import subprocess
import sys

import numpy as np
import pytest

from compare.traffic.recording import finish, record, recorder
from compare.traffic.recording.recorder import FILE, FORMAT, SPENT, VERSION, Recorder
from compare.traffic.tapes import recorded
from compare.traffic.tapes.recorded import CANCELLED, FIELDS, MOVED, STARTED, RecordedTape
from compare.traffic.tapes.tape import CANCEL, START, joined, validate
from compare.traffic.tapes.trace import TraceError, open_trace


def test_the_recorder_writes_the_kinds_and_fields_that_are_read():
    ours = recorder.STARTED, recorder.CANCELLED, recorder.MOVED, recorder.FIELDS
    assert ours == (STARTED, CANCELLED, MOVED, FIELDS)


def rows_of(*noted, origin=0.0, piece=None):
    """The tape's rows of (kind, seconds, timer, delay) events, added in pieces."""
    tape, array = RecordedTape(origin), np.array(noted, np.float64).reshape(-1, FIELDS)
    piece = piece or max(len(array), 1)
    joined_tape = joined([tape.add(array[i : i + piece]) for i in range(0, len(array), piece)])
    validate(joined_tape, tape._ids.id_space)
    return list(zip(*(column.tolist() for column in joined_tape), strict=True))


A, B = 2.0**47 - 16, 140_000_000_000_000.0  # addresses


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ([], []),
        # Times are rounded down and deadlines up.
        ([(STARTED, 1.0000019, A, 0.5)], [(1_000_001, START, 0, 1_500_002)]),
        ([(STARTED, 1.0, A, 0.0)], [(1_000_000, START, 0, 1_000_000)]),
        ([(STARTED, 1.0, A, -2.0)], [(1_000_000, START, 0, 0)]),
        ([(STARTED, 0, A, np.inf)], [(0, START, 0, 9 * 10**15)]),
        ([(STARTED, 0, A, -np.inf)], [(0, START, 0, 0)]),
        ([(STARTED, 0, A, np.nan)], [(0, START, 0, 0)]),
        # A cancel before the deadline; the second is none, nor is that of a stranger.
        (
            [
                (STARTED, 1, A, 1),
                (CANCELLED, 1.999, A, 0),
                (CANCELLED, 1.999, A, 0),
                (CANCELLED, 2, B, 0),
            ],
            [(1_000_000, START, 0, 2_000_000), (1_999_000, CANCEL, 0, 0)],
        ),
        # A nanosecond before the deadline, within one unit of it, and at the deadline.
        (
            [(STARTED, 0, A, 1e-6), (CANCELLED, 0.999e-6, A, 0)],
            [(0, START, 0, 1), (0, CANCEL, 0, 0)],
        ),
        ([(STARTED, 0, A, 1e-6), (CANCELLED, 1e-6, A, 0)], [(0, START, 0, 1)]),
        # A re-arm of a timer that was not seen before.
        ([(MOVED, 2, B, 1)], [(2_000_000, START, 0, 3_000_000)]),
        # A new timer at the address of one that has disappeared.
        (
            [(STARTED, 0, A, 9), (STARTED, 1, A, 9), (CANCELLED, 2, A, 0)],
            [
                (0, START, 0, 9_000_000),
                (1_000_000, START, 0, 10_000_000),
                (2_000_000, CANCEL, 0, 0),
            ],
        ),
        # Ids that came free first are taken first.
        (
            [
                (STARTED, 0, A, 1),
                (STARTED, 0, B, 9),
                (CANCELLED, 0.5, B, 0),
                (STARTED, 2, A, 1),
                (STARTED, 2, B, 1),
            ],
            [
                (0, START, 0, 1_000_000),
                (0, START, 1, 9_000_000),
                (500_000, CANCEL, 1, 0),
                (2_000_000, START, 1, 3_000_000),
                (2_000_000, START, 0, 3_000_000),
            ],
        ),
        # A thread that was suspended after it had read the clock.
        (
            [(STARTED, 2, A, 5), (STARTED, 1, B, 5), (CANCELLED, 2.5, B, 0)],
            [
                (2_000_000, START, 0, 7_000_000),
                (2_000_000, START, 1, 6_000_000),
                (2_500_000, CANCEL, 1, 0),
            ],
        ),
    ],
)
def test_rows_of_events(noted, expected):
    assert rows_of(*noted) == expected
    assert rows_of(*noted, piece=1) == expected
    later = [(kind, time + 1000.0, timer, delay) for kind, time, timer, delay in noted]
    if all(delay >= 0 and time == round(time, 3) for _, time, _, delay in noted):
        assert rows_of(*later, origin=1000.0) == expected


def test_the_queue_of_deadlines_is_cleaned(monkeypatch):
    """It is hardly longer than what is pending, though most timers are cancelled long before."""
    dice, noted, pending = random.Random(5), [], []
    for second in range(10_000):
        if len(pending) > 50:
            noted.append((CANCELLED, second, pending.pop(dice.randrange(50)), 0))
        pending.append(float(second))
        noted.append((STARTED, second, float(second), dice.choice([20, 1e6]) * dice.random()))
    expected = rows_of(*noted)
    tape = RecordedTape(0.0)
    tape.add(np.array(noted))
    assert len(tape._due) < 2 * 51 + recorded._FEW + 2
    monkeypatch.setattr(recorded, "_FEW", 10**9)
    assert rows_of(*noted) == expected
    assert sum(row[1] == CANCEL for row in expected) > 3000


def killed(directory, noted):
    """What a program leaves that was killed; returns the size of the header."""
    directory.mkdir()
    header = {"format": FORMAT, "version": VERSION, "origin": 5.0, "source": {"kind": "recording"}}
    line = json.dumps(header).encode() + b"\n"
    (directory / FILE).write_bytes(line + np.array(noted, np.float64).tobytes())
    return len(line)


NOTED = [(STARTED, 6.0, A, 1.0), (STARTED, 6.5, B, 1.0), (CANCELLED, 7.0, B, 0.0)]


def test_a_torn_event_at_the_end_is_ignored(tmp_path):
    for cut in range(8 * FIELDS * len(NOTED) + 1):
        path = tmp_path / str(cut)
        header = killed(path, NOTED)
        with (path / FILE).open("r+b") as file:
            file.truncate(header + cut)
        finish(path)
        trace = open_trace(path)
        assert trace.totals["rows"] == cut // (8 * FIELDS)
        trace.load()
        assert sorted(entry.name for entry in path.iterdir()) == ["manifest.json", trace.run]
    assert trace.load().time.tolist() == [1_000_000, 1_500_000, 2_000_000]


def in_shard(shard, *noted):
    return [(recorder.KINDS * shard + kind, *others) for kind, *others in noted]


def test_each_shard_has_its_own_timers_and_zeros_are_no_events(tmp_path, monkeypatch):
    """As the recorder of JVMs writes them; a shard may have none, and ids are its own."""
    monkeypatch.setattr("compare.traffic.recording.events.BLOCK", 2)
    first, third = in_shard(0, *NOTED), in_shard(2, *NOTED[:2], (MOVED, 7.1, A, 0.5))
    mixed = [event for pair in zip(first, third, strict=True) for event in pair]
    path = tmp_path / "a.trace"
    killed(path, [*mixed, *np.zeros((5, FIELDS))])
    lines = ['{"class": "A", "set_by": "B.c:1"}', '{"class": "B"}', '{"class": "C"}', '{"cla']
    (path / recorder.TIMERS).write_text("\n".join(lines))
    finish(path)
    trace = open_trace(path)
    assert trace.source["timers"] == [*map(json.loads, lines[:3])]
    assert [trace.load(shard).op.tolist() for shard in range(3)] == [
        [START, START, CANCEL],
        [],
        [START, START, START],  # A had fired when it was moved
    ]
    assert trace.load(2).id.tolist() == [0, 1, 0]
    assert sorted(entry.name for entry in path.iterdir()) == ["manifest.json", trace.run]


def test_a_recording_of_a_jvm_goes_on_as_long_as_that_has_its_lock(tmp_path):
    """Its locks are those of fcntl, which flock does not see."""
    path = tmp_path / "a.trace"
    killed(path, NOTED)
    locks = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
    program = [sys.executable, "-c", f"{locks}print(flush=True); sys.stdin.read()", path / FILE]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(TraceError, match="is still being recorded"):
            finish(path)
        process.stdin.close()
    finish(path)
    assert open_trace(path).totals["starts"] == 2


def test_finish_leaves_everything_else_alone(tmp_path):
    finish(tmp_path / "nothing")
    finish(tmp_path)
    (tmp_path / "file").touch()
    finish(tmp_path / "file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("place", ["blocks_of", "remove_unlisted", "UnfinishedTrace.finish"])
def test_an_interrupted_finish_is_repeated(tmp_path, monkeypatch, place):
    def interrupt(*_):
        raise KeyboardInterrupt

    path = tmp_path / "a.trace"
    killed(path, NOTED)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"compare.traffic.recording.events.{place}", interrupt)
        finish(path)
    finish(path)
    assert open_trace(path).totals["rows"] == 3
    assert not (path / FILE).exists()
    assert len(list(path.iterdir())) == 2  # nothing of the first attempt


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "events is not a file of recorded events"),
        (b'{"format": "wheelw', "is not a file of recorded events"),
        (b"\xff\xfe\n", "is not a file of recorded events"),
        (b"[]\n", "is not a file of recorded events"),
        (b'{"format": "other"}\n', "is not a file of recorded events"),
        (b'{"format": "wheelwork-events", "version": 2}\n', "has version 2; this release reads 3"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, data, says):
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(TraceError, match=says):
        finish(tmp_path)
    assert (tmp_path / FILE).read_bytes() == data


def test_what_a_killed_process_had_spent_is_known_from_its_last_word(tmp_path):
    """Its events stay those of timers, and what comes after a torn one is ignored."""
    spent = [(SPENT, 7.0, 2.0, 0.25), (SPENT, 9.5, 6.0, 1.25)]
    killed(tmp_path / "a", [NOTED[0], spent[0], *NOTED[1:], spent[1], NOTED[0]])
    killed(tmp_path / "b", [*NOTED, NOTED[0]])
    for name in ("a", "b"):
        finish(tmp_path / name)
    first, second = (open_trace(tmp_path / name) for name in ("a", "b"))
    usage = {"seconds": 4.5, "cpu_seconds": 1.25, "loops": ["uvloop", "wheel_event_loop"]}
    assert first.source == {"kind": "recording", **usage}
    assert second.source == {"kind": "recording"}
    assert rows_in(first) == rows_in(second)


def rows_in(trace):
    return [column.tolist() for column in trace.load(0)]


def test_the_cpu_time_is_that_of_the_process_without_that_of_the_writing(tmp_path, monkeypatch):
    """The process spends 1.5 s in 4 s, and then each write takes a quarter of a second."""
    spent, written, now = [100.0], [7.0], [50.0]
    monkeypatch.setattr(recorder.time, "process_time", lambda: spent[0] + written[0])
    monkeypatch.setattr(recorder.time, "thread_time", lambda: written[0])
    monkeypatch.setattr(Recorder, "_start_thread", lambda self: None)
    monkeypatch.setattr(Recorder, "_stop_thread", lambda self: None)
    write = Recorder._write

    def slow(self, data):
        write(self, data)
        written[0] += 0.25

    path = tmp_path / "a.trace"
    with record(path, clock=lambda: now[0]):
        monkeypatch.setattr(Recorder, "_write", slow)
        for _ in range(2):
            recorder.current.note((STARTED, now[0], A, 1.0))
            recorder.current._drain()
        spent[0], now[0] = 101.5, 54.0
    source = open_trace(path).source
    assert (source["seconds"], source["cpu_seconds"], source["loops"]) == (4.0, 1.5, [])


def test_a_recording_that_goes_on_is_refused(tmp_path):
    path = tmp_path / "a.trace"
    with record(path):
        with pytest.raises(TraceError, match="is still being recorded"):
            finish(path)
        with (
            pytest.raises(TraceError, match="is still being recorded"),
            (path / FILE).open() as file,
        ):
            fcntl.flock(file, fcntl.LOCK_UN)  # of this descriptor, not of the recorder's
            finish(path)
    assert open_trace(path).totals["rows"] == 0


def test_a_recorder_takes_no_directory_with_events(tmp_path):
    (tmp_path / FILE).write_text("others")
    with pytest.raises(FileExistsError):
        Recorder(str(tmp_path))
    assert (tmp_path / FILE).read_text() == "others"
