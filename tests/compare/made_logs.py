"""Small logs in all formats, and what a tape of them comes to, computed without any timer."""

import bz2
import csv
import gzip
import io
import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START

# Not in order of time; the third was never answered, the fourth took exactly 5 s, the fifth nearly.
REQUESTS = [
    ("1521911720.865716", "0.000870", "10.47.1.100"),
    ("1521911720.100001", "0.999999", "10.47.1.101"),
    ("1521911723.000000", None, "10.47.1.100"),
    ("1521911721.500000", "5.000000", "10.47.1.102"),
    ("1521911721.500000", "4.999999", "10.47.1.103"),
    ("1521911720.865716", "0", "10.47.1.100"),
]
COLUMNS = ("ts", "rtt", "client")


def starts_and_ends(unit=1_000_000, timeout=5_000_000):
    """(start, end or None) of each row of REQUESTS in units of 1/unit s, by integers."""
    rows = []
    for ts, rtt, _ in REQUESTS:
        start = int(ts.replace(".", ""))
        end = None if rtt is None else start + round(float(rtt) * 1_000_000)
        start, end = start * unit // 1_000_000, None if end is None else end * unit // 1_000_000
        rows.append((start, end if end is not None and end - start < timeout else None))
    return rows


def as_csv(path, delimiter=","):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([value or "" for value in row] for row in REQUESTS)
    path.write_text(text.getvalue())


def as_tsv(path):
    as_csv(path, "\t")


def as_jsonl(path):
    # The digits as they are, which json.dumps of a float would not promise.
    lines = (
        f'{{"ts": {ts}, "rtt": {rtt or "null"}, "client": "{client}", "id.orig": 5}}'
        for ts, rtt, client in REQUESTS
    )
    path.write_text("\n".join(lines) + "\n")


def as_parquet(path):
    ts, rtt, client = zip(*REQUESTS, strict=True)
    floats = [None if text is None else float(text) for text in rtt]
    pq.write_table(
        pa.table({"ts": [float(text) for text in ts], "rtt": floats, "client": client}), path
    )


ZEEK_HEADER = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tdns\n"
)


def as_zeek(path):
    """Two logs, one behind the other, with their columns in another order."""
    first = "\n".join("\t".join(value or "-" for value in row) for row in REQUESTS[:3])
    second = "\n".join(
        "\t".join(value or "-" for value in ("x", *row[::-1])) for row in REQUESTS[3:]
    )
    path.write_text(
        f"{ZEEK_HEADER}#fields\tts\trtt\tclient\n#types\ttime\tinterval\taddr\n{first}\n#close\t2018\n"
        f"{ZEEK_HEADER}#fields\tuid\tclient\trtt\tts\n#types\tstring\taddr\tinterval\ttime\n{second}\n#close\t2018\n"
    )


PACKED = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def cut(columns, places):
    """Columns of one length, cut at some places; any number is one."""
    size = len(columns[0])
    bounds = [0, *sorted(place % (size + 1) for place in places), size]
    return [[column[a:b] for column in columns] for a, b in pairwise(bounds)]


def rows_of(tape):
    """(time, op, deadline) of each operation, without the ids."""
    return list(zip(tape.time.tolist(), tape.op.tolist(), tape.deadline.tolist(), strict=True))


def outcome(tape):
    """(scheduled, rescheduled, fired) on timers that are exact, as a fold over a dictionary of
    deadlines.
    """
    pending: dict[int, int] = {}
    scheduled = rescheduled = fired = 0
    for time, op, id_, deadline in zip(*(column.tolist() for column in tape), strict=True):
        due = pending.get(id_)
        if due is not None and due <= time:
            del pending[id_]
            fired += 1
        if op == CANCEL:
            pending.pop(id_, None)
        elif op == START or (op == ARM and id_ not in pending):
            assert id_ not in pending
            pending[id_] = deadline
            scheduled += 1
        elif op in (ARM, REARM) and id_ in pending:
            pending[id_] = deadline
            rescheduled += 1
    return scheduled, rescheduled, fired + len(pending)


def manifest(trace):
    return json.loads((trace.path / "manifest.json").read_text())


def tape_rows(starts_and_ends, timeout):
    events = []
    for row, (start, end) in enumerate(starts_and_ends):
        events.append((start, row, 0, (start, START, start + timeout)))
        if end is not None:
            events.append((end, row, 1, (end, CANCEL, 0)))
    return [operation for *_, operation in sorted(events)]


def rejected(done):
    return [tuple(row.values()) for row in pq.read_table(done.trace.rejected).to_pylist()]
