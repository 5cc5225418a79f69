"""Places that Spark reads and writes: URIs of its file systems, and tables of its catalogs.

    URI/manifest.json        the description, written last: a file or, from Spark Connect, a
                             directory with one line of text
    URI/run-<hex>/NAME/      a dataset: Parquet files

Each run writes under a directory of its own, and only what a description names is read. So two runs
never mix, and one that ends early leaves nothing that is seen. A table holds one dataset, and its
description is a property of it; `table:NAME_OTHER` is a second dataset of `table:NAME`.

Spark alone touches the files.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compare.base.files import CANNOT_WRITE, MANIFEST
from compare.spark.facts import is_remote
from compare.spark.failures import PipelineError, failure, plain_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "table:"
_PROPERTY = "wheelwork.manifest"
_EXISTS = "ALREADY_EXISTS"
_MISSING = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")


def is_far(place: object) -> bool:
    """Whether only Spark reads a place: a URI, or `table:catalog.db.name`."""
    text = str(place)
    return text.startswith(TABLE) or "://" in text


def dataset_path(place: object, run: str, name: str) -> str:
    """The path of the first dataset of a run; for a table, the table."""
    text = str(place)
    return text if text.startswith(TABLE) else f"{text.rstrip('/')}/{run}/{name}"


def other_path(place: object, run: str, name: str) -> str:
    """The path of another dataset of a run; beside a table, a table with that end of its name."""
    text = str(place)
    return f"{text}_{name}" if text.startswith(TABLE) else dataset_path(place, run, name)


def read_description(session: "SparkSession", place: str) -> str | None:
    """The description of a place, or None without one. Raises PipelineError."""
    with plain_failures(f"cannot read {place}"):
        try:
            if place.startswith(TABLE):
                name = _quoted(place)
                found = session.sql(f"SHOW TBLPROPERTIES {name} ('{_PROPERTY}')").first()
                value = "" if found is None else str(found[-1])
                return bytes.fromhex(value).decode() if re.fullmatch("[0-9a-f]+", value) else None
            path = f"{place.rstrip('/')}/{MANIFEST}"
            lines = session.read.text(path, wholetext=True).collect()
        except Exception as error:  # of Spark: classic and Connect have classes of their own
            if any(text in str(error) for text in _MISSING):
                return None
            raise
    if len(lines) > 1:
        raise PipelineError(
            f"{place} has {len(lines)} descriptions, of runs that wrote to it at the same time;"
            f" remove {MANIFEST}"
        )
    return str(lines[0][0]) if lines else None


@dataclass
class NewRun:
    """Datasets that are being written to a place."""

    session: "SparkSession"
    place: str
    replace: bool
    others: tuple[str, ...] = ()  # names of datasets that the run may have besides the first
    run: str = field(default_factory=lambda: f"run-{uuid.uuid4().hex}")

    def dataset(self, name: str) -> str:
        """The path of a dataset."""
        path_of = other_path if name in self.others else dataset_path
        return path_of(self.place, self.run, name)

    def describe(self, text: str) -> None:
        """Write the description: the run is seen from now on. Raises PipelineError."""
        with plain_failures(f"{CANNOT_WRITE} {self.place}"):
            if self.place.startswith(TABLE):
                # As hexadecimal digits, because a property is a text in quotes.
                value = text.encode().hex()
                properties = f"('{_PROPERTY}' = '{value}')"
                name = _quoted(self.place)
                self.session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {properties}").collect()
                return
            path = f"{self.place.rstrip('/')}/{MANIFEST}"
            if not is_remote(self.session):
                self._create(path, text)
                return
            # A client has no file system, but DataFrames: a directory with one line. Two that begin
            # to write it at the same time are told by whoever reads both.
            line = self.session.createDataFrame([(text,)], "value string").coalesce(1)
            line.write.mode("overwrite" if self.replace else "error").text(path)

    def _create(self, name: str, text: str) -> None:
        """Write a file through Hadoop. Of two writers, one is refused, unless it may replace."""
        context: Any = self.session.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(name)
        files = path.getFileSystem(context._jsc.hadoopConfiguration())
        if self.replace:
            files.delete(path, True)  # a directory, if a client has written it
        builder = files.createFile(path).recursive().overwrite(self.replace)
        if not self.replace:
            # Otherwise an object store looks for the file at the beginning, and the last one wins.
            builder = builder.opt("fs.option.create.conditional.overwrite", "true")
        stream = builder.build()
        stream.write(bytearray(text.encode()))
        stream.close()

    def discard(self, run: str) -> None:
        """Remove the datasets of a run. Through Spark Connect they stay, unseen."""
        if self.place.startswith(TABLE):
            for table in (self.place, *map(self.dataset, self.others)):
                with suppress(Exception):
                    self.session.sql(f"DROP TABLE IF EXISTS {_quoted(table)}").collect()
        elif not is_remote(self.session):
            context: Any = self.session.sparkContext
            with suppress(Exception):
                path = context._jvm.org.apache.hadoop.fs.Path(f"{self.place.rstrip('/')}/{run}")
                path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)


@contextmanager
def new_run(
    session: "SparkSession",
    place: str,
    error: type[Exception],
    *,
    force: bool,
    run_of: Callable[[str], str],
    others: tuple[str, ...] = (),
    others_of: Callable[[str], tuple[str, ...]] = lambda text: (),
) -> Iterator[NewRun]:
    """Write datasets to a place in the block, which ends with `describe`.

    What a failed block has written is discarded. With `force` it replaces what is there: `run_of`
    and `others_of` take its run and its other datasets from its description. Raises `error` if the
    place is taken, or the table of another dataset is.
    """
    existing = read_description(session, place)
    if existing is not None and not force:
        raise error(f"{place} exists; pass --force (in Python, force=True) to replace it")
    former = None if existing is None else run_of(existing)
    new = NewRun(session, place, force, others)
    if place.startswith(TABLE):
        if existing is None and _is_table(session, place):
            raise error(f"{place} exists, and is not a table of this package")
        own = () if existing is None else others_of(existing)
        for name in others:
            if name not in own and _is_table(session, new.dataset(name)):
                raise error(f"{new.dataset(name)} exists; {place} may need that table")
        if former is not None:
            new.discard(former)
    try:
        yield new
    except BaseException as failed:
        # The table of another run, which has been faster, stays.
        if not (place.startswith(TABLE) and _EXISTS in str(failed)):
            new.discard(new.run)
        raise
    if former is not None and not place.startswith(TABLE):
        new.discard(former)


def _is_table(session: "SparkSession", place: str) -> bool:
    try:
        return bool(session.catalog.tableExists(place.removeprefix(TABLE)))
    except Exception as error:  # of any catalog
        raise PipelineError(f"cannot read {place}: {failure(error)}") from None


def _quoted(place: str) -> str:
    """The name of a table, for SQL."""
    parts = place.removeprefix(TABLE).split(".")
    if not all(parts) or len(parts) > 3:
        raise PipelineError(f"{place} does not name a table: table:[CATALOG.][DATABASE.]NAME")
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
