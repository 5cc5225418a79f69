"""Logs of every format become the same tape."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.options import IngestError
from compare.traffic.tapes.tape import CANCEL, START
from tests.compare import made_logs as logs
from tests.compare.made_logs import tape_rows
from tests.words import one_line


@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "parquet", "zeek"])
def test_every_format_gives_the_same_tape(requests, tmp_path, format_):
    log = tmp_path / "log"  # its name tells nothing
    getattr(logs, f"as_{format_}")(log)
    done = requests(log)
    assert (done.rows, done.unreadable) == (6, 0)
    assert logs.rows_of(done.trace.load()) == tape_rows(logs.starts_and_ends(), 5_000_000)
    manifest = logs.manifest(done.trace)
    counts = {"rows": 10, "starts": 6, "cancels": 4, "rearms": 0, "arms": 0}
    assert manifest["totals"] == manifest["totals"] | counts
    assert (manifest["unit"], manifest["totals"]["id_space"]) == ("us", 3)
    source = manifest["source"]
    assert (source["format"], source["time_format"], source["kind"]) == (
        format_,
        "epoch-s",
        "requests",
    )
    assert (source["log"], source["columns"], source["timeout"]) == (
        "log",
        {"time": "ts", "duration": "rtt"},
        "5s",
    )


def test_csv_with_quotes_and_odd_names(touches, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(
        b'\xef\xbb\xbf"the `time`, really", k.1 ,x,x\r\n'
        b'1.5,"a, b",,\r\n'
        b'2.5,"say ""hi""",,\r\n'
        b"3.5,\xff\xfe,,\r\n"
        b"4.5,,,\r\n"
        b"5.5,a,b\r\n"
        b'6.5,"a\r\n'
        b'b",,\r\n'
    )
    done = touches(log, time="the `time`, really", key="k.1", idle="100s")
    assert done.trace.totals["rows"] == 4
    assert done.examples == (
        "line 5: it has no key",
        "line 6: it does not have the 4 fields of the header",
    )
    with pytest.raises(IngestError, match="2 columns named 'x'"):
        touches(log, time="the `time`, really", key="x", out="other")


def test_json_with_texts_nesting_blank_lines_and_late_columns(requests, tmp_path):
    log = tmp_path / "log"
    head = '{"ts": "2018-03-24T17:15:20.865716Z", "a": {"ts": 5}}\n' * 20_000  # more than the head
    log.write_text(
        head
        + '\n  \nnonsense\n{"a": 1}\n{"ts": "2018-03-24T17:15:20.865716Z", "rtt": 8.7e-04}\n'
        + '[1]\n{"ts": 7}\n'
    )
    done = requests(log)
    assert (done.rows, done.unreadable) == (20_005, 4)
    assert done.examples == (
        "record 20001: it is not a JSON object",
        "record 20002: it has no time",
        "record 20004: it is not a JSON object",
        "record 20005: time '7' is not iso or is out of range",
    )
    assert done.trace.totals["cancels"] == 1
    assert done.trace.load().time[-1] == 1521911720865716 + 870
    with pytest.raises(IngestError, match="no column 'latency'; it has ts, a.ts$"):
        requests(log, duration="latency", out="other")


@pytest.mark.parametrize("number", [1, 5, 19])
def test_json_columns_that_one_block_alone_has(requests, tmp_path, monkeypatch, number):
    monkeypatch.setattr(blocks, "HEAD_BYTES", 20)
    monkeypatch.setattr(blocks, "BLOCK", 30)
    lines = [f'{{"ts": {k}}}' for k in range(20)]
    lines[number] = f'{{"ts": {number}, "rtt": 0.5, "id": "x"}}'
    (tmp_path / "log").write_text("\n".join(lines))
    assert requests(tmp_path / "log").trace.totals["cancels"] == 1
    assert requests(tmp_path / "log", out="one", where=("id = x",)).rows == 1


def test_rows_of_several_row_groups_keep_their_order(requests, tmp_path):
    table = pa.table({"ts": [1] * 7, "rtt": [None, None, 0, None, 0, None, None]})
    pq.write_table(table, tmp_path / "log", row_group_size=3)
    tape = requests(tmp_path / "log", unit="s").trace.load()
    assert tape.op.tolist() == [START] * 3 + [CANCEL, START, START, CANCEL, START, START]


PARQUET_TIMES = {
    "nanoseconds": pa.array([1521911720865716123, None], pa.timestamp("ns")),
    "microseconds": pa.array([1521911720865716, None], pa.timestamp("us")),
    "zoned": pa.array([1521911720865716, None], pa.timestamp("us", "America/New_York")),
    "numbers": pa.array([1521911720865716, None], pa.int64()),
    "doubles": pa.array([1521911720.865716, float("nan")]),
    "texts": pa.array(["2018-03-24T17:15:20.865716", None]),
}

PARQUET_DURATIONS = {
    "seconds": pa.array([0.000870, None]),
    "spans": pa.array([870_000, None], pa.duration("ns")),
}


@pytest.mark.parametrize("time", PARQUET_TIMES)
def test_parquet_times_of_all_types(requests, tmp_path, time):
    table = pa.table(PARQUET_TIMES | PARQUET_DURATIONS)
    pq.write_table(table, tmp_path / "log")
    duration = "spans" if time == "texts" else "seconds"
    done = requests(tmp_path / "log", time=time, duration=duration)
    assert done.trace.load().time.tolist() == [1521911720865716, 1521911720865716 + 870]
    assert done.examples == ("row 2: it has no time",)


def test_parquet_columns_of_other_types_are_refused(requests, touches, tmp_path):
    pq.write_table(
        pa.table({"ts": [1.5], "date": pa.array([1], pa.date32()), "list": [[1]], "ok": [True]}),
        tmp_path / "log",
    )
    with pytest.raises(
        LogError, match=r"column 'date' of type date32\[day\] cannot be read as a time"
    ):
        requests(tmp_path / "log", time="date", duration="ts")
    with pytest.raises(LogError, match="'ok' of type bool cannot be read as a duration"):
        requests(tmp_path / "log", duration="ok")
    with pytest.raises(LogError, match="column 'list' of type list"):
        touches(tmp_path / "log", key="list")
    assert touches(tmp_path / "log", key="date").rows == 1


def test_a_format_can_be_forced(touches, tmp_path):
    log = tmp_path / "log"
    log.write_text("ts;client,x\tclient\n5\tb\n")
    assert touches(log, format="tsv", time="ts;client,x", out="tsv").examples == ()
    assert touches(log, time="ts;client,x", out="auto").rows == 1  # a tab speaks for TSV
    with pytest.raises(IngestError, match="has no column 'ts'"):
        touches(log, format="csv", out="csv")
    with pytest.raises(LogError, match="is not a Parquet file"):
        touches(log, format="parquet", out="parquet")
    with pytest.raises(LogError, match="no #fields line"):
        touches(log, format="zeek", out="zeek")


def test_a_pattern_of_lines(touches, tmp_path):
    log = tmp_path / "log"
    log.write_text("1.5 from a!\n\n2.5 of b!\nfrom nowhere\n3.5 from c!\n")
    done = touches(log, time="time", pattern=r"(?P<time>[\d.]+) from (?P<client>\w)")
    assert done.trace.load().time.tolist() == [1_500_000, 3_500_000]
    # The others are not rows that cannot be read.
    assert (done.rows, done.left_out, done.other_lines, done.examples) == (2, 0, 2, ())
    assert logs.manifest(done.trace)["source"]["format"] == "pattern"
    bad = {
        "(a)": "Regular expression contains unnamed groups",
        "(?P<a>x)(?=y)": r"invalid perl operator: \(\?=",
        r"(?P<a>x)\1": r"invalid escape sequence: \\1",
        "(?P<a>[": "missing ]",
        "(?P<a>x)(?P<a>y)": "redefinition of group name",
    }
    for pattern, reason in bad.items():
        with one_line(LogError, rf"^pattern .*: {reason}.*; it is a .* RE2"):
            touches(log, time="time", pattern=pattern, out="other")
    with pytest.raises(IngestError, match="has no column 'client'; it has none"):
        touches(log, time="client", pattern="from", out="other")
    with pytest.raises(IngestError, match="--log-format cannot be given"):
        touches(log, pattern="(?P<time>x)", format="csv", out="other")


def test_other_lines_than_those_of_a_pattern(touches, tmp_path, said):
    log = tmp_path / "log"
    log.write_text("x\n1.5 from a\n2.5 of b\nsoon from a\n3.5 from c\n")
    options = {"time": "time", "pattern": "(?P<time>[^ ]+) from (?P<client>.)"}
    done = touches(log, **options, limit=3)
    assert (done.rows, done.unreadable, done.other_lines) == (1, 0, 2)
    assert logs.manifest(done.trace)["source"]["other_lines"] == 2
    done = touches(log, **options, where=("client = a",), out="chosen")
    assert (done.rows, done.unreadable, done.other_lines) == (2, 1, 2)
    # They do not break the rule of --strict.
    with pytest.raises(IngestError, match="^1 of the 3 rows"):
        touches(log, **options, strict=True, out="strict")
    with one_line(IngestError, "the pattern matches none of the 5 lines of"):
        touches(log, **options | {"pattern": "(?P<time>[^ ]+) for (?P<client>.)"}, out="none")
    # A line that is too long may be one of them.
    long = tmp_path / "long"
    long.write_text(f"x\n1.5 from a\n{'x' * 2 * blocks.BLOCK}\n2.5 from b\n")
    done = touches(long, **options, longest_line=blocks.BLOCK, out="long.trace")
    assert (done.rows, done.unreadable, done.other_lines) == (3, 1, 1)
    words = ["--time", "time", "--key", "client", "--idle", "5s", "--out", "t"]
    words += ["--pattern", options["pattern"]]
    assert "\nother lines 2\n" in said("ingest", "touches", str(log), *words)[1]
