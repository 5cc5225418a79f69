"""Recorded and made logs become the tapes that they should, however they are split."""

import gzip
import random

import pytest

from compare.traffic.logs import blocks, job, shards, sorting
from compare.traffic.logs import requests as requests_module
from compare.traffic.logs.options import IngestError
from compare.traffic.tapes.tape import joined
from compare.traffic.tapes.trace import open_trace
from tests.compare import made_logs as logs
from tests.compare.traffic.logs.hostile import IDS, REQUESTS, TOUCHES, files, hostile

# ---- logs in the forms of the recorded ones, whose figures plain integers give


def dns_queries(path):
    """Write queries in no order; return the start and the time to the answer of each, in us."""
    rng, rows = random.Random(3), []
    for _ in range(3000):
        near, usual = rng.randrange(49_990, 50_011), rng.randrange(7_000_000)
        took = rng.choice([None, near, usual, rng.randrange(100_000), 5_000_000])
        rows.append((1_521_911_720_000_000 + rng.randrange(900_000_000), took))
    lines = [
        f"{start // 10**6}.{start % 10**6:06}\tC{number}\t10.47.1.{number % 250}\t"
        + ("-" if took is None else f"{took // 10**6}.{took % 10**6:06}")
        for number, (start, took) in enumerate(rows)
    ]
    header = f"{logs.ZEEK_HEADER}#fields\tts\tuid\tid.orig_h\trtt\n"
    path.write_bytes(gzip.compress(f"{header}{chr(10).join(lines)}\n#close\t2018\n".encode()))
    return rows


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("timeout", [50, 200, 1000, 5000])
def test_made_dns_queries_that_time_out(requests, tmp_path, unit, timeout):
    rows = dns_queries(tmp_path / "log.gz")
    done = requests(tmp_path / "log.gz", timeout=f"{timeout}ms", unit=unit)
    scale, limit = (1, 1000 * timeout) if unit == "us" else (1000, timeout)
    waits = [took and (start + took) // scale - start // scale for start, took in rows]
    late = sum(wait is not None and wait >= limit for wait in waits)
    fired = waits.count(None) + late
    assert (done.rows, done.unreadable) == (3000, 0)
    assert logs.outcome(done.trace.load()) == (3000, 0, fired)
    found = done.trace.description
    assert (found.late, found.timed_out + found.pending) == (late, fired)


@pytest.mark.parametrize("idle", [30, 60])
def test_made_clients_that_fall_idle(touches, tmp_path, idle):
    """Some gaps are exactly as long as the idle period; one user agent is not terminated."""
    rng, second, rows = random.Random(4), 0, []
    for number in range(2000):
        second += rng.choice([0, 0, 1, 2])
        rows.append((second, f"10.{number // 200}.0.{rng.choice([1, 2, 3, rng.randrange(200)])}"))
    rows += [(second + 1000, "10.9.9.9"), (second + 1030, "10.9.9.9"), (second + 1090, "10.9.9.9")]
    rng.shuffle(rows)
    lines = [
        f"{client} - - [17/May/2015:{10 + second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
        ' +0000] "GET / HTTP/1.1" 200 5 "-" "curl"'
        for second, client in rows
    ]
    lines[7] = lines[7].removesuffix('"')
    (tmp_path / "log").write_text("\n".join(lines))
    last, expiries = {}, len({client for _, client in rows})
    for second, client in sorted(rows):
        expiries += second - last.get(client, second) >= idle
        last[client] = second
    done = touches(tmp_path / "log", idle=f"{idle}s", time="time", unit="ms")
    assert (done.rows, done.unreadable) == (2003, 0)
    assert logs.outcome(done.trace.load()) == (expiries, 2003 - expiries, expiries)
    assert done.trace.shards[0].id_space < len(last)


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
    ("meaning", "settings"),
    [(REQUESTS, {}), (IDS | {"duration": None}, {}), (TOUCHES, {})],
    ids=["requests", "ids", "touches"],
)
def test_the_tape_does_not_depend_on_how_a_log_is_split(
    requests, touches, tmp_path, monkeypatch, meaning, settings
):
    log = tmp_path / "log"
    log.write_bytes(hostile(random.Random(7), 2000))
    ingest = touches if meaning is TOUCHES else requests
    settings = meaning | settings | {"shards": 2}
    whole = ingest(log, out="whole", **settings)
    monkeypatch.setattr(blocks, "BLOCK", 1000)
    monkeypatch.setattr(sorting, "_PIECE", 100)
    monkeypatch.setattr(shards, "_GROUP", 100)
    split = ingest(log, out="split", **settings)
    assert files(split.trace.path) == files(whole.trace.path)
    # In a file, they wait in runs of this many rows, of which some are read at a time.
    monkeypatch.setattr(job, "ROWS_IN_MEMORY", 150)
    monkeypatch.setattr(sorting, "CHUNK", 10)
    monkeypatch.setattr(requests_module, "_GATHER", 50)
    monkeypatch.setattr(requests_module, "_PENDING", 20)
    on_disk = ingest(log, out="on disk", **settings)
    assert files(on_disk.trace.path) == files(whole.trace.path)


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


def test_what_a_log_was_read_as(requests, touches, csv_log, monkeypatch):
    log = csv_log(
        "ts,rtt,client\n2020-01-01T00:00:00Z,2,a\n2020-01-01T02:00:02+02:00,9,b\n"
        "2020-01-01T00:00:03,,a\nnoon,1,a\n2020-01-01T00:00:04-00:30,1,b\n"
    )
    base = 1_577_836_800_000
    for number, block in ((1, 30), (3, 1 << 22)):
        monkeypatch.setattr(blocks, "BLOCK", block)
        read = requests(log, unit="ms", out=f"r{number}", shards=number).reading
        assert (read.time_format, read.guessed, read.rows) == ("iso", True, 4)
        assert (read.first, read.last) == (base, base + 1_805_000)
        assert (read.timed_out, read.pending) == (2, 0)
        assert read.times == ("1s", 1, (-30, 120))
        read = touches(log, unit="ms", out=f"t{number}", shards=number).reading
        assert (read.first, read.last) == (base, base + 1_804_000)
        assert (read.timed_out, read.pending) == (2, 1)  # a's and b's first; b's last is pending
        assert read.times == ("1s", 1, (-30, 120))
    # Ten times the step is a fine one.
    assert requests(log, timeout="10s", out="fine", time_format="iso").reading.times.step is None


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
            assert split.totals | {"shards": 0, "id_space": 0} == whole.totals | {
                "shards": 0,
                "id_space": 0,
            }
        assert sorted(divided) == sorted(wanted)
        assert tuple(map(sum, zip(*map(logs.outcome, tapes), strict=True))) == logs.outcome(
            whole.load()
        )
