"""Blocks of bytes become the records that Python's own readers find, wherever a log is cut."""

import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError, expand
from compare.traffic.logs.formats import base
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.formats.lines import capturing
from compare.traffic.logs.formats.patterns import LINES
from compare.traffic.logs.opening import ANY, open_log
from compare.traffic.logs.time_formats import guess_form
from tests.compare import made_logs as logs
from tests.words import one_line

PIECE = st.sampled_from([1, 2, 3, 7, 50, 1 << 20])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("formats") / "log"


def text_of(value):
    return value.as_py().decode(errors="replace") if value.is_valid else None


def records(path, roles, layout=ANY, block=1 << 20, longest=1 << 20):
    """(number of the line or record, whether it is damaged, its texts) of a log."""
    rows, before = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        log = open_log(str(path), layout)
        log.source.longest_line = longest
        for piece in log.blocks():
            for read in log.read(piece, {name: name for name in roles}):
                for row, (number, fault) in enumerate(
                    zip(read.number.tolist(), read.fault.tolist(), strict=True)
                ):
                    texts = [text_of(read.texts[name][row]) for name in roles]
                    rows.append((before + number + 1, fault, *texts))
                before += read.total
    return rows


def written(path, data):
    path.write_bytes(data)
    return path


# ---- long lines, and many

LONGEST = 60
HEADS = {
    "csv": (b"time,duration", b"%s,1", ANY),
    "jsonl": (b'{"time":"0","duration":1}', b'{"time":"%s","duration":1}', ANY),
    "zeek": (b"#fields\ttime\tduration", b"%s\t1", ANY),
    "pattern": (b"0 1", b"%s 1", Layout(pattern=r"^(?P<time>\S+) (?P<duration>1)$")),
}
"""Format -> its first line, and one with a text in it."""


@pytest.mark.parametrize("kind", HEADS)
@given(
    st.lists(st.one_of(st.integers(1, 200), st.integers(LONGEST - 40, LONGEST + 1)), max_size=8),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, LONGEST),
)
def test_longer_lines_are_rejected_by_number(path, kind, lengths, end, ended, packed, block):
    head, form, layout = HEADS[kind]
    if kind == "zeek":
        end = b"\n"  # what ends a header
    lines = [head, *(form % (b"x" * length) for length in lengths)]
    data = end.join(lines) + end * ended
    path.write_bytes(gzip.compress(data) if packed else data)
    found = records(path, ["time", "duration"], layout, block, LONGEST)
    carriage_return = len(end) - 1  # is part of a line that LF ends
    numbers = range(2, len(lines) + 1)
    rows = [("0", "1")] * (kind in ("jsonl", "pattern"))
    expected = [(1, False, *row) for row in rows]
    for number, length, line in zip(numbers, lengths, lines[1:], strict=True):
        is_last = number == len(lines) and not ended
        too_long = len(line) + carriage_return * (not is_last) > LONGEST
        texts = (None, None) if too_long else ("x" * length, "1")
        expected.append((number, too_long, *texts))
    assert found == expected


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_lines_are_read_in_parts(path, monkeypatch, kind, most):
    monkeypatch.setattr(base, "MOST_LINES", most)
    head, form, layout = HEADS[kind]
    lines = [head, *(b"" if number % 3 == 0 else form % b"x" for number in range(9))]
    path.write_bytes(b"\n".join(lines))
    found = records(path, ["time", "duration"], layout)
    numbers = [number for number, line in enumerate(lines, 1) if line and number > 1]
    if kind == "jsonl":  # records are numbered, not lines
        numbers = list(range(2, 8))
    assert [row for row in found if row[0] > 1] == [(n, False, "x", "1") for n in numbers]


def test_a_header_between_parts_counts(path, monkeypatch):
    monkeypatch.setattr(base, "MOST_LINES", 2)
    path.write_text("#fields\ta\tb\n1\t2\n3\t4\n#fields\tb\ta\n5\t6\n7\t8\n9\t10\n")
    rows = [(2, "1"), (3, "3"), (5, "6"), (6, "8"), (7, "10")]
    assert records(path, ["a"]) == [(number, False, text) for number, text in rows]


def test_an_element_of_an_array_has_a_longest_length_too(path):
    path.write_text('[{"a": 1}, {"a": "' + "x" * 100 + '"}, {"a": 2}]')
    assert [row[2] for row in records(path, ["a"], block=50)] == ["1", "x" * 100, "2"]
    with one_line(LogError, "has a record of more than 60 bytes"):
        records(path, ["a"], block=50, longest=60)


def test_a_quote_over_many_lines_damages_one_if_it_is_too_long(path):
    path.write_text('a,b\n1,"x\ny"\n2,"' + "z\n" * 100 + "3,4\n")
    found = records(path, ["a"], block=20, longest=60)
    assert found[0] == (2, False, "1")
    assert found[1][:2] == (4, True)
    assert found[-1] == (104, False, "3")


# ---- values between delimiters

FIELD = st.text('ab,;" \té', max_size=5)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


@given(
    st.lists(st.lists(FIELD, min_size=1, max_size=4).map(",".join), max_size=8),
    LINE_END,
    st.booleans(),
    PIECE,
)
@example(['"a""b"c,d', ' "x",y', '"a,b"', '"', 'a"b",c'], "\n", True, 3)
def test_lines_of_values_are_read_as_by_python(path, lines, end, ended, block):
    """Line by line, with a quote that is not closed as the only difference."""
    text = end.join(["x,y", *lines]) + end * ended
    layout = Layout("csv", ",", ("x", "y"))
    wanted = []
    for number, line in enumerate(["x,y", *lines], 1):
        if line.strip(" "):
            (fields,) = csv.reader([line])
            closed = not _is_open(line)
            fault = len(fields) != 2 or not closed
            wanted.append((number, fault, *(fields if not fault else ())))
    written(path, text.encode())
    rows = [
        (number, fault, *(values if not fault else ()))
        for number, fault, *values in records(path, ("x", "y"), layout, block)
    ]
    if not open_log(str(path), layout).multiline:
        assert rows == wanted


def _is_open(line):
    reader = csv.reader([f"{line}\n", "end\n"])
    next(reader)
    return reader.line_num > 1


@given(st.lists(st.tuples(FIELD, st.text('a,"\n', max_size=4)), min_size=2, max_size=8), PIECE)
def test_line_ends_in_quotes(path, rows, block):
    rows = [("x", "y"), ("1", "a\nb"), *rows]  # one in the head
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    numbers = [1]
    for row in rows:
        numbers.append(numbers[-1] + 1 + "".join(row).count("\n"))
    as_read = records(written(path, text.getvalue().encode()), ("x", "y"), block=block)
    assert as_read == [
        (number, False, *row) for number, row in list(zip(numbers, rows, strict=False))[1:]
    ]


def test_a_quote_that_is_not_closed_damages_one_line(path):
    lines = ["x,y", '1,"a', 'b"', '2,"never', *(f"{k},{'z' * 100}" for k in range(2000)), "3,c"]
    rows = records(written(path, "\n".join(lines).encode()), ("x", "y"))
    assert rows[0] == (2, False, "1", "a\nb")
    assert [row[0] for row in rows if row[1]] == [4]
    assert rows[-1] == (len(lines), False, "3", "c")


@pytest.mark.parametrize(
    ("text", "delimiter", "point"),
    [("a;b\n1,5;2\n", None, ","), ("a|b\n1.5|2\n", None, "."), ("a b\n1.5 2\n", " ", ".")],
)
def test_other_delimiters(path, text, delimiter, point):
    layout = Layout(delimiter=delimiter)
    log = open_log(str(written(path, text.encode())), layout)
    assert (log.columns, log.point) == (("a", "b"), point)
    assert records(path, ("b",), layout) == [(2, False, "2")]
    with pytest.raises(LogError, match="delimiter '::' is not one character"):
        open_log(str(path), Layout(delimiter="::"))


def test_a_log_without_a_header_and_with_a_mark(path):
    data = b"\xef\xbb\xbf\n1,2\n\n3,4\n5\n"
    layout = Layout(columns=("a", "b"))
    rows = records(written(path, data), ("a", "b"), layout)
    assert rows == [(2, False, "1", "2"), (4, False, "3", "4"), (5, True, "5", None)]
    assert open_log(str(path), layout).fault == "it does not have the 2 fields of --columns"
    assert records(path, ("1",)) == [(4, False, "3"), (5, True, "5")]  # as a header
    assert records(written(path, b"1\n"), ("a",), Layout(columns=("a",))) == [(1, False, "1")]


# ---- JSON


def test_values_of_objects(path):
    line = (
        '{"n": 1.50e-3, "s": "\\u00e9\\ud83d\\ude00\\ud800x\\n", "o": {"s": [1, "]}"]}, "s2": ""}'
    )
    names = ("n", "s", "o", "o.s", "s2", "none")
    assert records(written(path, line.encode()), names) == [
        (1, False, "1.50e-3", "é😀\ufffdx\n", '{"s": ["1", "]}"]}', '["1", "]}"]', "", None)
    ]
    assert open_log(str(path)).columns == ("n", "s", "o.s", "s2")
    lines = ['{"a.b": 1, "a": {"b": 2}}', '{"a": {"b": null}, "a.b": true}', '{"a": [{"b": 1}]}']
    lines += [
        ' {"a": {"b": "\\ud800"}}\t',
        '{"a.b": "\udcff"}',
        '{"a": {"b": NaN}} ',
        "5",
        '{"a": 1} {}',
    ]
    data = "\n".join(lines).encode(errors="surrogateescape")
    assert [row[1:] for row in records(written(path, data), ("a.b",))] == [
        (False, "1"),
        (False, "true"),
        (False, None),
        (False, "\ufffd"),
        (False, "\ufffd"),
        (False, "NaN"),
        (True, None),
        (True, None),
    ]
    deep = "[" * 100_000 + "]" * 100_000
    assert records(written(path, f'{{"a": {deep}}}\n{{}}'.encode()), ("a",))[0][1]


HOSTILE = ["5", '"x"', '{"a": [{}', "{}]}", '{}, {"a": 2}', '{"a": 3}, 0, {}', '{"a": "', '"}', " "]


@example(['{"a": [{}', "{}]}", '{}, {"a": 2}'])
@example(['{"a": "', '"}', '{"a": 3}, 0, {}', "5"])
@given(st.lists(st.sampled_from(['{"a": 1}', *HOSTILE]), max_size=6))
def test_a_line_is_an_object_by_itself(path, lines):
    """Lines that are read at once are not taken for parts of each other."""
    data = "\n".join(['{"a": 0}', *lines]).encode()
    rows = records(written(path, data), ("a",), Layout("jsonl"))
    assert rows == records(path, ("a",), Layout("jsonl"), block=1)
    whole = [line == '{"a": 1}' for line in lines if line != " "]
    assert [not row[1] for row in rows[1:]] == whole


def test_an_array_over_many_lines(path):
    objects = [{"ts": k, "text": ']}\\"' * k} for k in range(20)]
    for data in (json.dumps(objects), json.dumps(objects, indent=2), json.dumps(objects) + "\n"):
        for block in (1, 40, 1 << 20):
            rows = records(written(path, data.encode()), ("ts",), block=block)
            assert rows == [(k + 1, False, str(k)) for k in range(20)]
    rows = records(written(path, b'[{"ts": 1}, 5, {"ts": 2}, {"ts": '), ("ts",), Layout("jsonl"))
    assert [row[1] for row in rows] == [False, True, False, True]


# ---- lines


SPAN = {"traceID": "a", "startTime": 1714557600007214, "duration": 5, "tags": [{"key": "k"}]}
OTLP_SPAN = {"startTimeUnixNano": "1714557600007214592", "attributes": [{"key": "a"}]}
OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "a"}]},
            "scopeSpans": [{"scope": {"name": "x"}, "spans": [OTLP_SPAN, OTLP_SPAN]}],
        }
    ]
}
ROW = {"time": "2024-05-01T10:00:00Z", "took": 5, "tags": [{"key": "k"}]}
OTHER_JSON = {
    "pretty-printed": (json.dumps(ROW, indent=2) * 2, ".", [ROW, ROW]),
    "Jaeger": (json.dumps({"data": [{"spans": [SPAN]}], "total": 0}), ".data[].spans[]", [SPAN]),
    "Jaeger, longer than the head": (
        json.dumps({"data": [{"spans": [SPAN] * 20_000}]}),
        ".data[].spans[]",
        [SPAN] * 20_000,
    ),
    "OTLP": (
        json.dumps(OTLP, indent=1),
        ".resourceSpans[].scopeSpans[].spans[]",
        [OTLP_SPAN] * 2,
    ),
    "OTLP in lines": (
        f"{json.dumps(OTLP)}\n" * 2,
        ".resourceSpans[].scopeSpans[].spans[]",
        [OTLP_SPAN] * 4,
    ),
    "Chrome": (
        '{"traceEvents": [\n{"ph": "X", "ts": 5}]}',
        ".traceEvents[]",
        [{"ph": "X", "ts": 5}],
    ),
    "a key with a hyphen": (
        json.dumps({"my-spans": [SPAN]}),
        '.["my-spans"][]',
        [SPAN],
    ),
    "an array of objects with arrays": (json.dumps([{"spans": [SPAN]}]), ".[].spans[]", [SPAN]),
    "an array of arrays": (
        "[[1714557600, 5], [1714557601, 6]]",
        ".[] | {time: .[0], duration: .[1]}",
        [{"time": 1714557600, "duration": 5}, {"time": 1714557601, "duration": 6}],
    ),
}


@pytest.mark.parametrize("name", OTHER_JSON)
def test_other_json_is_refused_with_a_program_for_jq(path, name):
    text, recipe, rows = OTHER_JSON[name]
    path.write_text(text)
    ends = re.escape(f": jq -c '{recipe}' {path}")
    with one_line(LogError, f"is neither an object a line nor an array of objects .*{ends}$"):
        open_log(str(path))
    if shutil.which("jq"):
        lines = subprocess.check_output(["jq", "-c", recipe, path], text=True)
        assert [json.loads(line) for line in lines.splitlines()] == rows
        path.write_text(lines)
        assert open_log(str(path)).format == "jsonl"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROW),
        json.dumps([ROW]),
        '{"items": [{"a": 1}], "ts": 5}\n{"ts": 6}',
        '{"ts": 5}',
        "{broken\n" + json.dumps(ROW),
        "{broken",
        "[]",
        "[\n{\n" + json.dumps(ROW)[1:] + "\n]",
    ],
)
def test_json_that_is_read(path, text):
    path.write_text(text)
    assert open_log(str(path)).format == "jsonl"


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


# ---- Zeek, Parquet


def test_zeek_logs_behind_each_other(path):
    logs.as_zeek(path)
    wanted = [
        (k + 1, False, ts, rtt, client)
        for k, (ts, rtt, client) in zip((7, 8, 9, 18, 19, 20), logs.REQUESTS, strict=True)
    ]
    for block in (1, 10, 1 << 20):
        assert records(path, logs.COLUMNS, block=block) == wanted
    own = b"#separator \\x7c\n#unset_field|none\n#fields|a|b\nnone|2#\n#fields|b|a\n3|4|5\n6|7\n"
    for block in (30, 1 << 20):  # the second header begins a block, or is in the middle of one
        assert records(written(path, own), ("a", "b"), block=block) == [
            (4, False, None, "2#"),
            (6, True, "4", "3"),
            (7, False, "7", "6"),
        ]


def test_parquet_of_all_shapes(path):
    inner = pa.array([{"ip": "x", "deep": {"n": 1}}, None])
    table = pa.table(
        {
            "a.b": [1.5, float("nan")],
            "client": inner,
            "k": pa.array(["u", "v"]).dictionary_encode(),
            "d": pa.array([1, None], pa.decimal128(20, 3)),
        }
    )
    pq.write_table(table, path, row_group_size=1)
    names = ("a.b", "client.ip", "client.deep.n", "k", "d")
    log = open_log(str(path))
    assert log.columns == names
    assert [block.first for block in log.blocks()] == [0, 1]
    assert records(path, names) == [
        (1, False, "1.5", "x", "1", "u", "1.000"),
        (2, False, None, None, None, "v", None),
    ]


# ---- files


@pytest.mark.parametrize("kind", logs.PACKED)
@pytest.mark.parametrize("name", ["csv", "jsonl", "zeek"])
def test_compressed_files(path, kind, name):
    getattr(logs, f"as_{name}")(path)
    pack = logs.PACKED[kind]
    plain = records(path, ("ts", "client"))
    data = path.read_bytes()
    for block in (5, 1 << 20):
        whole = written(path, pack(data))
        assert records(whole, ("ts", "client"), block=block) == plain
    parts = pack(data[:50]) + pack(data[50:])
    assert records(written(path, parts), ("ts", "client")) == plain
    long = pack(b"ts,client\n" + random.Random(1).randbytes(50_000).hex().encode())
    flipped = long[:20] + bytes([long[20] ^ 0x55]) + long[21:]
    for damaged in (long[: len(long) // 2], long[:-2], flipped):
        with one_line(LogError, rf"^\S+ has damaged {kind} data: .+"):
            records(written(path, damaged), ("ts",))


def test_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = b"ts,client\n" + b"1,a\n" * 500_000
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(data)))
    writer.start()
    rows = records(pipe, ("client",))
    writer.join()
    assert (len(rows), rows[-1]) == (500_000, (500_001, False, "a"))


def test_files_of_directories_and_patterns(tmp_path):
    for name in ("b.log", "a.log", ".hidden", "_SUCCESS", "[odd]"):
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / name) for name in ("[odd]", "a.log", "b.log")]
    assert sorted(expand([str(tmp_path)])) == paths
    assert expand([f"{tmp_path}/*.log", paths[1], paths[0], "-", "missing"]) == [
        *paths[1:],
        paths[0],
        "-",
        "missing",
    ]
    with pytest.raises(LogError, match="empty is a directory without logs"):
        expand([str(tmp_path / "empty")])
    with pytest.raises(LogError, match=r"no file matches \S+/\*\.txt"):
        expand([f"{tmp_path}/*.txt"])


# ---- fields as they are

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


@pytest.mark.parametrize("kind", ["csv", "zeek", "pattern", "jsonl"])
@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_lines_with_a_nul_byte_are_damaged(path, kind, block):
    head, form, layout = HEADS[kind]
    lines = [head, *(form % text for text in (b"1", b"2\0", b"3", b"4", b"5"))]
    lines[4] = b"\0" * 50
    written(path, b"\n".join(lines) + b"\n")
    found = [row for row in records(path, ["time", "duration"], layout, block) if row[0] > 1]
    assert [row[0] for row in found if row[1]] == [3, 5]
    rows = [(2, False, "1", "1"), (4, False, "3", "1"), (6, False, "5", "1")]
    assert [row for row in found if not row[1]] == rows


def test_a_log_may_begin_with_nul_bytes(path):
    """A program that goes on writing behind the place where its log was cut leaves them."""
    text = f"{ACCESS}\n" * 3
    written(path, b"\0" * 1000 + text.encode())
    assert open_log(str(path)).format == "access"
    assert [row[:2] for row in records(path, ["time"])] == [(1, True), (2, False), (3, False)]


@pytest.mark.parametrize("data", [bytes(100), b"a\0,b\n" * 9])
def test_a_file_of_nul_bytes_is_not_text(path, data):
    written(path, data)
    with one_line(LogError, "is neither text nor a Parquet file"):
        open_log(str(path))
