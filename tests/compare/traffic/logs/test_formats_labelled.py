"""Fields with names, lines in envelopes, and records of several lines, wherever a log is cut."""

import json
import lzma

import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.formats.envelopes import envelope_of, is_joined
from compare.traffic.logs.formats.patterns import LINES
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


def cri(stream, text, *, more=False):
    return f"2024-05-01T10:00:00.1Z {stream} {'P' if more else 'F'} {text}\n"


def docker(stream, text, *, more=False):
    line = {"log": text if more else f"{text}\n", "stream": stream, "time": "2024-05-01T"}
    return json.dumps(line, separators=(",", ":")) + "\n"


def test_a_first_line_may_be_longer_than_what_is_looked_at():
    parts = [cri("stdout", "a", more=True).rstrip()] * 60
    assert is_joined(envelope_of(parts))
    assert not is_joined(envelope_of([cri("stdout", "a").rstrip()] * 60))


@pytest.mark.parametrize("block", [30, 150, 1 << 20])
@pytest.mark.parametrize("around", [cri, docker])
def test_long_lines_in_parts(path, block, around):
    """Two streams, whose parts may stand between each other."""
    lines = [
        around("stdout", "ts=1 took=1ms a=b"),
        *(around("stdout", "ts=2 ", more=True), around("stderr", "ts=3 to", more=True)),
        around("stdout", 'a="\\\\n" ', more=True),
        *(around("stdout", "took=2ms"), around("stderr", "ok=3ms"), around("stdout", " a=b")),
        around("stdout", "ts=4 took=4ms"),
    ]
    written(path, "".join(lines).encode())
    found = [row[:4] for row in records(path, ("ts", "took"), block=block)]
    took = [(1, 1), (5, 2), (6, 3), (8, 4)]
    assert [row for row in found if row[0] != 7] == [
        (line, False, str(ts), f"{ts}ms") for line, ts in took
    ]
    assert not open_log(str(path)).divisible
    # What is cut off is not lost, in whatever state it is.
    path.write_text("".join([*lines, *lines[1:3]]))
    cut_off = [row for row in records(path, ("ts", "took"), block=block) if row[0] > 8]
    assert [row[0] for row in cut_off] == [9, 10]
    assert [row[1] for row in cut_off] == [around == cri] * 2


def test_a_part_behind_the_head_is_damaged_in_docker_too(path, monkeypatch):
    whole = [docker("stdout", f"ts={k} took={k}ms") for k in range(3)]
    written(path, "".join([*whole, docker("stdout", "ts=3 ", more=True), whole[0]]).encode())
    monkeypatch.setattr(blocks, "HEAD_BYTES", len("".join(whole)))
    assert open_log(str(path)).source.envelope == "Docker"
    assert [row[1] for row in records(path, ("ts",))] == [False] * 3 + [True, False]


def test_lines_of_docker_without_line_ends(path):
    written(path, "".join(docker("stdout", f"ts={k} a=b", more=True) for k in range(3)).encode())
    assert open_log(str(path)).source.envelope == "Docker, without line ends"
    assert [row[2] for row in records(path, ("ts",))] == ["0", "1", "2"]


@pytest.mark.parametrize("around", [cri, docker])
@pytest.mark.parametrize("name", LINES)
def test_a_line_of_any_format_may_be_in_an_envelope(path, name, around):
    line = LINES[name]
    example = line.example.replace(" # ", "\n# ") if line.joins else line.example
    parts = example.split("\n")
    found = []
    for lines in (parts, [around("stdout", part).rstrip("\n") for part in parts]):
        written(path, "\n".join([*lines, *lines, ""]).encode())
        assert open_log(str(path)).format == name
        found.append(records(path, line.columns))
    assert found[0] == found[1] and not any(row[1] for row in found[0])
    assert open_log(str(path)).source.envelope == {cri: "CRI", docker: "Docker"}[around]
