"""Files of others: nothing in them is imported, unpickled or evaluated."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.base.files import MANIFEST
from compare.cli.commands.verify import MISMATCHES
from compare.traffic.tapes.trace import open_trace
from compare.trial.pipeline.results import EXPIRIES, ResultsError, open_results
from compare.trial.pipeline.verify import verify
from tests.compare.trial.pipeline.contents import rewrite, rows_of
from tests.words import one_line
from timers.errors import TimerError

EVIL = "from pathlib import Path\nPath('ran').touch()\n"
CLASS = EVIL + "from timers import HeapqDelayQueue\nclass Timer(HeapqDelayQueue): pass\n"
ROOT = Path(__file__).parents[3]
NAME = "evil:Timer"
JAVA = "java_method('java.lang.System', 'setProperty', 'wheelwork.ran', 'yes')"


class Poison:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


@pytest.fixture
def stored(said, here, monkeypatch):
    """A trace, results and a run, beside a module that leaves a file when it is imported."""
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    (here / "evil.py").write_text(CLASS)
    assert said("generate", "uniform", "--operations", 200, "--out", "trace")[0] == 0
    timers = "delay-queue,hashed-wheel/tick=5ms"
    assert said("replay", "trace", "--timers", timers, "--out", "results")[0] == 0
    assert said("summarise", "results", "--out", "run")[0] == 0
    yield here
    assert not (here / "ran").exists()
    assert "evil" not in sys.modules


def changed(directory, change):
    """Change a manifest."""
    file = Path(directory, MANIFEST)
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


def relabelled(label, other):
    """Give the rows of a timer another label."""
    dataset = open_results("results").expiries
    rows = rows_of(dataset)
    for row in rows:
        if row["contestant"] == label:
            row["contestant"] = other
    rewrite(dataset, pa.Table.from_pylist(rows, EXPIRIES))


LOG = (
    *("ingest", "requests", "log", "--time", "time", "--duration", "id", "--timeout", "5s"),
    *("--out", "t"),
)


def with_class(manifest):
    """Name a class that is not part of this package."""
    manifest["timers"][0]["name"] = NAME


COMMANDS = [
    ("verify", "results"),
    ("summarise", "results"),
    ("report", "--replayed", "results"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_class_that_results_name_is_not_imported(stored, fails, command):
    changed("results", with_class)
    line = fails(*command)
    assert NAME in line
    assert f"--allow {NAME}" in line
    assert f"--allow {NAME}" in fails(*command, "--allow", "evil:Other")
    with one_line(ResultsError, f"--allow {NAME}"):
        open_results("results")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_class_is_imported_if_it_is_allowed(stored, said, command):
    (stored / "evil.py").write_text("from timers import HeapqDelayQueue as Timer\n")
    relabelled("delay-queue", NAME)
    changed("results", with_class)
    code, _, err = said(*command, "--allow", NAME)
    del sys.modules["evil"]
    assert (code, err) == (0, "")


def test_a_class_is_allowed_only_for_stored_results(said):
    code, _, err = said("report", "--allow", NAME)
    assert (code, "--replayed" in err) == (2, True)


def test_own_timers_of_the_command_are_allowed_in_what_it_resumes(stored, said):
    (stored / "evil.py").write_text("from timers import HeapqDelayQueue as Timer\n")
    for _ in range(2):
        assert said("replay", "trace", "--timers", NAME, "--out", "own")[0] == 0
    del sys.modules["evil"]


@pytest.mark.parametrize(
    "timer",
    [
        {"name": f"delay-queue', {JAVA}, '", "settings": {}},
        {"name": "hashed-wheel", "settings": {f"tick', {JAVA}, '": 1}},
        {"name": "hashed-wheel", "settings": {"tick": f"1) + {JAVA} + (1"}},
        {"name": "hashed-wheel", "settings": {"tick": [1]}},
        {"name": [NAME], "settings": {}},
        {"name": "delay-queue", "settings": "evil"},
        {"name": ".evil:Timer", "settings": {}},
        {"name": "os.path:join", "settings": {}},
    ],
    ids=str,
)
def test_timers_of_results_are_names_and_numbers(stored, fails, timer):
    changed("results", lambda manifest: manifest["timers"].__setitem__(0, timer))
    for command in COMMANDS[:2]:
        assert fails(*command).count("results") == 1


def test_names_in_a_run_are_text(stored, said):
    def poison(manifest):
        for entry in manifest["contestants"]:
            entry |= {"timer": NAME, "name": NAME, "due_at": "__import__('evil')"}
        manifest["sources"][0]["details"] = {"workload": "{{ ().__class__ }}<script>evil</script>"}
        manifest["command"] = ["<script>evil</script>"]

    changed("run", poison)
    assert said("report", "--run", "run")[0] == 0
    page = Path("report", "index.html").read_text()
    assert "<script>evil" not in page


def test_names_in_a_trace_are_text(stored, said):
    changed("trace", lambda manifest: manifest["source"].update(workload=NAME, seed="evil"))
    shutil.rmtree("results")
    code, _, err = said("replay", "trace", "--timers", "delay-queue", "--out", "results")
    assert (code, err) == (0, "")
    assert said("summarise", "results")[0] == 0
    assert said("show", "trace")[0] in (0, 2)


def pickled(table):
    """The table with metadata from which PyArrow, pandas and Spark once made objects."""
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Poison()),
    }
    fields = [field.with_metadata(metadata) for field in table.schema]
    user_type = {"type": "udt", "class": "evil.Timer", "pyClass": NAME, "sqlType": "long"}
    spark = {
        "type": "struct",
        "fields": [
            {"name": name, "type": user_type, "nullable": False, "metadata": {}}
            for name in table.column_names
        ],
    }
    about = {
        "pandas": pickle.dumps(Poison()),
        "org.apache.spark.sql.parquet.row.metadata": json.dumps(spark),
    }
    return table.cast(pa.schema(fields, about))


def poisoned(directory):
    """Add the metadata to all Parquet files."""
    files = sorted(Path(directory).rglob("*.parquet"))
    assert files
    for file in files:
        table = pq.ParquetFile(file).read()
        types = table.schema.types
        pq.write_table(pickled(table), file, write_page_checksum=True)
        assert pq.read_schema(file).metadata[b"pandas"].startswith(b"\x80")
        assert pq.ParquetFile(file).read().schema.types == types


@pytest.mark.parametrize(
    ("directory", "command"),
    [
        ("trace", ("replay", "trace", "--timers", "delay-queue")),
        ("trace", ("compare", "trace", "--timers", "delay-queue", "--sizes", "100")),
        ("results", COMMANDS[0]),
        pytest.param("results", (*COMMANDS[0], "--master", "local[2]"), marks=pytest.mark.spark),
        ("results", COMMANDS[1]),
        ("run", ("report", "--run", "run")),
        ("log", LOG),
    ],
    ids=str,
)
def test_metadata_of_parquet_is_not_unpickled(stored, said, directory, command):
    if directory == "log":
        Path("log").mkdir()
        tape = open_trace("trace").load()
        pq.write_table(pa.table({"time": tape.time, "id": tape.id}), "log/log.parquet")
    poisoned(directory)
    code, _, err = said(*command)
    assert code in (0, MISMATCHES), err


@pytest.mark.spark
def test_a_label_is_not_part_of_a_query(stored, spark):
    from compare import dataframes

    label = f"a', {JAVA}, '"
    relabelled("delay-queue", label)
    results = open_results("results")
    frame = dataframes.results(results, spark)
    found = {row.contestant for row in dataframes.expiries(frame).collect()}
    assert found == {label, "hashed-wheel/tick=5ms"}
    with one_line(TimerError, "which was not replayed"):
        verify("results", session=spark)


@pytest.mark.spark
def test_workers_do_not_import_what_is_in_the_current_folder(stored):
    for name in ("socketserver", "tokenize", "numpy"):
        (stored / f"{name}.py").write_text(EVIL)
    # As the installed command does, Python looks beside the program, not in the current folder.
    command = "import sys; from compare.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", command, "verify", "results", "--master", "local[1]"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
