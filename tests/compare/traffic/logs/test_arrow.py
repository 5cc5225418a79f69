"""Arrow streams give the tapes that the same rows give as text."""

import pyarrow as pa
import pytest

from compare.traffic.logs.formats import arrow
from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.logs.options import IngestError, LogOptions
from compare.traffic.tapes.trace import open_trace
from tests.compare.made_logs import rows_of
from timers import TimerError

SECOND = 1_500_000_000
ROWS = [  # start, end and duration in us, and a key
    (SECOND * 10**6 + 5, SECOND * 10**6 + 200_005, 200_000, "a"),
    (SECOND * 10**6 - 7, None, None, "b"),
    (SECOND * 10**6 + 9, SECOND * 10**6 + 9_000_009, 9_000_000, None),
    (SECOND * 10**6 + 999_999, SECOND * 10**6 + 1_000_000, 1, "é"),
]
START, END, TOOK, KEY = zip(*ROWS, strict=True)
TIME = pa.timestamp("us", "Europe/Berlin")  # an instant, whatever its zone
TABLE = pa.table(
    {
        "start": pa.array(START, TIME),
        "end": pa.array(END, TIME),
        "took": pa.array(TOOK, pa.duration("us")),
        "key": pa.array(KEY, pa.large_string()),
        "us": pa.array(START, pa.int64()),
        "seconds": pa.array([took and took / 1e6 for took in TOOK], pa.float64()),
        "inner": pa.array([{"key": key} for key in KEY]),
        "day": pa.array([1] * len(ROWS), pa.date32()),
        "interval": pa.array(
            [took and pa.MonthDayNano([0, 0, took * 1000]) for took in TOOK],
            pa.month_day_nano_interval(),
        ),
    }
)


@pytest.fixture
def ingest(tmp_path):
    """Ingest a log, and return what became of it."""

    def run(log, **meaning):
        options = {name: meaning.pop(name) for name in ("time_format", "format") if name in meaning}
        chosen = LogOptions(meaning.pop("time", "start"), unit="us", force=True, **options)
        if "key" in meaning:
            return ingest_touches(log, tmp_path / "t", chosen, idle="5s", **meaning)
        return ingest_requests(log, tmp_path / "t", chosen, timeout="5s", **meaning)

    return run


def test_many_bytes_are_read_in_parts(ingest, monkeypatch):
    table = pa.concat_tables([TABLE] * 3)
    whole = ingest(table, key="key")
    rows = rows_of(whole.trace.load())
    monkeypatch.setattr(arrow, "_MOST_BYTES", 100)
    parts = ingest(table, key="key")
    assert vars(parts) | {"trace": 0} == vars(whole) | {"trace": 0}
    assert rows_of(parts.trace.load()) == rows


@pytest.fixture
def as_text(tmp_path):
    """The rows as CSV: times in us since 1970, and durations in us."""
    lines = [",".join("" if v is None else str(v) for v in row) for row in ROWS]
    (tmp_path / "log.csv").write_text("\n".join(["start,end,took,key", *lines]))
    return tmp_path / "log.csv"


MEANT = {
    "end": ({"end": "end"}, {"end": "end"}),
    "duration": ({"duration": "took"}, {}),
    "interval": ({"duration": "interval"}, {}),
    "numbers": ({"time": "us", "time_format": "epoch-us", "duration": "seconds"}, {}),
    "key": ({"key": "key"}, {"key": "key"}),
    "nested key": ({"key": "inner.key"}, {"key": "key"}),
}
TEXT = {"duration": "took", "duration_unit": "us"}


@pytest.mark.parametrize("case", MEANT)
@pytest.mark.parametrize("rows", [2, 100], ids=["in blocks", "whole"])
def test_a_stream_is_read_as_the_same_rows_are_as_text(ingest, as_text, monkeypatch, case, rows):
    typed, text = MEANT[case]
    wanted = rows_of(ingest(as_text, time_format="epoch-us", **(text or TEXT)).trace.load())
    monkeypatch.setattr(arrow, "_ROWS", rows)
    for stream in (TABLE, TABLE.to_reader(max_chunksize=3)):
        done = ingest(stream, **typed)
        assert (rows_of(done.trace.load()), done.rows) == (wanted, len(ROWS))
        assert done.unreadable == ("key" in typed)  # one row has no key
        assert open_trace(done.trace.path).source["format"] == "arrow"


def test_rejected_rows_of_a_stream_have_their_number(ingest):
    lengths = [pa.MonthDayNano([months, 1, -(86_400 * 10**9)]) for months in (0, 1, 0)]
    table = pa.table({"start": [1, 2, -3], "took": lengths})
    done = ingest(table, duration="took", time_format="epoch-s")
    assert done.examples == (
        "row 2: duration '1 months' is not a number in range",
        "row 3: time '-3' is before 1970",
    )


def test_what_cannot_be_read_from_a_stream_is_one_line(ingest, tmp_path):
    for meaning, problem in {
        ("duration", "day"): "column 'day' of type date32[day] cannot be read as a duration",
        ("duration", "nix"): "pyarrow Table has no column 'nix'; it has start, end, took,",
        ("format", "csv"): "an Arrow stream has columns of its own",
        ("time_format", "iso"): "column 'start' holds timestamps",
    }.items():
        with pytest.raises(IngestError if "type" not in problem else TimerError) as error:
            ingest(TABLE, **{"duration": "took"} | dict([meaning]))
        assert problem in str(error.value)
    events = {"id": "key", "event": "key", "starts": "a", "ends": "b"}
    with pytest.raises(IngestError, match="can be read only once, and a log with ids"):
        ingest(TABLE, **events)
    assert not [*tmp_path.iterdir()]
    assert ingest(TABLE.slice(0, 0), duration="took").rows == 0


def test_a_relation_of_duckdb_chooses_rows_in_sql(ingest, as_text):
    duckdb = pytest.importorskip("duckdb")
    wanted = rows_of(ingest(as_text, time_format="epoch-us", **TEXT).trace.load())
    with duckdb.connect() as connection:
        connection.register("log", TABLE.drop_columns("interval"))
        log = connection.sql('select start, "end" - start as took, key from log')
        assert rows_of(ingest(log, duration="took").trace.load()) == wanted
        some = connection.sql("select distinct start, took from log where key is not null")
        assert ingest(some, duration="took").rows == 3


def test_a_frame_of_polars(ingest, as_text):
    polars = pytest.importorskip("polars")
    wanted = rows_of(ingest(as_text, time_format="epoch-us", key="key").trace.load())
    frame = polars.from_arrow(TABLE.select(["start", "key"]))
    assert rows_of(ingest(frame, key="key").trace.load()) == wanted
