"""A cluster whose machines share an object store and no disk, with plain PySpark: what the engine
itself does there, for the pipeline to rely on.
"""

import os
import signal
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compare.daemons import until
from tests.compare.lake import BUCKET, Driver, Lake

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.xdist_group("lake")]
on_both = pytest.mark.parametrize("driver", ["classic", "connect"], indirect=True)

SHARDS, BLOCKS, OPERATIONS = 4, 3, 1000
SCHEMA = "shard int, block int, time array<bigint>, op array<tinyint>, id array<int>"
TYPES = {"time": pa.int64(), "op": pa.int8(), "id": pa.int32()}


def block(shard, number):
    """The operations of a block: a function of its place alone."""
    values = np.arange(OPERATIONS, dtype=np.int64) * (shard + 1) + number * 1_000_000
    columns = {name: values.astype(type.to_pandas_dtype()) for name, type in TYPES.items()}
    offsets = pa.array([0, OPERATIONS], pa.int32())
    lists = {name: pa.ListArray.from_arrays(offsets, column) for name, column in columns.items()}
    place = {"shard": pa.array([shard], pa.int32()), "block": pa.array([number], pa.int32())}
    return pa.record_batch({**place, **lists})


def write(spark, uri, trouble="", mode="error"):
    """Write a dataset with a row for each block; the first attempt at shard 1 has trouble."""

    def blocks(batches):
        from pyspark import TaskContext

        for batch in batches:
            for shard in batch["id"].to_pylist():
                yield block(shard, 0)
                if shard == 1 and TaskContext.get().attemptNumber() == 0:
                    while trouble == "computes until it is killed":
                        pass
                    if trouble == "fails once":
                        raise ValueError("the first attempt fails")
                yield from (block(shard, number) for number in range(1, BLOCKS))

    tasks = spark.range(0, SHARDS, 1, SHARDS)
    tasks.mapInArrow(blocks, SCHEMA).write.mode(mode).parquet(uri)


def total(spark, uri):
    """The sum of all times and the number of rows, as read by tasks of Spark."""

    def sums(batches):
        for batch in batches:
            times = batch["time"].flatten().to_numpy()
            yield pa.record_batch({"rows": [batch.num_rows], "sum": [int(times.sum())]})

    rows = spark.read.parquet(uri).mapInArrow(sums, "rows long, sum long")
    return tuple(rows.groupBy().sum().first())


EXPECTED = pa.Table.from_batches(
    [block(shard, number) for shard in range(SHARDS) for number in range(BLOCKS)]
)


@pytest.fixture
def uri():
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def read(lake: Lake):
    """Reads a dataset on this machine, without Spark, in the order of its blocks."""

    def table(uri):
        found = pq.read_table(uri.removeprefix("s3://"), filesystem=lake.files)
        return found.sort_by([("shard", "ascending"), ("block", "ascending")])

    return table


def names(lake, uri):
    from pyarrow.fs import FileSelector

    found = lake.files.get_file_info(
        FileSelector(uri.removeprefix("s3://"), recursive=True, allow_not_found=True)
    )
    return [Path(entry.path).name for entry in found]


def same(found, expected=EXPECTED):
    """Whether tables have the same rows. Spark calls the elements of lists by another name."""
    return found.to_pylist() == expected.to_pylist()


def machines(spark, path):
    """What two tasks that run at the same time see."""

    def look(batches):
        import time

        import compare

        list(batches)
        time.sleep(1)  # a worker must not run both
        try:
            import only_here  # noqa: F401

            module = "found"
        except ImportError:
            module = "not found"
        row = {
            "home": [os.environ["HOME"]],
            "cwd": [str(Path.cwd())],
            "file": ["found" if Path(path).exists() else "not found"],
            "module": [module],
            "package": [compare.__path__[0]],
        }
        yield pa.record_batch(row)

    schema = "home string, cwd string, file string, module string, package string"
    tasks = spark.range(0, 2, 1, 2).mapInArrow(look, schema)
    return [row.asDict() for row in tasks.collect()]


def import_here(spark):
    import only_here

    return only_here.__file__


@on_both
def test_workers_see_neither_the_files_nor_the_modules_of_the_driver(lake: Lake, driver: Driver):
    module = lake.folder / "only_here.py"
    module.write_text("")
    assert driver(import_here) == str(module)
    rows = driver(machines, str(module))
    assert [(row["file"], row["module"]) for row in rows] == [("not found", "not found")] * 2
    assert len({row["home"] for row in rows} | {os.environ["HOME"]}) == 3
    assert len({row["cwd"] for row in rows} | {str(lake.folder)}) == 3
    assert not any(row["package"].startswith(str(lake.directory)) for row in rows)


@on_both
def test_what_spark_writes_this_machine_reads_and_the_other_way(driver, lake, uri, read):
    driver(write, uri)
    assert same(read(uri))
    assert "_SUCCESS" in names(lake, uri)
    pq.write_to_dataset(EXPECTED, f"{uri}-ours".removeprefix("s3://"), filesystem=lake.files)
    assert driver(total, f"{uri}-ours") == driver(total, uri)


@on_both
def test_a_task_that_fails_once_is_run_again(driver, uri, read):
    driver(write, uri, "fails once")
    assert same(read(uri))


@on_both
def test_a_task_whose_python_is_killed_is_run_again(lake, driver, uri, read):
    driver.send(write, uri, "computes until it is killed")
    lake.kill_a_python_worker()
    driver.reply()
    assert same(read(uri))


@on_both
def test_an_output_that_exists_is_kept(driver, uri, read):
    driver(write, uri)
    with pytest.raises(RuntimeError, match="PATH_ALREADY_EXISTS"):
        driver(write, uri)
    assert same(read(uri))


def test_applications_run_at_the_same_time(classic, connect, uri, read):
    classic.send(write, f"{uri}-1")
    connect.send(write, f"{uri}-2")
    classic.reply(), connect.reply()
    assert same(read(f"{uri}-1"))
    assert same(read(f"{uri}-2"))


def test_what_a_killed_driver_leaves_is_not_complete(lake, classic, uri, read):
    killed = lake.driver()
    killed.send(write, uri, "computes until it is killed")
    worker = lake.busy_python_worker()
    killed.kill()
    with pytest.raises(EOFError):
        killed.reply()
    until(lambda: not Path(f"/proc/{worker}").exists(), "the end of its tasks", classic.process)
    assert "_SUCCESS" not in names(lake, uri)
    classic(write, uri, "", "overwrite")
    assert same(read(uri))


def test_a_connect_server_completes_what_a_killed_client_began(lake, connect, uri, read):
    killed = lake.driver(connect.address)
    killed.send(write, uri, "computes until it is killed")
    worker = lake.busy_python_worker()
    killed.kill()
    os.kill(worker, signal.SIGKILL)
    until(lambda: "_SUCCESS" in names(lake, uri), "the dataset", connect.process)
    assert same(read(uri))


def create(spark, uri):
    """What becomes of writers of a file: two that both begin while it is absent, and a third."""
    from py4j.protocol import Py4JJavaError

    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(uri)
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def begin():
        # Without the option S3A looks for the file when a writer begins, and the last one wins.
        # With it the store refuses at the end. File systems that do not know it refuse at once.
        option = "fs.option.create.conditional.overwrite"
        builder = files.createFile(path).recursive().overwrite(False)
        return builder.opt(option, "true").build()

    def end(stream, text):
        stream.write(bytearray(text))
        try:
            stream.close()
        except Py4JJavaError as error:
            return error.java_exception.getClass().getSimpleName()
        return "created"

    first, second = begin(), begin()
    return end(first, b"first"), end(second, b"second"), end(begin(), b"third")


def test_hadoop_creates_a_file_only_if_it_is_absent(lake, classic, uri):
    refused = "RemoteFileChangedException"
    assert classic(create, uri) == ("created", refused, refused)
    with lake.files.open_input_stream(uri.removeprefix("s3://")) as file:
        assert file.read() == b"first"
