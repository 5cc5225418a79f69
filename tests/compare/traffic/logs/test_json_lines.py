"""Compiled code finds the values in JSON lines that Python's `json` finds."""

import json

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compare.traffic.logs.blocks import Block, Source
from compare.traffic.logs.formats import json as module
from compare.traffic.logs.formats.base import BOM, Layout
from compare.traffic.logs.formats.json import JsonLog
from compare.traffic.logs.formats.json_lines import find_values
from compare.traffic.logs.ingest import ingest_requests
from compare.traffic.logs.options import LogOptions

NAMES = ["a", "b", "a.b", "a.b.c", "b.a", ".a", "a.", "é", "\udcff", ""]
LOG = JsonLog.from_head(Source("log", None, b"{}\n"), ["{}"], 0, Layout())

USUAL = {
    "scalar": [
        *("0", "-0.0", "7", "1.50", "1e3", "1E+3", "-2.5e-7", "9" * 30, "null", "true", "false")
    ],
    "character": ["a", ".", ":", ",", "{", "}", "[", "]", " ", "€"],
    "key": ["a", "a", "b", "b", "c", "a.b", "b.c"],
    "space": ["", "", "", "", " ", "\t "],
    "comma": [","],
    "end": [""],
}
UNUSUAL = {
    "scalar": [
        *(
            "-0",
            "1700000000.123456789012345678",
            "1e999",
            "9" * 400,
            "NaN",
            "Infinity",
            "-Infinity",
        ),
        *("01", "-01", "00.5", "1.", ".5", "+1", "--", "-", "1e", "1e+", "1e+-3", "1ex3", "1.e3"),
        *("1-2", "0x1", "1_000", "١", "1,5", "nul", "nullx", "True", "'a'", "/**/1"),
    ],
    "character": [
        *(r"\n", r"\"", r"\\", r"\/", r"\b", r"\f", r"\r", r"\t", r"\u0061", r"\u00E9", r"\ud800"),
        *(r"\udcff", "\udcff", "\x7f", r"\x", r"\u12", r"\u12g4", "\\", '"', "\t", "\0", "\x1f"),
    ],
    "key": [*NAMES, "a.b.c.d", "aa", r"\u0061", r"\"", "\\", "\0"],
    "space": ["\f", "\xa0"],
    "comma": ["", ",,", ":", "\n"],
    "end": [",", "}", "]"],
}
BYTES = st.binary(max_size=9) | st.sampled_from([b"", b" ", b"\t", BOM, b'{"a":1}\0'])


@st.composite
def lines(draw):
    """An object; in some, one kind of part is unusual or wrong."""
    odd = draw(st.sampled_from([*[""] * 9, *UNUSUAL, "value", "values", "bytes"]))
    if odd == "bytes":
        return draw(BYTES)

    def part(kind):
        return draw(st.sampled_from(USUAL[kind] + UNUSUAL[kind] * (kind == odd)))

    def value(depth):
        kind = draw(st.sampled_from(["scalar", "text", *["{}", "[]"] * (depth < 4)]))
        if kind == "text":
            return f'"{"".join(part("character") for _ in range(draw(st.integers(0, 3))))}"'
        return part("scalar") if kind == "scalar" else container(kind, depth)

    def container(signs, depth):
        text = ""
        for _ in range(draw(st.integers(0, 3))):
            text += part("comma") if text else ""
            text += f'"{part("key")}"{part("space")}:' if signs == "{}" else ""
            text += part("space") + value(depth + 1) + part("space")
        return f"{signs[0]}{text}{part('end')}{signs[1]}"

    first = value(0) if odd == "value" else container("{}", 0)
    more = value(0) if odd == "values" else ""
    return f"{part('space')}{first}{part('space')}{more}".encode(errors="surrogateescape")


LINE_ENDS = st.sampled_from([*[b"\n"] * 6, b"\r\n", b"\r", b" \n", b"\t\n", b""])


def rows(records):
    columns = {name: column.to_pylist() for name, column in records.texts.items()}
    return records.number.tolist(), records.fault.tolist(), columns, records.total


@example([(b'{"a":1}{"a":2}', b"\n"), (b'{"a":1,"a":2}', b"\n"), (b'{"a":1,}', b"\n")], NAMES)
@example([(b'{"a":{"b":1},"a":{"c":2}}', b"\n"), (b'{"a":{"b":1},"a":3}', b"\n")], NAMES)
@example([(b'{"a":{"b":1},"a.b":2}', b"\n"), (b'{"a":[{"b":1}],"b":[{"a":2},3]}', b"\n")], NAMES)
@example([(b'{"c":{"a":1},"b":2}', b"\n"), (b'{"c":[[],{}],"a":{"b":{"c":3}}}', b"\n")], NAMES)
@example([(b'{"a":[{}', b"\n"), (b"{}]}", b"\r"), (b'{"b":"x\\"y","a":"z"}', b"\r\n")], NAMES)
@example([(b'{"a":1ex3}', b"\n"), (b'{}"a":1}', b"\n"), (b"{} ", b"\n")], NAMES)
@example([(b'{"a.b":1,"a":{"b":2}}', b"\n"), (b'{"a":{"b":1,"b":2}}', b"\n")], ["a.b"])
@example([(b'{"c":' + b"[" * 99 + b"]" * 99 + b',"a":1}', b"\n"), (b"[" * 9999, b"")], NAMES)
@example([(b'{"c":' + b"[" * 32 + b"]" * 32 + b',"a":1}', b"\n")], NAMES)
@example([(b'{"a":"' + b"x" * 99_999 + b'"}', b"\n"), (BOM + b'{"a":2}', b"\n")], NAMES)
@given(
    st.lists(st.tuples(lines(), LINE_ENDS), max_size=8),
    st.lists(st.sampled_from(NAMES[:4]) | st.sampled_from(NAMES), max_size=3, unique=True),
)
def test_values_and_faults_are_those_that_python_finds(lines, names):
    data = b"".join(line + end for line, end in lines)
    expected = [line for line in data.splitlines() if line.strip(b" ")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", 0)
        found = LOG.parse(data, Block(0, 0), names)
    assert rows(found) == rows(module._records(expected, names))


TEXTS = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cc", "Cs"]))
NUMBERS_PRINTED = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
PRINTED = st.none() | st.booleans() | NUMBERS_PRINTED | TEXTS
OTHERS = st.recursive(
    PRINTED | st.text(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


@given(st.lists(st.tuples(PRINTED, PRINTED, OTHERS), min_size=1, max_size=5), st.booleans())
def test_what_programs_print_is_plain(rows, compact):
    printed = [{"x": other, "a": one, "b": {"y": other, "c": two}} for one, two, other in rows]
    signs = (",", ":") if compact else None
    lines = [json.dumps(row, ensure_ascii=False, separators=signs) for row in printed]
    assert find_values("\n".join([*lines, ""]).encode(), [b"a", b"b.c"]).plain.all()


@pytest.mark.parametrize("name", ["a", "a.b"])
def test_no_lines(name, monkeypatch):
    monkeypatch.setattr(module, "_FEW", 0)
    records = LOG.parse(b" \n\r\n", Block(0, 0), [name])
    assert rows(records) == ([], [], {name: []}, 0)


ROWS = (
    b'{"ts": 1521911720.8657161234567890123, "took": "1.5", "path": "\\/a"}',
    b'{"ts": 1.5219117208e9, "took": 1e-3}',
    b'{"ts": "1521911721", "took": null}\r',
    b'{"took": 0.25, "ts": 1521911722.5} x',
    b'{"ts": 1521911722, "took": 1, "took": 2}',
    b'{"ts": 1521911723, "took": "\xff"}',
    b'{"ts": 99999999999999999999, "took": {"s": 1}}',
    b'{"ts": 1521911724, "took": 1}{"ts": 1521911725, "took": 1}',
    b'{"took": -1, "ts": 1521911726}',
    b"null",
    b" ",
    b'{"ts": NaN}',
)


@settings(max_examples=40)  # of two ingestions; most have each kind of row
@given(st.lists(st.sampled_from(ROWS), max_size=30))
def test_a_trace_and_its_rejects_are_the_same_without_compiled_code(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("log")
    (folder / "log").write_bytes(b"\n".join([ROWS[1], *rows]))
    found = []
    for few in (0, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_FEW", few)
            options = LogOptions("ts", unit="ns", force=True)
            done = ingest_requests(
                folder / "log", folder / "trace", options, duration="took", timeout="2s"
            )
        rejected = done.trace.rejected and pq.read_table(done.trace.rejected).to_pylist()
        tape = [column.tolist() for column in done.trace.load()]
        found.append((tape, rejected, done.examples, done.trace.source, done.reading))
    assert found[0] == found[1]
