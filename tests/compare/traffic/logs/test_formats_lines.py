"""Lines of access logs, syslog, W3C, log4j and others."""

import re

import pytest

from compare.traffic.logs.formats.lines import capturing
from compare.traffic.logs.formats.patterns import LINES
from compare.traffic.logs.opening import open_log
from compare.traffic.logs.time_formats import guess_form
from tests.compare.traffic.logs.records import records, written

LOGGED = {
    "2015-10-18 18:01:47,978 INFO [main] org.a.B: x: y": ("main", "org.a.B", "INFO", "x: y"),
    "2024-05-01 12:00:00.123 [pool-1] WARN  c.e.App - x": ("pool-1", None, "WARN", "c.e.App - x"),
    "2024-05-01 12:00:00,123 - app.db - ERROR - a, b": (None, "app.db", "ERROR", "a, b"),
    "2024-05-01T12:00:00.123+02:00  INFO 7 --- [   main] c.e.App   : x": (
        *("main", "c.e.App", "INFO"),
        "x",
    ),
    "[2024-05-01 12:00:00,123] DEBUG in app: x": (None, None, "DEBUG", "in app: x"),
    "2024-05-01 12:00:00 ERROR": (None, None, "ERROR", None),
}


def test_lines_of_log4j_and_logging(path):
    path.write_text("\n\tat foo.Bar\n".join(LOGGED))
    log = open_log(str(path))
    assert (log.format, log.selects) == ("logging", True)
    roles = {name: name for name in ("time", "thread", "logger", "level", "message")}
    (block,) = log.blocks()
    read = next(log.read(block, roles))
    assert read.fault.tolist() == [False, True] * 5 + [False]
    rows = zip(*(read.texts[name].to_pylist()[::2] for name in roles), strict=True)
    for (time, *rest), (text, expected) in zip(rows, LOGGED.items(), strict=True):
        assert time.decode() in text and guess_form(time.decode()) == "iso"
        assert tuple(value.decode() or None if value else None for value in rest) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01 12:00:00,5\n",
        "a,b\n2024-05-01 12:00:00,INFO\n",
        "a\tb\n2024-05-01 12:00:00\tINFO\n",
    ],
)
def test_tables_with_a_time_are_tables(path, text):
    path.write_text(text)
    assert open_log(str(path)).format in ("csv", "tsv")


@pytest.mark.parametrize("name", LINES)
def test_examples_of_lines(path, name):
    line = LINES[name]
    written(path, f"nonsense\r{line.example}\r\n\n{line.example}".encode())
    log = open_log(str(path))
    assert (log.format, log.columns) == (name, line.columns)
    bad, first, last = records(path, line.columns)
    assert records(path, line.columns, block=30) == [bad, first, last]
    assert (bad[0], first[0], last[0]) == (1, 2, 4)
    assert first[1:] == last[1:] and not first[1]
    assert bad[1] and log.fault == f"it is not {line.what}"
    # A pattern that has a line, and not all groups, finds what the last one finds.
    matches = [re.match(pattern, line.example) for pattern in line.patterns]
    some = [match for match in matches if match and len(match.groups()) < len(matches[-1].groups())]
    for match in some:
        for group, text in match.groupdict().items():
            assert matches[-1][group] == text


def test_columns_of_access_logs(path):
    rest = '[17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17'
    lines = [
        f'a - frank {rest} "-" "x \\"y\\"" rt=0.005 "k=v w" "3"',
        f"b - - {rest}",
        f'c - of many words {rest.replace("GET /a", "GET /" + chr(34) + "a" + chr(34))} "-" "cut',
        rest,
    ]
    names = ("client", "user", "request", "method", "status", "agent", "extra2", "extra3")
    rows = records(written(path, "\n".join(lines).encode()), names)
    get = "GET /a HTTP/1.1"
    assert rows == [
        (1, False, "a", "frank", get, "GET", "200", 'x \\"y\\"', "k=v w", "3"),
        (2, False, "b", "-", get, "GET", "200", "", None, None),
        (3, False, "c", "of many words", 'GET /"a" HTTP/1.1', "GET", "200", "cut", None, None),
        (4, True, *[None] * len(names)),
    ]
    for name in ("client", "status", "extra2"):  # alone, with other patterns
        alone = [row[2] for row in records(path, (name,))]
        assert (
            alone
            == {
                "client": ["a", "b", "c", None],
                "status": ["200"] * 3 + [None],
                "extra2": ["k=v w", None, None, None],
            }[name]
        )
    assert capturing("(?P<a>x(?P<b>y))", frozenset("b")) == "(?:x(?P<b>y))"


ACCESS = '10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5'


@pytest.mark.parametrize(
    ("behind", "fields"),
    [
        (
            '"-" "curl" rt=6.500 uct="0.001 : 0.001" urt="0.010 : 6.400"',
            ("6.500", "0.001 : 0.001", "0.010 : 6.400", None),
        ),
        ('"-" "curl" "a, b" 6.5', ("a, b", "6.5", None, None)),
        ('- "curl" 6.5', ("6.5", None, None, None)),
        ('- "cu rl" "a b" x="c d" 6.5', ("a b", "c d", "6.5", None)),
        ("- 6.5", ("-", "6.5", None, None)),  # two fields behind the common format
        ('"-" "curl" "rt=6.5" a=b=7', ("6.5", "7", None, None)),
        (r'"-" "curl" "a \" b" 6.5', (r"a \" b", "6.5", None, None)),
        ('"-" "curl"  1   2 ', ("1", "2", "", None)),
    ],
)
def test_a_quoted_text_behind_an_access_line_is_one_field(path, behind, fields):
    written(path, f"{ACCESS} {behind}\n".encode())
    names = [f"extra{number}" for number in range(1, 5)]
    assert records(path, names) == [(1, False, *fields)]


def test_an_unquoted_referrer_has_the_other_columns_too(path):
    written(path, f'{ACCESS} - "curl" 6.5\n'.encode())
    names = ["client", "path", "status", "referrer", "agent", "extra1"]
    row = (1, False, "10.0.0.1", "/a", "200", "-", "curl", "6.5")
    assert records(path, names) == [row]


@pytest.mark.parametrize("space", ["\t", "  ", " \t ", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_any_white_space_separates_the_fields_of_w3c(path, space, end):
    lines = ["#Version: 1.0", f"#Fields:{space}date time{space}c-ip time-taken", "2024-05-01 1"]
    lines += [space.join(["2024-05-01", "10:00:00", "10.0.0.1", "0.5"]), "  a b c d"]
    written(path, end.join([*lines, ""]).encode())
    rows = [(3, True, None, None), (4, False, "10.0.0.1", "0.5"), (5, False, "c", "d")]
    found = records(path, ["c-ip", "time-taken"])
    assert [(row if not row[1] else (row[0], True, None, None)) for row in found] == rows


@pytest.mark.parametrize(
    ("software", "unit"),
    [
        ("#Software: Microsoft Internet Information Services 10.0\n", "ms"),
        ("#Software: Microsoft HTTP API 2.0\n", "ms"),
        ("#Software: SGOS 6.7\n", None),
        ("", None),
    ],
)
def test_the_unit_of_w3c_is_that_of_its_software(path, software, unit):
    written(path, f"#Version: 1.0\n{software}#Fields: date time time-taken\n".encode())
    assert open_log(str(path)).duration_unit == unit


@pytest.mark.parametrize(
    ("line", "app", "process", "message"),
    [
        ("last message repeated 3 times", None, None, "last message repeated 3 times"),
        ("sshd[7]: a: b", "sshd", "7", "a: b"),
        ("Google Chrome Helper[42]: a", "Google Chrome Helper", "42", "a"),
        ("launchd[1] (unit): a: b", "launchd", "1", "a: b"),
        ("syslogd 1.4.1: restart.", "syslogd", None, "restart."),
        ("kernel: [  1.5] eth0: up", "kernel", None, "[  1.5] eth0: up"),
        ("a port is closed: 22", None, None, "a port is closed: 22"),
        ("", None, None, ""),
    ],
)
def test_time_and_host_are_enough_for_rfc_3164(path, line, app, process, message):
    data = f"Oct 11 22:14:15 host {line}\nOct 11 22:14:16 host\n"
    written(path, data.encode())
    names = ["time", "host", "app", "process", "message"]
    rows = [
        (number, fault, *(text or None for text in texts))
        for number, fault, *texts in records(path, names)
    ]
    first = (1, False, "Oct 11 22:14:15", "host", app, process, message or None)
    assert rows == [first, (2, False, "Oct 11 22:14:16", "host", None, None, None)]


def test_a_log_may_begin_with_nul_bytes(path):
    """A program that goes on writing behind the place where its log was cut leaves them."""
    text = f"{ACCESS}\n" * 3
    written(path, b"\0" * 1000 + text.encode())
    assert open_log(str(path)).format == "access"
    assert [row[:2] for row in records(path, ["time"])] == [(1, True), (2, False), (3, False)]
