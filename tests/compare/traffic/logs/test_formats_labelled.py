"""Fields with names, lines in envelopes, and records of several lines, wherever a log is cut."""

import json
import lzma

import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.opening import ANY, open_log
from tests.compare.traffic.logs.kinds import KINDS
from tests.compare.traffic.logs.records import records, written
from tests.words import one_line


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_log_reads_the_same_wherever_it_is_cut(path, kind):
    written(path, kind.written())
    try:
        columns = open_log(str(path)).columns[:8]
    except LogError:
        layout, columns = Layout(pattern="^(?P<a>.*)$"), ("a",)
    else:
        layout = ANY
    whole = records(path, columns, layout)
    for block in (64, 1000):
        assert records(path, columns, layout, block=block) == whole


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("a=1 b=2", ("1", "2", None)),
        ("b= a=x", ("x", "", None)),
        ('a="x y" b="" c=3', ("x y", "", "3")),
        (r'c="a=5 \"b=6\" " a=1', ("1", None, r"a=5 \"b=6\" ")),
        ("  a=1   flag  b=2 ", ("1", "2", None)),
        ("aa=9 xa=8 a=1 b.a=7", ("1", None, None)),
        ("a=1 a=2", ("1", None, None)),
    ],
)
def test_pairs_of_logfmt(path, line, values):
    written(path, f'a=0 b=0 c=0\n\n{line}\r\na=1 b="\n'.encode())
    found = records(path, ("a", "b", "c"))
    assert open_log(str(path)).format == "logfmt"
    assert found[:2] == [(1, False, "0", "0", "0"), (3, False, *values)]
    assert found[2][:2] == (4, True)


def test_labelled_values(path):
    written(path, b"a:1\tb:x:y z\n\nb:\ta:2\nba:3\tc:4\nnonsense\n")
    assert open_log(str(path)).format == "ltsv"
    assert records(path, ("a", "b")) == [
        (1, False, "1", "x:y z"),
        (3, False, "2", ""),
        (4, False, None, None),
        (5, True, None, None),
    ]


INNER = ["a=1 b=2", 'a="x \\"y\\" \u00e9\\tz" b=3', "nonsense,", "a=4 b=5"]


def test_lines_of_docker(path):
    lines = [
        json.dumps(
            {"log": f"{line}\n", "stream": "stderr", "attrs": {"k": "v"}, "time": "2024-05-01T"},
            separators=(",", ":"),
            ensure_ascii=False,
        )
        for line in INNER
    ]
    written(path, "\n".join([*lines, '{"log":', ""]).encode())
    log = open_log(str(path))
    assert (log.format, log.source.envelope) == ("logfmt", "Docker")
    rows = [
        (1, False, "1", "2"),
        (2, False, 'x \\"y\\" \u00e9\\tz', "3"),
        (3, True),
        (4, False, "4", "5"),
        (5, True),
    ]
    for block in (1, 40, 1 << 20):
        found = records(path, ("a", "b"), block=block)
        assert [row[:2] if row[1] else row for row in found] == rows


def test_a_part_behind_the_head_is_damaged(path, monkeypatch):
    before = "2024-05-01T12:00:00.123456789+02:00 stdout"
    lines = [f"{before} F {line}" for line in INNER] + [
        f"{before} P a=9 b=9",
        f"{before} F c=1 d=1",
    ]
    written(path, "\n".join(lines).encode())
    monkeypatch.setattr(blocks, "HEAD_BYTES", len("\n".join(lines[:-2])))
    log = open_log(str(path))
    assert (log.format, log.source.envelope) == ("logfmt", "CRI")
    found = records(path, ("a",))
    assert [row[0] for row in found if row[1]] == [3, 5]
    assert [row[2] for row in found if not row[1]] == ["1", 'x \\"y\\" \u00e9\\tz', "4", None]


def test_utf_16_is_read_as_utf_8(path):
    text = "ts,r\u00e9sum\u00e9\n" + "".join(f"{k},\u4e16\U0001f600{k}\n" for k in range(3000))
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
        data = mark + text.encode(encoding)
        written(path, data)
        for block in (50, 1 << 20):
            found = records(path, ("ts", "r\u00e9sum\u00e9"), block=block)
            assert found == [(k + 2, False, str(k), f"\u4e16\U0001f600{k}") for k in range(3000)]
    written(path, data[:-1])
    with one_line(LogError, "has damaged UTF-16 data: "):
        records(path, ("ts",))
    written(path, lzma.compress(text.encode())[:-20])
    with one_line(LogError, "has damaged xz data: "):
        records(path, ("ts",))


def test_names_in_latin_1(path):
    written(path, "ts;Dauer f\u00fcr a\n1;2\n".encode("latin-1"))
    assert open_log(str(path)).columns == ("ts", "Dauer f\u00fcr a")
    assert records(path, ("Dauer f\u00fcr a",)) == [(2, False, "2")]


def test_values_in_latin_1_are_decoded(path):
    name, text = "Stra\u00dfe", "M\u00fcnchen"
    lines = {
        "csv": f"ts,{name}\n1,{text}\n",
        "json": f'{{"ts": 1, "{name}": "{text}"}}\n',
        "an array": f'[{{"ts": 1, "{name}": "{text}"}}]',
        "logfmt": f"ts=1 {name}={text} level=info\n",
        "zeek": f"#separator \\x09\n#fields\tts\t{name}\n1\t{text}\n",
    }
    for line in lines.values():
        written(path, line.encode("latin-1"))
        assert [row[-1] for row in records(path, ("ts", name), block=20)] == [text]


@pytest.mark.parametrize("block", [30, 100, 1 << 20])
def test_long_lines_in_parts(path, block):
    """Two streams, whose parts may stand between each other."""
    cri = "2024-05-01T10:00:00.1Z {} {} {}\n".format
    lines = [
        cri("stdout", "F", "ts=1 took=1ms a=b"),
        *(cri("stdout", "P", "ts=2 "), cri("stderr", "P", "ts=3 to")),
        *(cri("stdout", "P", "took=2ms"), cri("stderr", "F", "ok=3ms"), cri("stdout", "F", " a=b")),
        cri("stdout", "F", "ts=4 took=4ms"),
    ]
    written(path, "".join(lines).encode())
    found = [row[:4] for row in records(path, ("ts", "took"), block=block)]
    took = [(1, 1), (5, 3), (6, 2), (7, 4)]
    assert found == [(line, False, str(ts), f"{ts}ms") for line, ts in took]
    assert not open_log(str(path)).divisible
