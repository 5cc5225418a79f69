"""Nothing is recognised by accident: a log that just misses its format is in no other one."""

from contextlib import suppress
from time import process_time

import pytest

from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats.patterns import LINES
from compare.traffic.logs.inspect import inspect
from compare.traffic.logs.opening import ANY, open_log
from tests.compare.traffic.logs.kinds import KINDS

ALSO = {
    ("HAProxy", "syslog-bsd"),
    ("haproxy", "syslog-bsd"),  # a line of syslog, whatever its message is
    ("haproxy-tcp", "syslog-bsd"),
    ("zookeeper", "logging"),
    ("ZooKeeper", "logging"),
    ("ZooKeeper, sessions", "logging"),
    ("postgres-csv", "csv"),
    ("Postgres, csvlog", "csv"),
    ("docker around nginx", "jsonl"),
    ("docker around logfmt", "jsonl"),
    ("gin", "csv"),  # without [GIN], it is a table that begins with a time
}
"""Formats that what misses the first one is rightly in."""
LINES_OF = {name: [line.example] * 3 for name, line in LINES.items()}
LOGS = LINES_OF | {
    kind.name: kind.written().decode(kind.encoding).splitlines()
    for kind in KINDS
    if kind.pack is bytes
}
WORDS = 16
"""The words of a line that are left out or damaged, one at a time."""


def format_of(path, lines):
    path.write_text("\n".join(lines) + "\n")
    try:
        return open_log(str(path)).format
    except LogError:
        return None


@pytest.mark.parametrize("name", LOGS)
def test_a_near_miss_is_in_no_other_format(tmp_path, name):
    lines, log = LOGS[name], tmp_path / "log"
    whole = format_of(log, lines)
    assert whole == (name if name in LINES_OF else whole)
    for place in range(min(WORDS, len(lines[-1].split(" ")))):
        for damaged in ([], ["?"]):
            words = [line.split(" ") for line in lines]
            near = [" ".join([*line[:place], *damaged, *line[place + 1 :]]) for line in words]
            found = format_of(log, near)
            assert found in (whole, None) or (name, found) in ALSO, near[-1]


@pytest.mark.parametrize("name", LINES)
def test_prose_with_the_words_of_a_format_is_not_in_it(tmp_path, name):
    """Text around a line, as in a message that quotes it."""
    line = LINES[name].example
    near = [f"we saw this today, at noon: {line}", f"please look | {line}", f'"{line}", he said']
    # Any text may stand before a line of HAProxy.
    assert format_of(tmp_path / "log", near) in (None, *([name] if "haproxy" in name else []))


@pytest.mark.parametrize(
    "lines",
    [
        ["Hello, world", "this is text, with a comma", "and more, too"],
        ["a | b", "c | d | e", "f"],
        ["2024-05-01 10:00:00,123 started, at last", "2024-05-01 10:00:01,456 ended, at last"],
        ["2024-05-01T10:00:00.123Z\tINFO\ta.go:1\tx", "2024-05-01T10:00:00.223Z\tINFO\ta.go:1\ty"],
        ["2024-05-01T10:00:00Z INF done: all well", "2024-05-01T10:00:00Z ERR failed: x"],
        ["2024-05-01T10:00:00.1234567Z ##[group]Run x", "2024-05-01T10:00:00.2234567Z a: b"],
        ["key=value is how to write it", "another=one"],
        ["see a:b\tc", "d\te"],
    ],
)
def test_free_text_is_in_no_format(tmp_path, lines):
    assert format_of(tmp_path / "log", lines) is None


@pytest.mark.parametrize(
    "line",
    [
        "a=1" + " " * 50_000 + "=",
        "a - " + "[" * 50_000,
        "2024-05-01 10:00:00 " + "1" * 50_000,
        "2024-05-01 10:00:00 " + "took " * 10_000,
        "<1>1 " + "a " * 25_000,
        '{"log":"' + "\\\\n" * 25_000,
        "# Time: x\n" * 5_000,
        "a:b\t" * 10_000,
        "1h" * 25_000,
    ],
    ids=lambda line: line[:12].strip(),
)
def test_no_line_takes_long(tmp_path, line):
    """Nor is there a traceback: it is read, or refused in one line."""
    log = tmp_path / "log"
    log.write_text(f"{line}\n" * 3)
    began = process_time()
    with suppress(LogError):
        inspect(str(log), ANY)
    assert process_time() - began < 5  # quadratic time would take minutes
