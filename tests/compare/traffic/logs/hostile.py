"""Logs that are hardly in order, what their rows mean, and the files of their traces."""

import json

import pyarrow.parquet as pq

from compare.traffic.tapes.trace import open_trace

STATUS = ("200", "504", " 5.04e2 ", "504.5", "-", "x", "")

TIMES = ("{}", "{}.123456789", "{}e0", " {} ", "-5", "", "never", "99999999999999999999", "{}.5")

DURATIONS = ("0.1", "2ms", "", "-", "-1", "soon", "1e-7", "9e99", "300us", '"0.2"')

KEYS = ("a", '"b ""c"""', "", "-", "\udcff\udcfe", "d e", '"f,g"', "é")


def hostile(rng, rows):
    """Lines of a log that is hardly in order, with rows that are late or bad in all ways."""
    lines = ["ts,rtt,client,id,status,stop", "1000,0.1,a,,200,1001"]  # decides the time format
    for k in range(rows):
        now = 1000 + k // 5 - 150 * (300 <= k < 1100)  # for longer than a block
        time = rng.choice(TIMES).format(now + rng.randrange(20))
        fields = [time, rng.choice(DURATIONS), rng.choice(KEYS), rng.choice(["", f"i{k % 97}"])]
        fields += [rng.choice(STATUS), rng.choice(TIMES).format(now + 1 + rng.randrange(20))]
        lines.append(",".join(fields))
        if rng.random() < 0.05:
            lines.append(rng.choice(["", "  ", "x", "1,2,3,4,5,6,7", '1,2,3,4,5,6,"7', "0,,,,,"]))
    return "\r\n".join(lines).encode(errors="surrogateescape")


REQUESTS = {"duration": "rtt", "timeout": "3s"}

ENDS = {"end": "stop", "timeout": "3s"}

IDS = {"id": "client", "event": "status", "starts": "200", "ends": "504", "timeout": "3s"}

TOUCHES = {"key": "client", "idle": "3s"}


def files(path):
    """What a trace has, but for names and the executor: other files of the same rows are equal."""
    trace = open_trace(path)
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest.pop("made_by")["executor"] in ("threads", "spark")
    assert manifest.pop("run") == trace.run
    shards = range(trace.totals["shards"])
    tapes = [[column.tobytes() for column in trace.load(shard)] for shard in shards]
    ends = [shard_and_more(shard) for shard in trace.shards]
    rows = pq.read_table(trace.rejected).to_pylist() if trace.rejected else []
    return manifest, tapes, ends, sorted(map(repr, rows))


def shard_and_more(shard):
    """A shard with what `==` does not compare."""
    return shard, repr(shard.described)
