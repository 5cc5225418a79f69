"""How timers end, and what a timeout would cut, against a loop over the rows of a log."""

import gzip
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compare.traffic.logs import pairs
from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.logs.options import LogOptions
from compare.traffic.tapes.description import TIMEOUTS
from compare.traffic.tapes.units import parse_duration

SECOND = 1_500_000_000_000  # in ms


def model(answers, open_, end, timeout):
    """(answered, late, silent, pending, answers that each timeout cuts).

    `answers` are the times to all answers, whenever they come. `open_` has the beginning of each
    timer that is not answered.
    """
    silent = sum(began + timeout <= end for began in open_)
    late = sum(wait >= timeout for wait in answers)
    timeouts = {text: parse_duration(text, "ms") for text in TIMEOUTS} if answers else {}
    cut = {text: sum(wait >= least for wait in answers) for text, least in timeouts.items()}
    return len(answers) - late, late, silent, len(open_) - silent, cut


def model_of_touches(rows, idle):
    last, gaps = {}, []
    for time, key in sorted(rows):
        if key in last:
            gaps.append(time - last[key])
        last[key] = time
    return model(gaps, last.values(), max(time for time, _ in rows), idle)


def model_of_requests(rows, timeout):
    """Rows are a start and the time to the answer, or None."""
    waits = [wait for _, wait in rows if wait is not None]
    end = max(start + (wait or 0) for start, wait in rows)
    return model(waits, [start for start, wait in rows if wait is None], end, timeout)


def counts(description):
    silent = description.timed_out - description.late
    assert description.complete
    return (
        description.answered,
        description.late,
        silent,
        description.pending,
        dict(description.cut),
    )


TIMES = st.one_of(st.integers(0, 20), st.integers(0, 2000))
SHARDS = st.sampled_from([1, 3])


def options(shards):
    return LogOptions("time", shards=shards, force=True, time_format="epoch-ms")


@settings(max_examples=60)
@example([(0, 0), (7, 0)], 7, 3)  # ties at the deadline and at the end
@example([(0, 0), (7, 1)], 7, 3)
@example([(0, 0), (30, 1), (31, 1), (32, 0), (60, 0)], 7, 1)  # a key that lost its id
@given(
    st.lists(st.tuples(TIMES, st.integers(0, 5)), min_size=1, max_size=30),
    st.integers(1, 9),
    SHARDS,
)
def test_touches_are_counted_as_in_a_plain_loop(tmp_path_factory, rows, idle, shards):
    times, keys = zip(*((SECOND + time, f"k{key}") for time, key in rows), strict=True)
    log = pa.table({"time": pa.array(times), "key": keys})
    out = tmp_path_factory.getbasetemp() / "touches"
    done = ingest_touches(log, out, options(shards), key="key", idle=f"{idle}ms")
    assert counts(done.trace.description) == model_of_touches(rows, idle)


REQUESTS = st.lists(st.tuples(TIMES, st.none() | TIMES), min_size=1, max_size=30)


@settings(max_examples=60)
@example([(0, None), (7, 0)], 7, 3, "duration")  # its deadline is the last time of the log
@example([(0, None), (6, 0)], 7, 3, "end")
@example([(0, None), (0, 7)], 7, 3, "id")
@given(REQUESTS, st.integers(1, 9), SHARDS, st.sampled_from(["duration", "end", "id"]))
def test_requests_are_counted_as_in_a_plain_loop(tmp_path_factory, rows, timeout, shards, role):
    given = {"timeout": f"{timeout}ms", "duration_unit": "ms", role: role}
    starts = [SECOND + start for start, _ in rows]
    waits = [wait for _, wait in rows]
    ends = [None if wait is None else SECOND + start + wait for start, wait in rows]
    log = {"time": starts, "duration": waits, "end": ends}
    if role == "id":
        given |= {"event": "event", "starts": "start", "ends": "end"}
        both = [(time, k, "start") for k, time in enumerate(starts)]
        both += [(time, k, "end") for k, time in enumerate(ends) if time is not None]
        log = dict(zip(("time", "id", "event"), map(list, zip(*both, strict=True)), strict=True))
        log["id"] = list(map(str, log["id"]))
        out = tmp_path_factory.getbasetemp() / "log.csv"
        lines = zip(*log.values(), strict=True)
        out.write_text("\n".join(["time,id,event", *(",".join(map(str, line)) for line in lines)]))
        source = out
    else:
        source = pa.table({name: pa.array(column, pa.int64()) for name, column in log.items()})
    out = tmp_path_factory.getbasetemp() / "requests"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_GATHER", 3)
        done = ingest_requests(source, out, options(shards), **given)
    assert counts(done.trace.description) == model_of_requests(rows, timeout)


# ---- examples


def one_gap():
    """5 000 keys, one touch of each in every second of 40; one key is silent for 30 s."""
    for second in range(40):
        for key in range(5000):
            if key != 7 or not 5 < second < 36:
                yield 1000 * second + key // 5, key


def test_one_gap_is_one_timeout(tmp_path):
    rows = list(one_gap())
    log = pa.table({"time": [SECOND + time for time, _ in rows], "key": [f"k{k}" for _, k in rows]})
    for shards in (1, 4):
        done = ingest_touches(log, tmp_path / "t", options(shards), key="key", idle="30s")
        found = done.trace.description
        assert (found.timed_out, found.late, found.pending) == (1, 1, 5000)
        assert counts(found) == model_of_touches(rows, 30_000)
        assert done.reading.warnings == ()


@pytest.mark.spark
def test_spark_counts_the_same(spark, tmp_path):
    lines = [f"{SECOND + time},k{key}\n" for time, key in one_gap() if key < 100]
    (tmp_path / "log.csv").write_text("time,key\n" + "".join(lines))
    found = [
        ingest_touches(
            tmp_path / "log.csv", tmp_path / f"t{n}", options(3), key="key", idle="10s", session=s
        ).trace.description
        for n, s in enumerate((None, spark))
    ]
    assert found[0] == found[1]
    assert (found[0].late, found[0].pending) == (1, 100)


def test_real_logs(recorded_log, tmp_path):
    """The figures of two independent programs."""
    chosen = LogOptions("ts", unit="us", shards=3, force=True)
    for timeout, late in {"50ms": 14_868, "200ms": 14_072, "1s": 13_954, "5s": 13_944}.items():
        log = recorded_log("zeek_dns.log.gz")
        done = ingest_requests(log, tmp_path / "t", chosen, duration="rtt", timeout=timeout)
        found = done.trace.description
        assert found.timed_out + found.pending == late
        assert found.late == late - 13_938  # those without an answer
        assert found.cut["200ms"] == 14_072 - 13_938
    log = recorded_log("apache_access.log.gz")
    with gzip.open(log, "rt", errors="replace") as lines:
        clients = Counter(line.split(" ", 1)[0] for line in lines)
    chosen = LogOptions("time", shards=3, force=True)
    found = ingest_touches(log, tmp_path / "t", chosen, key="client", idle="30s").trace.description
    assert found.timed_out + found.pending == 3276
    assert found.timed_out - found.late + found.pending == len(clients) == 1753
