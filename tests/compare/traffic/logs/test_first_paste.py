"""What `inspect` pastes reads a log of any kind exactly, or says that it does not.

40 requests are written in each format. `inspect` is asked, and the first command that it prints is
run as it stands.
"""

import os
import re
import shlex
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.opening import open_log
from compare.traffic.tapes.tape import ARM, START
from compare.traffic.tapes.trace import open_trace
from compare.traffic.tapes.units import EXPONENTS
from tests.compare.traffic.logs.kinds import BASE, KINDS, REQUESTS, TIMEOUT, S
from tests.compare.traffic.logs.servers import SERVERS

ALL_KINDS = KINDS + SERVERS
RIGHT, SAID, REFUSED, SILENT = "right", "wrong, and said", "refused", "wrong in silence"
SHORT = {"Django, runserver": REFUSED}  # nothing in a line tells which word is the key
"""Kinds that are not right at the first paste."""


def commands(out):
    """The commands in a text, as arguments."""
    pasted = out.replace("\\\n", "").split("\n\n")
    return [shlex.split(text)[1:] for text in pasted if text.startswith("wheelwork ")]


def expected(kind, unit):
    """The starts and the number of timeouts of requests, or the touches, in units."""
    scale = 10 ** (9 - EXPONENTS[unit])
    rows = kind.rows
    if kind.touches:
        return sorted((row.end // kind.tick * kind.tick) / scale for row in rows), None
    return sorted(row.start / scale for row in rows), sum(row.took >= TIMEOUT for row in rows)


def verdict(kind, said):
    """How well the first command that is pasted reads a log of some kind, and why."""
    Path("log").write_bytes(kind.written())
    os.utime("log", (BASE / S, BASE / S + 60))  # has the year of times without one
    code, seen, error = said("inspect", "log")
    if code:
        return (REFUSED if "--pattern" in error else "refused, without help"), error
    lines = [line for line in seen.splitlines() if not line.startswith("    --pattern ")]
    assert max(map(len, lines)) <= 80, seen
    asked = "warning" in seen or "assumed to be" in seen
    pasted = commands(seen)
    if not pasted:
        return (REFUSED if "wheelwork ingest" in seen else "refused, without help"), seen
    code, read, error = said(*pasted[0], "--force")
    if code:
        return SAID, f"{pasted[0]}\n{error}"
    if pasted[0][1] == "touches" and not kind.touches:
        # It does not claim to have found the durations.
        return (REFUSED if re.search("duration +not found", seen) else SILENT), f"{seen}\n{read}"
    trace = open_trace(pasted[0][pasted[0].index("--out") + 1])
    tape = trace.load()
    starts = sorted(tape.time[(tape.op == START) | (tape.op == ARM)].tolist())
    times, slow = expected(kind, trace.unit)
    armed, answered = trace.description.armed, trace.description.answered
    if starts == times and (slow is None or armed - answered == slow):
        return RIGHT, ""
    why = f"{seen}\n{read}\n{len(starts)} of {REQUESTS}, {armed - answered} of {slow} slow; "
    why += str([pair for pair in zip(starts, times, strict=False) if pair[0] != pair[1]][:3])
    return (SAID if asked or "warning" in read or "skipped" in read else SILENT), why


def test_first_paste(said, capfd):
    """The shares of kinds and formats that are right are printed; none is wrong in silence."""
    verdicts, formats = {}, defaultdict(set)
    for kind in ALL_KINDS:
        verdicts[kind.name] = verdict(kind, said)
        with suppress(LogError):
            formats[open_log("log").format].add(verdicts[kind.name][0])
    right = sum(found == RIGHT for found, _ in verdicts.values())
    good = sum(found == {RIGHT} for found in formats.values())
    with capfd.disabled():
        print(
            f"\n{right} of {len(ALL_KINDS)} kinds of logs and {good} of {len(FORMATS)} formats are"
            " right at the first paste"
        )
    others = {name: found for name, (found, _) in verdicts.items() if found != RIGHT}
    reasons = "\n\n".join(f"=== {n}: {f}\n{why}" for n, (f, why) in verdicts.items() if f != RIGHT)
    assert others == SHORT, reasons
    assert formats.keys() == FORMATS.keys() and good == len(FORMATS), formats
