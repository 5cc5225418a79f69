"""Times, durations, units, years and time zones of logs."""

import os
import threading
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.traffic.logs.inspect import inspect
from compare.traffic.logs.opening import ANY
from compare.traffic.logs.options import IngestError, LogOptions
from compare.traffic.tapes.tape import CANCEL, START
from tests.compare import made_logs as logs
from tests.compare.made_logs import tape_rows
from tests.words import one_line
from timers import TimerError


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


def test_the_leap_day_of_another_year_has_a_hint(touches, csv_log):
    lines = ["Feb 28 10:00:00,a", "Feb 29 10:00:00,a", "Mar  1 10:00:00,b"]
    done = touches(csv_log("\n".join(["ts,client", *lines])), year=2023)
    assert done.examples == (
        "line 3: time 'Feb 29 10:00:00' is a day that its year lacks; give --year, that of the"
        " first line",
    )
    assert touches(csv_log("\n".join(["ts,client", *lines])), year=2024, force=True).rows == 3


def test_durations_that_are_bounds_are_said(requests, csv_log):
    done = requests(csv_log("ts,rtt\n1,<1 sec\n2,0.5\n3,<9ms\n4,7\n"))
    assert "2 durations, such as <1 s, were read as their bounds." in done.reading.warnings


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


def test_rows_without_a_duration_that_can_be_read(requests, csv_log):
    log = csv_log("ts,rtt,stop\n11,2,0\n12,soon,19\n13,-1,x\nnever,1,9\n15,,\n")
    reading = requests(log).reading
    assert (reading.rows, reading.rejected, reading.bad_durations) == (2, 3, 2)
    assert (
        requests(log, time_is="end", out="e").reading.bad_durations == 3
    )  # the last row has no start
    assert requests(log, duration=None, end="stop", out="s").reading.bad_durations == 2
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


def test_the_times_of_rejected_rows_do_not_count(requests, csv_log):
    log = csv_log(
        "ts,rtt\n2020-01-01T00:00:03Z,2\n2020-01-01T00:00:01,-1\n2020-01-01T05:30:02.5+05:30,-1\n"
    )
    done = requests(log, unit="ms")
    assert (done.rows, done.unreadable) == (3, 2)
    assert done.reading.times == ("1s", 0, (0, 0))


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
    counts = {"rows": 6, "starts": 5, "cancels": 1, "rearms": 0, "arms": 0}
    assert done.trace.totals == done.trace.totals | counts
    assert done.examples == (
        "line 5: duration 'never' is not a number in range",
        "line 6: duration '-1' is negative",
        "line 7: duration '1e300' is not a number in range",
        "line 8: duration 'NaN' is not a number in range",
    )
