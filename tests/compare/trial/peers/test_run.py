"""Every way in which a peer can fail is one line with its name."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.tapes.tape import CANCEL, START
from compare.trial.peers import peer
from compare.trial.peers import run as module
from compare.trial.peers.protocol import (
    BINS,
    Description,
    Limits,
    PeerError,
    PeerRounding,
    PhaseTime,
    bin_end,
    parse_description,
    parse_times,
)
from compare.trial.peers.run import Peer
from tests.compare.small_tapes import tape_of
from tests.compare.trial.peers import wrong
from tests.words import one_line
from timers.limits import LIMIT

TAPE = tape_of(*((0, START, k, k) for k in range(4)))


def peer_of(fault, **settings):
    return Peer((sys.executable, wrong.__file__, fault), fault, **settings)


def script(tmp_path, text):
    """A peer that is a shell script."""
    path = tmp_path / "peer.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Peer((str(path),), "script", timeout=60.0)


def test_a_right_peer_has_no_fault():
    assert peer_of("right").first_fault(TAPE, 4) is None


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("crash", r"^crash: check exits with code 7: first line \| second line \| no place left$"),
        ("half", r"^half: check wrote 36 bytes, which are not whole rows$"),
        ("nofile", r"^nofile: check wrote no rows: No such file or directory$"),
    ],
)
def test_a_failed_check_is_one_line(fault, says):
    with one_line(PeerError, says):
        peer_of(fault).check(TAPE, 4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exit 3", "^script: describe exits with code 3$"),
        ("echo a >&2; echo b >&2; kill -9 $$", r"was killed by SIGKILL: a \| b$"),
        ("printf '\\377'", "describe printed bytes that are not UTF-8$"),
        ("echo '[]'", "describe: describe must print a JSON object$"),
        ("echo hello", "describe: Expecting value"),
        ("", "describe: Expecting value"),
        ("head -c 300000 /dev/zero | tr '\\0' '['", "describe: maximum recursion depth exceeded"),
        ("yes", "^script: describe printed more than 67108864 bytes$"),
        ("printf 'a\\033[31m\\nb' >&2; exit 3", r"exits with code 3: a \[31m \| b$"),
    ],
)
def test_a_failed_describe_is_one_line(tmp_path, text, says):
    with one_line(PeerError, says):
        script(tmp_path, text).describe()


def test_a_peer_that_cannot_be_started_is_one_line(tmp_path):
    for path, says in ((tmp_path / "none", "No such file"), (Path(__file__), "Permission denied")):
        with one_line(PeerError, f"cannot be started: {says}"):
            Peer((str(path),), "absent").describe()


@pytest.fixture
def time_is_up(monkeypatch):
    """Ends the time of peers ten looks at the clock after `ready()`: what they wrote is read."""

    def after(ready):
        looks = []

        def monotonic():
            if looks or ready():
                looks.append(1)
            return math.inf if len(looks) > 10 else 0.0

        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))

    return after


def test_a_peer_that_hangs_is_killed_with_what_it_has_started(tmp_path, time_is_up):
    marker = tmp_path / "child"
    text = f"echo waiting >&2; sh -c 'echo $$ > {marker}; sleep 1000' & wait"
    hanging = dataclasses.replace(script(tmp_path, text), timeout=0.05)
    time_is_up(lambda: marker.exists() and marker.read_text().endswith("\n"))
    with one_line(PeerError, "^script: describe did not end in 0.05 s: waiting$"):
        hanging.describe()
    ended(int(marker.read_text()))


def test_a_signal_while_a_program_starts_ends_it_too(tmp_path, monkeypatch):
    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    started = []
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    # A shell without job control lets what it starts in the background ignore SIGINT.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            script(tmp_path, "sleep 1000").describe()
    finally:
        signal.signal(signal.SIGINT, former)
    ended(started[0])


def wait_for(holds):
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        os.sched_yield()
    assert holds()


def ended(process):
    """Wait until a process has ended."""
    wait_for(lambda: not _runs(process))


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] not in "ZX"
    except FileNotFoundError:
        return False


def test_endless_stderr_is_read_until_the_time_is_up(tmp_path, time_is_up):
    marker = tmp_path / "written"
    text = f"echo 'y\ny\ny' >&2; touch {marker}; yes >&2"
    endless = dataclasses.replace(script(tmp_path, text), timeout=1.0)
    time_is_up(marker.exists)
    with one_line(PeerError, r"^script: describe did not end in 1 s: y \| y \| y$"):
        endless.describe()


def test_a_peer_that_closes_its_output_and_goes_on_is_ended(tmp_path):
    silent = dataclasses.replace(script(tmp_path, "exec >&- 2>&-; sleep 1000"), timeout=0.1)
    with one_line(PeerError, "^script: describe did not end in 0.1 s$"):
        silent.describe()


def test_a_peer_that_writes_far_too_many_rows_is_one_line(tmp_path):
    peer = script(tmp_path, 'head -c 100000000 /dev/zero > "$3"')
    with one_line(PeerError, "^script: check wrote 100000000 bytes for 4 operations$"):
        peer.check(TAPE, 4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('ln -s /dev/zero "$3"', "has put a link in the place of OUT"),
        ('mkfifo "$3"', "has left something else than a file of its own as OUT"),
        ('mkdir "$3"', "check wrote no rows: Is a directory"),
        ('ln -s nowhere "$3"', "has put a link in the place of OUT"),
        ('truncate -s 1T "$3"', "check wrote 1099511627776 bytes for 4 operations"),
        (
            'mkdir -p "$3/a"; chmod 0 "$3"',
            "check wrote no rows: (Is a directory|Permission denied)",
        ),
        ('rm -r "${3%/*}"', "check wrote no rows: No such file or directory"),
    ],
    ids=["device", "fifo", "folder", "dangling", "sparse", "locked", "removed"],
)
def test_what_is_no_file_of_the_peer_is_one_line(tmp_path, text, says):
    with one_line(PeerError, f"^script: .*{says}"):
        script(tmp_path, text).check(TAPE, 4)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_peer_has_started_ends_with_it(tmp_path, fails):
    """Also when it holds the peer's output open, and the peer has ended as it should."""
    marker, described = tmp_path / "child", json.dumps(WHOLE.as_json())
    text = f"sleep 1000 & echo $! > {marker}; echo '{described}'"
    if fails:
        with one_line(PeerError, "^script: describe exits with code 3$"):
            script(tmp_path, f"{text}; exit 3").describe()
    else:
        assert script(tmp_path, text).describe() == WHOLE
    ended(int(marker.read_text()))


def test_a_peer_ends_when_the_command_is_killed(tmp_path):
    marker = tmp_path / "peer"
    hanging = script(tmp_path, f"echo $$ > {marker}; exec sleep 1000")
    command = [sys.executable, "-m", "compare", "check", "--", *hanging.command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as checking:
        wait_for(lambda: marker.exists() and marker.read_text().endswith("\n"))
        checking.kill()
    ended(int(marker.read_text()))


def test_a_histogram_has_a_time_for_each_operation(tmp_path):
    lines = [json.dumps({**LINE, "phase": phase, "histogram": [2, 1]}) for phase in (0, 1)]
    peer = script(tmp_path, f"cat <<'END'\n{chr(10).join(lines)}\nEND")
    with one_line(PeerError, "the histogram of phase 0 has 3 times; the phase has 4 operations"):
        peer.time(TAPE, 4, rounds=1)


def test_long_stderr_is_cut(tmp_path):
    with pytest.raises(PeerError) as error:
        script(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").describe()
    assert len(str(error.value)) < 400
    assert "..." in str(error.value)


# ---- times

LINE = {"round": 0, "phase": 0, "operations": 4, "expired": 1, "wall_ns": 9}


def test_times_are_checked(tmp_path):
    lines = [{**LINE, "phase": phase} for phase in (0, 1)]
    text = "\n".join(map(json.dumps, lines))
    first, second = parse_times(text, 1, 1)
    assert (first.phase, second.phase, first.wall_ns, first.thread_ns) == (0, 1, 9, None)
    assert first.counts == {}
    counted = json.dumps(lines[0] | {"counts": {"wake_ups": 3}})
    assert parse_times(f"{counted}\n{json.dumps(lines[1])}", 1, 1)[0].counts == {"wake_ups": 3}
    for bad, says in (
        ("", "printed 0 lines; it must print one per round and phase, in order: 1 rounds of 2"),
        (text + "\n" + text, "printed 4 lines"),
        ("\n".join(map(json.dumps, lines[::-1])), "printed 2 lines"),
        ("[]", "must print JSON objects"),
        (text.replace('"wall_ns": 9', '"wall_ns": 9.5'), "wall_ns is 9.5; it must be an integer"),
        (text.replace('"expired": 1, ', ""), "expired is missing"),
        (text.replace("9}", '9, "counts": {"x": 0.5}}'), "counts is .* an object of integers"),
        (text.replace('"wall_ns": 9', '"wall_ns": -9'), "wall_ns is -9; it must not be negative"),
        (text.replace("9}", '9, "histogram": 3}'), "histogram is 3; it must be a list of up to"),
        (text.replace("9}", '9, "histogram": [-1]}'), r"histogram is \[-1\]; it must be a list"),
        (text.replace("9}", f'9, "histogram": {[0] * 497}}}'), "a list of up to 496 counts"),
        ("nonsense", "Expecting value"),
    ):
        with pytest.raises(ValueError, match=says):
            parse_times(bad, 1, 1)


def test_the_cpu_time_of_the_process_counts_if_it_is_known():
    times = [PhaseTime(0, 0, 1, 1, 9, *known) for known in [(), (8,), (8, 7), (None, 7)]]
    assert [time.cpu_ns for time in times] == [9, 8, 7, 7]


@given(
    times=st.lists(st.integers(0, 2**62), min_size=1), share=st.sampled_from([0.0, 0.5, 0.99, 1])
)
def test_a_quantile_is_at_most_an_eighth_too_large(times, share):
    histogram = peer.Histogram()
    for ns in times:
        histogram.add(ns)
    phase = PhaseTime(0, 0, len(times), 0, 0, histogram=tuple(histogram.take()))
    true = sorted(times)[max(math.ceil(share * len(times)), 1) - 1]
    assert true <= phase.quantile(share) <= true + true // 8
    assert not histogram.take()


def test_bins_follow_each_other():
    histogram = peer.Histogram()
    for number in range(BINS - 8):
        histogram.add(bin_end(number))
        histogram.add(bin_end(number - 1) + 1 if number else 0)
    assert set(histogram.take()) == {2}


def test_a_peer_that_prints_no_times_is_one_line():
    with one_line(PeerError, "^silent: time: time printed 0 lines"):
        peer_of("silent").time(TAPE, 4)


def test_rounds_that_differ_are_one_line(tmp_path):
    lines = [
        json.dumps({**LINE, "round": number, "phase": phase, "expired": number})
        for number in (0, 1)
        for phase in (0, 1)
    ]
    peer = script(tmp_path, f"cat <<'END'\n{chr(10).join(lines)}\nEND")
    with one_line(PeerError, "0 and 1 timers expired in different rounds of phase 0"):
        peer.time(TAPE, 4, rounds=2)


# ---- descriptions

WHOLE = Description(
    "x",
    "C",
    "heap",
    library="y",
    version="1.0",
    rounding=PeerRounding("share", 2, (8, 63)),
    order="fifo",
    drain="unit",
    rearm="in place",
    parameters={"tick": 3},
    cannot=("cancel", "re-arm"),
    limits=Limits(time=2**40, step=5),
    notes={"bytes": 40},
    real_time=True,
)


@pytest.mark.parametrize("described", [WHOLE, Description("x", "C", "heap")])
def test_a_description_is_read_as_it_was_written(described):
    assert parse_description(json.dumps(described.as_json())) == described


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"name": ""}, "name is ''; it must be text in one line"),
        ({"scheme": "a\nb"}, r"scheme is 'a\\nb'; it must be text in one line"),
        ({"language": 3}, "language is 3; it must be text"),
        ({"version": 3}, "version is 3; it must be text"),
        ({"order": "lifo"}, "order is 'lifo'; it must be fifo or unspecified"),
        ({"drain": ["unit"]}, r"drain is \['unit'\]; it must be unit or wake-up"),
        ({"rearm": "magic"}, "rearm is 'magic'; it must be in place or cancel and start"),
        ({"cannot": ["fly"]}, "cannot is .*; it must be a list of cancel and re-arm"),
        ({"cannot": [[]]}, "cannot is .*; it must be a list of cancel and re-arm"),
        ({"limits": {"space": 1}}, "limits is .*; it may have delay, equal, step, time"),
        ({"limits": {"step": 0}}, "step is 0; it must be a positive integer"),
        ({"rounding": "exact"}, "rounding is 'exact'; it must be an object"),
        ({"rounding": {"kind": "near"}}, "kind is 'near'; it must be exact, late, up, down, share"),
        ({"rounding": {"kind": "up", "tick": 0.5}}, "tick is 0.5; it must be a positive integer"),
        ({"rounding": {"kind": "share", "share": [3, 2]}}, "it must be two integers"),
        ({"real_time": 1}, "real_time is 1; it must be true or false"),
        ({"notes": []}, r"notes is \[\]; it must be an object"),
        ({"protocol": 2}, "protocol is 2; this release speaks 1"),
    ],
)
def test_a_bad_description_says_what_is_wrong(entry, says):
    with pytest.raises(ValueError, match=says):
        parse_description(json.dumps({**WHOLE.as_json(), **entry}))
    for name in ("name", "language", "scheme"):
        without = {key: value for key, value in WHOLE.as_json().items() if key != name}
        with pytest.raises(ValueError, match=f"{name} is missing"):
            parse_description(json.dumps(without))


def test_limits_are_those_of_a_tape():
    tape = tape_of((5, START, 0, 20), (30, START, 1, 31))
    assert Limits(time=31, delay=15, step=15).allow(tape)
    assert not Limits(time=30).allow(tape)
    assert Limits(equal=1).allow(tape)
    assert not Limits(equal=1).allow(tape_of((0, START, 0, 5), (1, START, 1, 5)))
    assert not Limits(delay=14).allow(tape)
    assert not Limits(step=14).allow(tape)
    assert Limits(1, 1, 1, 1).allow(tape_of())


@pytest.mark.parametrize(
    ("rounding", "future", "present", "last"),
    [
        (PeerRounding(), (15, 15), (12, 12), (LIMIT, LIMIT)),
        (PeerRounding("late", 4), (15, 19), (12, 16), (LIMIT, LIMIT)),
        (PeerRounding("up", 4), (16, 19), (12, 16), (LIMIT, LIMIT)),
        (PeerRounding("down", 4), (12, 15), (12, 12), (LIMIT - 3, LIMIT)),
        (PeerRounding("share", 1, (1, 2)), (15, 17), (12, 13), (LIMIT, LIMIT)),
        (PeerRounding("share", 9, (1, 2)), (15, 24), (12, 21), (LIMIT, LIMIT)),
    ],
)
def test_the_bounds_of_a_rounding(rounding, future, present, last):
    tape = tape_of((12, START, 0, 15), (12, START, 1, 3), (12, START, 2, LIMIT))
    found = zip(*(column.tolist() for column in rounding.bounds(tape)), strict=True)
    assert [*found] == [future, present, last]


def test_a_tape_at_a_limit_is_tried_and_one_beyond_it_is_not():
    tape = tape_of((0, START, 0, 5), (0, START, 1, 5), (2, CANCEL, 1, 0))
    for limit, most in {"time": 5, "delay": 5, "equal": 2, "step": 3}.items():
        assert Limits(**{limit: most}).allow(tape)
        assert not Limits(**{limit: most - 1}).allow(tape)


def test_roundings_in_words():
    passive = PeerRounding("late", 7)
    shown = [
        PeerRounding(),
        passive,
        PeerRounding("up", 7),
        PeerRounding("down", 7),
        WHOLE.rounding,
    ]
    assert [rounding.text for rounding in shown] == [
        "exact",
        "late by 0 to 7",
        "late by 1 to 7",
        "early by up to 6",
        "late by up to 8/63 of the delay",
    ]
    assert PeerRounding("up", 1).text == "late by 1"
    assert (WHOLE.fires, dataclasses.replace(WHOLE, real_time=False).fires) == (
        "in real time",
        "late by up to 8/63 of the delay",
    )
    ends = [(0, 0), (0, 7), (0, 7), (-6, 0), (0, LIMIT)]
    assert [rounding.lateness for rounding in shown] == ends
