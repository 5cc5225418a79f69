"""Which column is what: names, pairs, values, and the reasons."""

import re
from pathlib import Path

import pytest

from compare.cli.main import main
from compare.traffic.logs.inspect import inspect
from compare.traffic.logs.made import made_pattern
from compare.traffic.logs.opening import ANY

BASE = 1_714_557_600


@pytest.fixture
def seen(tmp_path):
    """What is guessed from lines."""

    def look(*lines):
        log = tmp_path / "log"
        log.write_text("\n".join([*lines, ""]))
        return inspect(str(log), ANY)

    return look


def table(header, *rows):
    return header, *(row.format(t=BASE + number) for number, row in enumerate(rows))


@pytest.mark.parametrize(
    ("header", "rows", "guesses"),
    [
        ("t_start,t_end", ("{t}.1,{t}.2",), {"time": "t_start", "end": "t_end"}),
        ("sentAt,receivedAt", ("{t},{t}",), {"time": "sentAt", "end": "receivedAt"}),
        ("end_timestamp,duration", ("{t},1.5s",), {"time": "end_timestamp", "time_is": "end"}),
        ("ts,user,took", ("{t},a,1s", "{t},a,2s"), {"time": "ts"}),  # one user
        ("ts,user,took", ("{t},a,1s", "{t},b,2s"), {"time": "ts", "key": "user"}),
        ("ts,user,host,took", ("{t},a,x,1s", "{t},a,y,2s"), {"time": "ts", "key": "host"}),
        ("ts,query_latency_ms", ("{t},12",), {"time": "ts", "duration_unit": "ms"}),
        ("ts,took", ("{t}.123456,1s",), {"time": "ts", "unit": "us"}),
        ("ts,took", ("{t}.120000,1s",), {"time": "ts"}),
        ("ts,took", ("{t},1.0000001s",), {"time": "ts", "unit": "ns"}),
        ("ts,took_us", ("{t},1000",), {"time": "ts", "duration_unit": "us"}),
        ("ts,took_us", ("{t},1001",), {"time": "ts", "duration_unit": "us", "unit": "us"}),
    ],
)
def test_names_pairs_keys_and_units(seen, header, rows, guesses):
    found = dict(seen(*table(header, *rows)).guesses)
    duration = found.pop("duration", None)
    assert (duration is None) == ("end" in guesses)
    assert found == guesses


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("http_request_duration_seconds", "s"),
        ("request_latency_ms", "ms"),
        ("http_requests_total", None),
        ("http_request_duration_seconds_count", None),
        ("room_temperature", None),
    ],
)
def test_the_name_of_a_metric_tells_whether_its_value_is_a_duration(seen, metric, unit):
    found = seen("__name__,timestamp,value", f"{metric},{BASE},1", f"{metric},{BASE + 1},2")
    assert ("duration" in found.guesses) == (unit is not None)
    assert unit in (None, found.guesses.get("duration_unit", "s"))


def test_of_several_metrics_that_of_durations_is_chosen(seen):
    rows = [f"{name},{BASE},1" for name in ("up", "query_duration_seconds", "up")]
    found = seen("metric,timestamp,value", *rows).guesses
    assert found["where"] == "metric = query_duration_seconds"


def test_a_column_of_values_is_doubted(seen):
    assert seen("time,value", f"{BASE},1.5", f"{BASE + 1},2.5").warnings == (
        "Is the column value a duration?",
    )


ACCESS = '::1 - - [17/May/2015:10:05:0{} +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" '


@pytest.mark.parametrize(
    ("fields", "duration", "is_doubted"),
    [
        (("0.001 0.010", "0.002 0.020"), "extra2", False),  # nginx is not faster than its upstream
        (("0.010 0.001", "0.020 0.002"), "extra1", False),
        (('423 0.010 "0.009"', '5 0.020 "0.019"'), "extra2", False),
        (('urt="0.001" rt=0.010', 'urt="0.001" rt=0.020'), "extra2", False),
        (("1234", "5678"), "extra1", True),
        (("1234 5678", "234 678"), None, False),  # bytes?
        (("5 D=1234", "6 D=234"), "extra2", True),
        (("abc", "def"), None, False),
        (("0.1 x", "12.25 y"), None, False),
    ],
)
def test_fields_behind_an_access_line(seen, fields, duration, is_doubted):
    found = seen(*(ACCESS.format(number) + text for number, text in enumerate(fields)))
    assert found.guesses.get("duration") == duration
    assert bool(found.warnings) == is_doubted


DATE = "2024-05-01 10:00:0{},000 "
SAID = {
    "request took 12ms": ("took", "12ms", True),
    "a took 1,234 ms": ("took", "1,234 ms", True),
    "a b duration=1m2.5s c": ("duration", "1m2.5s", True),
    "x: elapsed: 0.25 y": ("elapsed", "0.25", True),
    '{"latency_ms": 12.5, "n": 3}': ("latency_ms", "12.5", True),
    "a processing_time_ms=12 b": ("took_ms", "12", False),
    "GET /a time=12ms": ("took", "12ms", False),
    "GET /a Antwortzeit=12ms": ("took", "12ms", False),
    "done in 12.5 seconds": ("took", "12.5 seconds", False),
    "x 12.5µs": ("took", "12.5µs", False),
    "retrying in 500ms": None,
    "sleeping for 5s": None,
    "session timeout after 30s": None,
    "listening on port 8080": None,
    "12 of 15 files": None,
    "set x to value=17": None,
}


@pytest.mark.parametrize("text", SAID)
def test_a_pattern_is_made_from_lines(text):
    made = made_pattern([DATE.format(number) + text for number in range(2)])
    if SAID[text] is None:
        assert not made.has_duration
        return
    name, took, is_certain = SAID[text]
    match = re.match(made.pattern, DATE.format(7) + text)
    assert (match["time"], match[name]) == (DATE.format(7).strip(), took)
    assert (made.has_duration, made.is_certain, made.missed) == (True, is_certain, 0)


def test_a_number_that_never_changes_is_a_setting():
    lines = [DATE.format(number) + f"limit=30s took={number}ms" for number in range(5)]
    assert re.match(made_pattern(lines).pattern, lines[3])["took"] == "3ms"
    assert not made_pattern([line.partition(" took")[0] for line in lines]).has_duration


def test_requests_that_all_take_as_long_are_no_setting():
    lines = [DATE.format(number) + "a took 12ms" for number in range(5)]
    assert re.match(made_pattern(lines).pattern, lines[3])["took"] == "12ms"


def test_lines_without_what_others_have_are_said(seen):
    lines = [DATE.format(number) + f"a took {number}ms" for number in range(5)]
    found = seen(*lines, DATE.format(6) + "b took for ever")
    assert found.warnings == (
        "Of the first lines, 1 have 'took' and no duration behind it; they will not be read.",
    )


def test_the_reason_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("log").write_text(f"when,query_latency,ip\n{BASE},1s,a\n{BASE + 1},2s,b\n")
    assert main(["inspect", "log"]) == 0
    out = capsys.readouterr().out
    assert "time        when (epoch-s, assumed to be the start, by its values)\n" in out
    assert "duration    query_latency (each value has its unit, by a word of its name)\n" in out
    assert "key         ip (by its name)\n" in out
