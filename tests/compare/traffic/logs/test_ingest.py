"""Logs in every format become the tapes that they should, and bad ones one line."""

import gzip
import os
import random
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import LogError, file_blocks, load, open_source
from compare.traffic.logs.formats import FORMATS
from compare.traffic.logs.ingest import IngestError, LogOptions, ingest_requests, ingest_touches
from compare.traffic.logs.inspect import inspect
from compare.traffic.logs.opening import ANY
from compare.traffic.tapes.tape import CANCEL, START, joined
from compare.traffic.tapes.trace import TraceError, open_trace
from tests.compare import made_logs as logs
from tests.compare.traffic.logs.test_on_spark import IDS, REQUESTS, TOUCHES, files, hostile
from tests.words import one_line
from timers import TimerError


@pytest.fixture
def requests(tmp_path):
    """Ingest a log of requests with the usual columns."""

    def ingest(log, out="trace", duration="rtt", timeout="5s", **settings):
        names = ("duration_unit", "time_is", "end", "id", "event", "starts", "ends")
        extra = {name: settings.pop(name) for name in names if name in settings}
        options = LogOptions(**{"time": "ts", "unit": "us"} | settings)
        return ingest_requests(
            log, tmp_path / out, options, duration=duration, timeout=timeout, **extra
        )

    return ingest


@pytest.fixture
def csv_log(tmp_path):
    def write(text):
        (tmp_path / "log.csv").write_text(text)
        return tmp_path / "log.csv"

    return write


@pytest.fixture
def touches(tmp_path):
    def ingest(log, out="trace", key="client", idle="5s", **settings):
        options = LogOptions(**{"time": "ts", "unit": "us"} | settings)
        return ingest_touches(log, tmp_path / out, options, key=key, idle=idle)

    return ingest


def tape_rows(starts_and_ends, timeout):
    events = []
    for row, (start, end) in enumerate(starts_and_ends):
        events.append((start, row, 0, (start, START, start + timeout)))
        if end is not None:
            events.append((end, row, 1, (end, CANCEL, 0)))
    return [operation for *_, operation in sorted(events)]


# ---- the recorded logs


@pytest.mark.parametrize(
    ("unit", "timeout", "fired"),
    [
        ("us", "5s", 13_944),
        ("us", "50ms", 14_868),
        ("ms", "200ms", 14_074),
    ],
)
def test_dns_queries_that_time_out(requests, recorded_log, unit, timeout, fired):
    done = requests(recorded_log("zeek_dns.log.gz"), timeout=timeout, unit=unit)
    assert (done.rows, done.unreadable) == (53_615, 0)
    assert logs.outcome(done.trace.load()) == (53_615, 0, fired)
    assert done.trace.totals["cancels"] == 53_615 - fired


@pytest.mark.parametrize(("idle", "scheduled"), [("30s", 3_276), ("60s", 3_052)])
def test_clients_that_fall_idle(touches, recorded_log, idle, scheduled):
    done = touches(recorded_log("apache_access.log.gz"), idle=idle, time="time", unit="ms")
    assert (done.rows, done.unreadable) == (
        10_000,
        0,
    )  # the one with an unterminated user agent, too
    assert logs.outcome(done.trace.load()) == (scheduled, 10_000 - scheduled, scheduled)
    assert done.trace.shards[0].id_space < 100  # of 1753 clients


@pytest.mark.parametrize(
    ("meant", "settings"),
    [(REQUESTS, {}), (IDS | {"duration": None}, {}), (TOUCHES, {})],
    ids=["requests", "ids", "touches"],
)
def test_the_tape_does_not_depend_on_how_a_log_is_split(
    requests, touches, tmp_path, monkeypatch, meant, settings
):
    log = tmp_path / "log"
    log.write_bytes(hostile(random.Random(7), 2000))
    ingest = touches if meant is TOUCHES else requests
    settings = meant | settings | {"shards": 2}
    whole = ingest(log, out="whole", **settings)
    monkeypatch.setattr(blocks, "BLOCK", 1000)
    for rows in ("_PIECE", "_GROUP"):
        monkeypatch.setattr(f"compare.traffic.logs.shards.{rows}", 100)
    split = ingest(log, out="split", **settings)
    assert files(split.trace.path) == files(whole.trace.path)


# ---- formats


@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "parquet", "zeek"])
def test_every_format_gives_the_same_tape(requests, tmp_path, format_):
    log = tmp_path / "log"  # its name tells nothing
    getattr(logs, f"as_{format_}")(log)
    done = requests(log)
    assert (done.rows, done.unreadable) == (6, 0)
    assert logs.rows_of(done.trace.load()) == tape_rows(logs.starts_and_ends(), 5_000_000)
    manifest = logs.manifest(done.trace)
    assert manifest["totals"] == {"rows": 10, "starts": 6, "cancels": 4, "rearms": 0, "arms": 0}
    assert (manifest["unit"], manifest["shards"][0]["id_space"]) == ("us", 3)
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


# ---- times


def test_time_is_end_subtracts_exactly(requests, csv_log):
    log = csv_log(
        "ts,rtt\n"
        "10.000,1.5\n"
        "10.000,0.0001\n"  # began just before 10 s
        "10.0005,0.0005\n"
        "10.0005,0.00050000000000000000000001\n"  # began just before, in the 24th digit
        "10,-\n"
        "1,2\n"
    )
    done = requests(log, time_is="end", unit="ms")
    tape = done.trace.load()
    assert tape.time[tape.op == START].tolist() == [8_500, 9_999, 9_999, 10_000]
    assert tape.time[tape.op == CANCEL].tolist() == [10_000] * 4
    assert done.examples == (
        "line 6: it has no duration, so its start is unknown",
        "line 7: it started before 1970",
    )


def test_times_and_durations_are_rounded_down_once(requests, csv_log):
    # Each alone is below the next millisecond, and only their sum is not; 0.1 + 0.2 in floats would
    # be more.
    log = csv_log("ts,rtt\n0.0009,0.0001\n0.1,0.2\n0.00099999999999999999,1e-30\n")
    tape = requests(log, unit="ms", out="a").trace.load()
    assert tape.time[tape.op == CANCEL].tolist() == [0, 1, 300]
    done = requests(log, unit="s", out="b")
    assert (
        done.trace.load().time.tolist() == [0] * 4
    )  # 0.1 s and 0.2 s: 300 ms in one unit as in the other


def test_the_first_value_decides_the_time_format(touches, csv_log):
    log = csv_log("ts,client\nnever,a\n-,a\n1521911720865,a\n5,a\n2018-03-24T17:15:20Z,a\n")
    done = touches(log, unit="ms")
    assert done.trace.load().time.tolist() == [1521911720865]
    assert logs.manifest(done.trace)["source"]["time_format"] == "epoch-ms"
    assert [example.partition(":")[0] for example in done.examples] == [
        "line 2",
        "line 3",
        "line 5",
        "line 6",
    ]
    assert touches(log, unit="ms", time_format="iso", out="iso").trace.load().time.tolist() == [
        1521911720000
    ]
    # Who names the format means it: no number is far from the others.
    named = touches(log, unit="ms", time_format="epoch-s", out="seconds")
    assert (named.rows, named.unreadable) == (5, 3)
    assert named.trace.load().time.tolist() == [5_000, 1521911720865_000]


@pytest.mark.parametrize(("unit", "shift"), [("us", 3), ("ms", 0), ("s", -3)])
def test_seconds_among_milliseconds_are_rejected_and_the_other_way_round(
    touches, tmp_path, unit, shift
):
    milliseconds, seconds = "1521911720000", "1521911720"
    for first, other, form in (
        (milliseconds, seconds, "epoch-ms"),
        (seconds, milliseconds, "epoch-s"),
    ):
        log = tmp_path / f"{form}.csv"
        log.write_text(f"ts,client\n{first},a\n{other},a\n{first},b\n")
        done = touches(log, unit=unit, idle="5s", out=f"{form}-{unit}")
        assert done.trace.load().time.tolist() == [int(1521911720000 * 10.0**shift)] * 2
        assert done.examples == (
            f"line 3: time '{other}' is not {form}, the format of the first time",
        )


def test_a_column_with_the_end(requests, csv_log):
    log = csv_log(
        "ts,stop\n1.5,1.50000000001\n1.5,6.5\n1.5,6.499999\n2,\n3,2.999999\n4,late\n,5\n6,-7\n"
    )
    done = requests(log, duration=None, end="stop")
    ends = {1_500_000: [1_500_000, None, 6_499_999], 2_000_000: [None]}
    wanted = [(start, end) for start, ends in ends.items() for end in ends]
    assert logs.rows_of(done.trace.load()) == tape_rows(wanted, 5_000_000)
    assert done.examples == (
        "line 6: end '2.999999' is before its start",
        "line 7: end 'late' is not epoch-s or is out of range",
        "line 8: it has no time",
        "line 9: end '-7' is before its start",
    )
    source = logs.manifest(done.trace)["source"]
    assert source["columns"] == {"time": "ts", "end": "stop"}
    for settings in ({"end": "stop"}, {"duration": None}):
        with pytest.raises(IngestError, match="needs exactly one of --duration, --end and --id"):
            requests(log, out="other", **settings)
    with pytest.raises(IngestError, match="--time-is cannot be end"):
        requests(log, duration=None, end="stop", time_is="end", out="other")


def test_files_are_read_in_the_order_of_their_first_times(requests, tmp_path):
    names = tmp_path / "app.log", tmp_path / "app.log.1"  # the older one has been renamed
    for name, times in zip(names, ([20, 21], [10, 12]), strict=True):
        name.write_text("".join(["ts,rtt\n", *(f"{time},0.5\n" for time in times)]))
    names[1].with_name("app.log").write_text(names[0].read_text() + "x,1\n")
    names[1].write_text(names[1].read_text() + "y,1\n")
    done = requests(names)
    assert [example.partition(":")[0] for example in done.examples] == [
        f"{name}, line 4" for name in names[::-1]
    ]


def test_a_log_that_is_cut_off_while_it_is_read_is_an_error(csv_log):
    log = csv_log("ts,rtt\n1,0.5\n2,0.5\n")
    source = open_source(str(log))
    (block,) = file_blocks(source)
    log.write_text("ts,rtt\n1,0.5\n")
    with pytest.raises(LogError, match=r"log.csv became shorter while it was read"):
        load(source, block)


TWO_ROWS = {"id": "id", "event": "type", "starts": "begin", "ends": "end"}


def test_a_request_in_two_rows(requests, csv_log):
    log = csv_log(
        "ts,id,type\n"
        "1.5,a,end\n1,a,begin\n"  # in any order
        "2,b,begin\n"  # without an end
        "3,c,end\n"  # without a start
        "4,d,begin\n4,d, end \n9,d,end\n"  # with two ends
        "5,e,begin\n10,e,end\n"  # too late
        "6,a,begin\n7,a,begin\n8,a,end\n"  # the id again, and twice
        "11,f,retry\n12,,begin\nx,g,begin\n"
    )
    done = requests(log, duration=None, **TWO_ROWS, unit="ms")
    wanted = [(1000, 1500), (2000, None), (4000, 4000), (5000, None), (6000, None), (7000, 8000)]
    assert sorted(logs.rows_of(done.trace.load())) == sorted(tape_rows(wanted, 5000))
    assert (done.rows, done.unmatched, done.unreadable, done.reading.rows) == (10, 2, 2, 6)
    assert rejected(done) == [
        (5, "unmatched", "it is an end, and 'c' has no start before it", "3", "c"),
        (8, "unmatched", "it is an end, and 'd' has no start before it", "9", "d"),
        (15, "unreadable", "it has no id", "12", None),
        (16, "unreadable", "time 'x' is not epoch-s or is out of range", "x", "g"),
    ]
    source = logs.manifest(done.trace)["source"]
    assert source["columns"] == {"time": "ts", "id": "id", "event": "type"}
    assert (source["starts"], source["ends"], source["unmatched"]) == ("begin", "end", 2)
    for change, problem in {
        ("event", None): "--id needs --event, a column, and --starts",
        ("ends", "begin"): "starts and ends are both 'begin'",
        ("id", None): "needs exactly one of --duration, --end and --id",
        ("time_is", "end"): "--time-is cannot be end",
        ("event", "nix"): "has no column 'nix'",
    }.items():
        with pytest.raises(IngestError, match=problem):
            requests(log, duration=None, **TWO_ROWS | dict([change]), out="other")


def test_two_rows_are_the_same_requests_as_one(requests, tmp_path):
    rng = random.Random(3)
    rows = [(k / 7, rng.choice([None, rng.random() * 8])) for k in range(3000)]
    one_row = "".join(f"{a:.3f},{'' if b is None else format(a + b, '.3f')}\n" for a, b in rows)
    two = [f"{a:.3f},i{k},begin\n" for k, (a, _) in enumerate(rows)]
    two += [f"{a + b:.3f},i{k},end\n" for k, (a, b) in enumerate(rows) if b is not None]
    rng.shuffle(two)
    (tmp_path / "one").write_text("ts,stop\n" + one_row)
    (tmp_path / "two").mkdir()
    for number in range(2):
        lines = ["ts,id,type\n", *["0,none,end\n"] * number, *two[number::2]]
        (tmp_path / "two" / str(number)).write_text("".join(lines))
    done = requests(tmp_path / "one", duration=None, end="stop", unit="ms")
    again = requests(tmp_path / "two", duration=None, **TWO_ROWS, unit="ms", shards=3, out="again")
    tapes = [again.trace.load(shard) for shard in range(3)]
    assert sorted(logs.rows_of(joined(tapes))) == sorted(logs.rows_of(done.trace.load()))
    assert (again.unmatched, again.reading.timed_out) == (1, done.reading.timed_out)


def test_a_pipe_with_ids_is_refused(requests, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"ts,id,type\n1,a,begin\n"))
    writer.start()
    with pytest.raises(IngestError, match="pipe can be read only once, and a log with ids"):
        requests(pipe, duration=None, **TWO_ROWS)
    writer.join()


def test_units_in_the_names_of_columns(requests, csv_log):
    log = csv_log("ts_ms,latency_ms,end_ms\n1,250,2\n2,250,3\n3,250,4\n")
    read = {"time": "ts_ms", "duration": "latency_ms"}
    done = requests(log, **read)
    assert done.reading.units == (("ts_ms", "s"), ("latency_ms", "s"))
    warnings = [text for text in done.reading.warnings if text.startswith("Column")]
    for text, column in zip(warnings, ("ts_ms", "latency_ms"), strict=True):
        assert text.startswith(f"Column '{column}' was read in s, and its name says ms. See --dur")
    right = requests(log, **read, duration_unit="ms", time_format="epoch-ms", out="right")
    assert not any("Column" in text for text in right.reading.warnings)
    done = requests(log, time="ts_ms", duration=None, end="end_ms", out="end")
    assert done.reading.units == (("ts_ms", "s"), ("end_ms", "s"))


def test_date_and_time_in_two_columns(touches, tmp_path, csv_log):
    log = csv_log("date,time,client\n2020-01-01,00:00:01,a\n2020-01-01,,a\n,,a\n")
    done = touches(log, time="date,time", unit="s")
    assert done.trace.load().time.tolist() == [1_577_836_801]
    assert done.examples[0] == "line 3: time '2020-01-01 ' is not iso or is out of range"
    with pytest.raises(IngestError, match="has no column 'day'"):
        touches(log, time="day,time", out="other")
    pq.write_table(pa.table({"date": ["2020"], "time": ["1"], "client": ["a"]}), tmp_path / "log")
    with pytest.raises(IngestError, match="has no column 'date,time'"):
        touches(tmp_path / "log", time="date,time", out="other")


@pytest.mark.parametrize(
    ("first", "written", "year"),
    [
        ("Mar  1 12:00:00", datetime(2025, 3, 1, 12), 2025),
        ("Mar  2 11:59:59", datetime(2025, 3, 1, 12), 2025),  # in a zone ahead of UTC
        ("Mar  2 12:00:01", datetime(2025, 3, 1, 12), 2024),
        ("Feb 29 00:00:00", datetime(2025, 3, 1, 12), 2024),
        ("Feb 29 00:00:00", datetime(2103, 3, 1, 12), 2096),  # 2100 is not a leap year
        ("Jan  1 00:00:00", datetime(2024, 12, 31, 23), 2025),
    ],
)
def test_the_first_year_is_that_of_the_file(touches, tmp_path, first, written, year):
    log = tmp_path / "log"
    log.write_text(f"{first} host app: text\n")
    os.utime(log, (written.replace(tzinfo=UTC).timestamp(),) * 2)
    done = touches(log, time="time", key="host", unit="s")
    assert datetime.fromtimestamp(done.trace.load().time[0], UTC).year == year
    assert done.reading.time_format == "%b %d %H:%M:%S"
    assert inspect(str(log), ANY).guesses["year"] == str(year)


def test_a_log_without_a_year_goes_on_over_the_turn_of_the_year(touches, tmp_path):
    log = tmp_path / "log"
    log.write_text("Dec 31 23:59:59 h\nJan  1 00:00:00 h\nFeb 29 00:00:00 h\nMar  1 00:00:00 h\n")
    for year, unreadable in ((2023, 0), (2022, 1)):
        done = touches(log, time="time", key="host", unit="s", year=year, force=True)
        moments = [datetime.fromtimestamp(second, UTC) for second in done.trace.load().time]
        dates = [(year, 12, 31), (year + 1, 1, 1), (year + 1, 2, 29), (year + 1, 3, 1)]
        del dates[2 : 2 + unreadable]
        assert [(each.year, each.month, each.day) for each in moments] == dates
        assert done.unreadable == unreadable
        assert logs.manifest(done.trace)["source"]["year"] == year


def test_files_without_years_are_in_the_order_of_their_times(touches, tmp_path):
    for name, text, written in (("a", "Jan  5", (2024, 1, 6)), ("b", "Dec 30", (2023, 12, 31))):
        (tmp_path / name).write_text(f"{text} 00:00:00 host x\n")
        os.utime(tmp_path / name, (datetime(*written, tzinfo=UTC).timestamp(),) * 2)
    done = touches([tmp_path / "a", tmp_path / "b"], time="time", key="host", unit="s")
    moments = [datetime.fromtimestamp(second, UTC) for second in done.trace.load().time]
    assert [moment.year for moment in moments] == [2023, 2024]


def test_a_year_is_asked_for_where_it_is_not_known(touches, tmp_path):
    data = "Oct 11 22:14:15 host x\n"
    for year in (None, 2021):
        pipe = tmp_path / f"pipe {year}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(data,))
        writer.start()
        if year is None:
            with one_line(IngestError, "have no year, .*; give --year, that of the first line"):
                touches(pipe, time="time", key="host", unit="s")
        else:
            done = touches(pipe, time="time", key="host", unit="s", year=year)
            assert datetime.fromtimestamp(done.trace.load().time[0], UTC).year == year
        writer.join()
    table = pa.table({"time": ["Oct 11 22:14:15"], "host": ["a"]})
    with one_line(IngestError, "give --year"):
        touches(table, "other", time="time", key="host", time_format="%b %d %H:%M:%S")
    log = tmp_path / "log"
    log.write_text("Feb 29 22:14:15 host x\n")
    with one_line(IngestError, "begins on 29 February, which 2023 does not have"):
        touches(log, "other", time="time", key="host", year=2023)
    for year in (1969, 10_000, "2023"):
        with pytest.raises(IngestError, match="year must"):
            LogOptions("time", year=year)


def test_times_in_a_time_zone(touches, csv_log):
    log = csv_log("ts,client\n2024-01-01 01:00:00,a\n2024-07-01 02:00:00,a\n")
    done = touches(log, time_zone="Europe/Berlin", unit="s")
    assert done.trace.load().time.tolist() == [1_704_067_200, 1_719_792_000]
    assert (done.reading.times.without_zone, done.reading.times.zones) == (0, (0, 0))
    assert logs.manifest(done.trace)["source"]["time_zone"] == "Europe/Berlin"
    log.write_text("ts,client\n1970-01-01 00:30:00,a\n1970-01-01 01:00:00,a\n")
    done = touches(log, time_zone="Europe/Berlin", unit="s", out="early")
    assert done.examples == ("line 2: time '1970-01-01 00:30:00' is before 1970",)
    with pytest.raises(TimerError, match="^time zone 'Berlin' is not in the database"):
        touches(log, time_zone="Berlin", out="other")


def test_which_rows_are_used(touches, requests, csv_log):
    log = csv_log(
        "ts,rtt,client,status\n1,0.1,a,200\n2,0.1,b,504\n3,x,c,504\nnever,x,d,200\n4,1,5,0.1,x\n"
        "5,9,a,504.0\n6,9,b,-\n"
    )
    done = requests(log, where=("status >= 504", "client != d"), unit="s")
    assert done.trace.load().time.tolist() == [2, 2, 5]
    assert [example[:7] for example in done.examples] == ["line 4:", "line 6:"]
    source = logs.manifest(done.trace)["source"]
    assert source["where"] == ["status >= 504", "client != d"]
    assert source["columns"] == {"time": "ts", "duration": "rtt"}
    done = touches(log, limit=4, out="limit", unit="s")
    assert done.trace.load().time.tolist() == [1, 2, 3]  # the header is a line
    assert (done.rows, done.unreadable) == (3, 0)
    assert logs.manifest(done.trace)["source"]["limit"] == 4
    with pytest.raises(IngestError, match=r"log.csv has no row that can be read with status = 6$"):
        touches(log, where=("status = 6",), out="other")
    with pytest.raises(IngestError, match="has no column 'nix'"):
        touches(log, where=("nix = 1",), out="other")
    for limit in (0, 10_000_001):
        with pytest.raises(IngestError, match=f"limit .*{limit}"):
            touches(log, limit=limit, out="other")


@pytest.mark.parametrize("size", [0, blocks.BLOCK - 1, 1 << 30, True])
def test_the_longest_line_is_at_least_a_block(size):
    with one_line(IngestError, "longest line must"):
        LogOptions("ts", longest_line=size)


@pytest.mark.parametrize("uri", ["s3://bucket/log.csv", "gs://bucket/log.csv?anonymous=true"])
def test_a_store_that_cannot_be_reached_is_one_line(requests, monkeypatch, uri):
    asked = []

    def unreachable(name):
        asked.append(name)
        raise OSError("When resolving region for bucket 'bucket': no network")

    monkeypatch.setattr(blocks, "FileSystem", SimpleNamespace(from_uri=unreachable))
    monkeypatch.setattr("compare.traffic.logs.ingest.spark_session", None)  # is not started
    with one_line(LogError, f"cannot read {re.escape(uri)}: When resolving region"):
        requests(uri)
    limit = "&retry_limit_seconds=5" * uri.startswith("gs")
    assert asked == [uri + limit]


HURTING = {
    "a line": lambda: [b"x" * 10**6] * 100,
    "commas": lambda: [b"," * 10**6] * 300,
    "blank lines": lambda: [b"\n" * 10**6] * 8,
}


@pytest.mark.parametrize("data", HURTING)
def test_memory_does_not_grow_with_a_line(tmp_path, data):
    """That of a process of its own, with a packed log."""
    log = tmp_path / "log.csv.gz"
    with gzip.open(log, "wb", 1) as file:
        file.writelines([b"ts,rtt\n1,1\n", *HURTING[data](), b"\n2,1\n"])
    program = f"""
import resource
from compare.traffic.logs.ingest import LogOptions, ingest_requests
log, out, options = {str(log)!r}, {str(tmp_path / "t")!r}, LogOptions("ts")
done = ingest_requests(log, out, options, duration="rtt", timeout="5s")
print(done.rows, done.unreadable, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    rows, unreadable, kilobytes = map(int, done.stdout.split())
    assert (rows, unreadable) == ((2, 0) if data == "blank lines" else (3, 1))
    assert kilobytes < 1 << 20


@pytest.mark.parametrize("block", [8, 1 << 23])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_a_limit_counts_all_lines_of_all_blocks(touches, csv_log, monkeypatch, block, limit):
    log = csv_log("ts,client\n2,a\n\n4,a\nnever,a\n6,a\n7,a\n8,a\n")  # the number of each line
    monkeypatch.setattr(blocks, "BLOCK", block)
    done = touches(log, limit=limit, unit="s")
    assert done.trace.load().time.tolist() == [line for line in (2, 4, 6, 7, 8) if line <= limit]
    assert done.unreadable == (limit >= 5)


def test_a_pattern_of_lines(touches, tmp_path):
    log = tmp_path / "log"
    log.write_text("1.5 from a!\n\n2.5 of b!\nfrom nowhere\n3.5 from c!\n")
    done = touches(log, time="time", pattern=r"(?P<time>[\d.]+) from (?P<client>\w)")
    assert done.trace.load().time.tolist() == [1_500_000, 3_500_000]
    # The others are not rows that cannot be read.
    assert (done.rows, done.left_out, done.others, done.examples) == (2, 0, 2, ())
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
    assert (done.rows, done.unreadable, done.others) == (1, 0, 2)
    assert logs.manifest(done.trace)["source"]["others"] == 2
    done = touches(log, **options, where=("client = a",), out="chosen")
    assert (done.rows, done.unreadable, done.others) == (2, 1, 2)
    # They do not break the rule of --strict.
    with pytest.raises(IngestError, match="^1 of the 3 rows"):
        touches(log, **options, strict=True, out="strict")
    with one_line(IngestError, "the pattern matches none of the 5 lines of"):
        touches(log, **options | {"pattern": "(?P<time>[^ ]+) for (?P<client>.)"}, out="none")
    # A line that is too long may be one of them.
    long = tmp_path / "long"
    long.write_text(f"x\n1.5 from a\n{'x' * 2 * blocks.BLOCK}\n2.5 from b\n")
    done = touches(long, **options, longest_line=blocks.BLOCK, out="long.trace")
    assert (done.rows, done.unreadable, done.others) == (3, 1, 1)
    words = ["--time", "time", "--key", "client", "--idle", "5s", "--out", "t"]
    words += ["--pattern", options["pattern"]]
    assert "\nother lines 2\n" in said("ingest", "touches", str(log), *words)[1]


def test_rows_without_a_duration_that_can_be_read(requests, csv_log):
    log = csv_log("ts,rtt,stop\n11,2,0\n12,soon,19\n13,-1,x\nnever,1,9\n15,,\n")
    reading = requests(log).reading
    assert (reading.rows, reading.rejected, reading.odd) == (2, 3, 2)
    assert requests(log, time_is="end", out="e").reading.odd == 3  # the last row has no start
    assert requests(log, duration=None, end="stop", out="s").reading.odd == 2
    (said,) = [text for text in reading.warnings if "left" in text]
    assert said.startswith("2 of 5 rows (40%) were left out because of their duration.")


def test_nanoseconds(requests, csv_log):
    log = csv_log("ts,rtt\n1521911720.000000001,0.000000002\n1521911720.000000002,1\n")
    done = requests(log, unit="ns", timeout="3ns")
    base = 1_521_911_720 * 10**9
    assert done.trace.load().time.tolist() == [base + 1, base + 2, base + 3]
    assert done.trace.load().deadline.tolist() == [base + 4, base + 5, 0]
    assert (done.reading.seconds, done.reading.times.step) == (2e-9, None)
    assert requests(log, unit="ns", timeout="1500ms", out="b").reading.timed_out == 0


def test_what_a_log_was_read_as(requests, touches, csv_log, monkeypatch):
    log = csv_log(
        "ts,rtt,client\n2020-01-01T00:00:00Z,2,a\n2020-01-01T02:00:02+02:00,9,b\n"
        "2020-01-01T00:00:03,,a\nnoon,1,a\n2020-01-01T00:00:04-00:30,1,b\n"
    )
    base = 1_577_836_800_000
    for shards, block in ((1, 30), (3, 1 << 23)):
        monkeypatch.setattr(blocks, "BLOCK", block)
        read = requests(log, unit="ms", out=f"r{shards}", shards=shards).reading
        assert (read.time_format, read.guessed, read.rows) == ("iso", True, 4)
        assert (read.first, read.last) == (base, base + 1_805_000)
        assert (read.timed_out, read.pending) == (2, 0)
        assert read.times == ("1s", 1, (-30, 120))
        read = touches(log, unit="ms", out=f"t{shards}", shards=shards).reading
        assert (read.first, read.last) == (base, base + 1_804_000)
        assert (read.timed_out, read.pending) == (2, 1)  # a's and b's first; b's last is pending
        assert read.times == ("1s", 1, (-30, 120))
    # Ten times the step is a fine one.
    assert requests(log, timeout="10s", out="fine", time_format="iso").reading.times.step is None


def test_the_times_of_rejected_rows_do_not_count(requests, csv_log):
    log = csv_log(
        "ts,rtt\n2020-01-01T00:00:03Z,2\n2020-01-01T00:00:01,-1\n2020-01-01T05:30:02.5+05:30,-1\n"
    )
    done = requests(log, unit="ms")
    assert (done.rows, done.unreadable) == (3, 2)
    assert done.reading.times == ("1s", 0, (0, 0))


def test_a_log_without_rows_is_an_empty_trace(requests, touches, csv_log):
    log = csv_log("ts,rtt,client\n")
    for ingest in (requests, touches):
        done = ingest(log, out=str(ingest), shards=2)
        assert (done.rows, done.trace.totals["rows"], len(done.trace.shards)) == (0, 0, 2)
        assert done.reading.time_format is None
        assert done.reading.warnings == ("The log has no rows.",)
        assert open_trace(done.trace.path).source["time_format"] is None
    log.write_text("ts,rtt\n,1\n-,2\n")
    with pytest.raises(IngestError, match="no row of .* can be read; line 2: it has no time"):
        requests(log, out="timeless")


def test_times_at_the_end_of_the_range(touches, csv_log):
    log = csv_log(
        "ts,client\n9223372036854775806,a\n9223372036854775807,a\n-1,a\n-0.0,a\n9223372036854775808,a\n"
    )
    done = touches(log, time_format="epoch-s", unit="s", idle="1s")
    assert done.trace.load().time.tolist() == [0, 2**63 - 2]
    assert done.examples == (
        "line 3: its deadline would be beyond 2**63 - 1 s",
        "line 4: time '-1' is before 1970",
        "line 6: time '9223372036854775808' is not epoch-s or is out of range",
    )


def test_durations_that_are_none(requests, csv_log):
    log = csv_log("ts,rtt\n1,-\n2,\n3, - \n4,never\n5,-1\n6,1e300\n7,NaN\n8,4ms\n9,4000000\n")
    done = requests(log, unit="us", duration_unit="us", timeout="4s")
    assert done.trace.totals == {"rows": 6, "starts": 5, "cancels": 1, "rearms": 0, "arms": 0}
    assert done.examples == (
        "line 5: duration 'never' is not a number in range",
        "line 6: duration '-1' is negative",
        "line 7: duration '1e300' is not a number in range",
        "line 8: duration 'NaN' is not a number in range",
    )


# ---- unreadable rows


def test_unreadable_rows_are_told_and_strict_refuses_them(requests, tmp_path, csv_log):
    log = csv_log(
        "ts,rtt\n" + "1.5,0.1\n" + "\x07bad time that goes on and on and on and on and on,1\n" * 7
    )
    done = requests(log)
    assert (done.rows, done.unreadable, len(done.examples)) == (8, 7, 5)
    assert (
        done.examples[0] == "line 3: time '?bad time that goes on and on and on and'"
        " is not epoch-s or is out of range"
    )
    source = logs.manifest(done.trace)["source"]
    assert (source["rows"], source["unreadable"], source["examples"]) == (8, 7, list(done.examples))
    with pytest.raises(
        IngestError, match="7 of the 8 rows of .*log.csv cannot be read; line 3: time"
    ):
        requests(log, strict=True, out="strict")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "trace"]


# ---- rows that are left out


def rejected(done):
    return [tuple(row.values()) for row in pq.read_table(done.trace.rejected).to_pylist()]


def test_every_row_that_is_left_out_is_kept_in_a_side_table(requests, touches, csv_log):
    log = csv_log("ts,rtt,client\n1,0.5,a\nnever,1,b\n2,soon,\n3,x,y,z\n\n4,0.5,-\n")
    done = requests(log)
    assert (done.rows, done.unreadable, done.unmatched) == (5, 3, 0)
    assert pq.read_schema(done.trace.rejected).names == [
        "line",
        "kind",
        "problem",
        "time",
        "duration",
    ]
    assert rejected(done) == [
        (3, "unreadable", "time 'never' is not epoch-s or is out of range", "never", "1"),
        (4, "unreadable", "duration 'soon' is not a number in range", "2", "soon"),
        (5, "unreadable", "it does not have the 3 fields of the header", "3", "x"),
    ]
    again = touches(log, out="touches")
    assert [row[0] for row in rejected(again)] == [3, 4, 5, 7]
    log.write_text("ts,rtt,client\n1,0.5,a\n")
    assert requests(log, force=True).trace.rejected is None


@pytest.mark.parametrize("block", [8, 1 << 23])
def test_rejected_rows_have_the_line_in_their_own_file(touches, tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK", block)
    # The table is written in several steps.
    monkeypatch.setattr("compare.traffic.logs.shards._ROWS_AT_ONCE", 2)
    names = [str(tmp_path / name) for name in "ab"]
    for name, bad in zip(names, ((3, 4, 9), (2, 8)), strict=True):
        lines = ["ts,client", *("x,a" if line in bad else f"{line},a" for line in range(2, 11))]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    done = touches(names)
    places = [(names[0], 3), (names[0], 4), (names[0], 9), (names[1], 2), (names[1], 8)]
    assert [row[:2] for row in rejected(done)] == places
    assert [example.partition(":")[0] for example in done.examples] == [
        f"{name}, line {line}" for name, line in places
    ]


# ---- shards


def test_shards_hold_the_same_operations(touches, requests, tmp_path):
    log = tmp_path / "log.csv"
    # Each key comes back after half a second, and after longer than it may be idle.
    rows = [f"{k / 10 + k // 100},{k % 7 / 10},k{k % 5}" for k in range(400)]
    log.write_text("\n".join(["ts,rtt,client", *rows]))
    for ingest, span in ((touches, {"idle": "700ms"}), (requests, {"timeout": "300ms"})):
        whole = ingest(log, out=f"{ingest}-1", unit="ms", **span).trace
        split = ingest(log, out=f"{ingest}-9", unit="ms", shards=9, **span).trace
        assert len(split.shards) == 9
        tapes = [split.load(shard) for shard in range(9)]
        divided, wanted = (logs.rows_of(tape) for tape in (joined(tapes), whole.load()))
        if ingest is touches:
            # Who is first under an id depends on the others.
            divided, wanted = ([(row[0], row[2]) for row in rows] for rows in (divided, wanted))
            assert logs.outcome(whole.load()) == (20, 380, 20)
            # Five keys cannot fill nine shards.
            empty = [shard for shard in split.shards if not shard.rows]
            assert len(empty) >= 4
            assert {(shard.first_time, shard.id_space) for shard in empty} == {(None, 0)}
        else:
            assert split.totals == whole.totals
        assert sorted(divided) == sorted(wanted)
        assert tuple(map(sum, zip(*map(logs.outcome, tapes), strict=True))) == logs.outcome(
            whole.load()
        )


# ---- what goes wrong


@pytest.fixture
def good(tmp_path):
    logs.as_csv(tmp_path / "good.csv")
    return tmp_path / "good.csv"


WORDS = [f"word{k}" for k in range(3000)]
REFUSED = {
    "missing": (None, "does not exist"),
    "empty": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "empty.gz": (gzip.compress(b""), "is empty"),
    "zeros": (bytes(100), "is neither text nor a Parquet file"),
    "xz": (b"\xfd7zXZ\x00junk", "is compressed with xz; a log is plain or compressed with gzip,"),
    "cut.parquet": (b"PAR1 and then nothing", "is not a readable Parquet file"),
    "utf-16": (
        "ts,rtt\n1,1\n".encode("utf-16"),
        "is UTF-16; convert it to UTF-8, for example with",
    ),
    "prose": (
        f"no columns \x07{'x' * 200}\nat all\n".encode(),
        f"is in no known format ({', '.join(FORMATS)}); its first line is 'no columns"
        f" ?{'x' * 68}'; give `wheelwork ingest` a --delimiter if a character separates its fields",
    ),
    "commas": (", ".join(WORDS).encode(), f"it has {', '.join(WORDS[:20])} and 2,980 more"),
    "bare": (
        b"1722470400,0.5\n",
        "it has 1722470400, 0.5; give `wheelwork ingest` the --columns if its first line",
    ),
    "date": (
        b"ts,rtt\n01.02.2024 10:00,1\n",
        "'01.02.2024 10:00' in column 'ts' is not a time in a known format (epoch-s, epoch-ms,"
        " epoch-us, epoch-ns, iso, access); give `wheelwork ingest` a --time-format, such as",
    ),
    "unfit": (
        b"ts,rtt\n1\n2\n",
        "can be read; line 2: it does not have the 2 fields of the header (`wheelwork inspect`"
        " shows how it is read)",
    ),
}
"""What is in a file that is not a log, and what is said of it, with the option that helps."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_told_in_one_line(requests, tmp_path, name):
    data, problem = REFUSED[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with one_line(TimerError, re.escape(problem)):
        requests(tmp_path / name)
    assert not list(tmp_path.glob("*trace*"))


def test_columns_and_choices_that_do_not_exist(requests, touches, good):
    with pytest.raises(
        IngestError, match=r"good.csv has no column 'time'; it has ts, rtt, client$"
    ):
        requests(good, time="time")
    with pytest.raises(IngestError, match="no column 'x'"):
        touches(good, key="x")
    for settings in (
        {"unit": "h"},
        {"format": "xml"},
        {"time_format": "unix"},
        {"shards": 0},
        {"time_is": "middle"},
    ):
        with pytest.raises(IngestError, match=str(*settings.values())):
            requests(good, **settings)
    for timeout in ("5", "0s", "-5s", "1.5us", "five", "1ns"):
        with pytest.raises(TimerError, match=timeout):
            requests(good, timeout=timeout)
    pq.write_table(
        pa.table({"ts": pa.array([1], pa.timestamp("us")), "rtt": [1.0]}), good.with_name("log")
    )
    with pytest.raises(IngestError, match="holds timestamps, so its time format cannot be iso"):
        requests(good.with_name("log"), time_format="iso")


def test_a_trace_is_replaced_by_force_if_the_log_can_be_read(requests, good, tmp_path):
    requests(good)
    with pytest.raises(TraceError, match=r"exists; .*--force"):
        requests(good)
    first = open_trace(tmp_path / "trace").totals
    with pytest.raises(IngestError):
        requests(good, force=True, time="time")
    assert open_trace(tmp_path / "trace").totals == first
    assert requests(good, force=True, timeout="1s").trace.totals != first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "trace"]


def test_a_disk_that_is_full_in_the_end(requests, good, tmp_path, monkeypatch):
    def full(self, piece, late=None):
        if len(piece.time):  # only the last one has rows
            raise OSError(28, "x")

    monkeypatch.setattr("compare.traffic.tapes.trace.ShardWriter.append", full)
    with pytest.raises(TimerError, match=r"^cannot write to \S+: No space left on device$"):
        requests(good)
    assert [path.name for path in tmp_path.iterdir()] == ["good.csv"]
