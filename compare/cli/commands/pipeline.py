"""`wheelwork pipeline`: all stages from a workload or a log to a page, as one Spark application."""

import inspect
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from compare.base.arrow import leave_out_pandas
from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    json_text,
    new_directory,
    obstacle,
    parse_manifest,
    read_manifest,
    write_json,
)
from compare.cli import options
from compare.cli.commands import ingest
from compare.cli.commands import verify as verification
from compare.cli.text import labelled, operations_text, plural, replays_text
from timers.errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compare.traffic.logs.ingest import Ingested
    from compare.traffic.tapes.trace import Trace
    from compare.trial.pipeline.results import Results
    from compare.trial.pipeline.summarise import Added
    from compare.trial.pipeline.verify import Verification

FORMAT = "wheelwork-pipeline"
VERSION = 2
TRACE, RESULTS, PAGE = "trace", "results", "page"
"""The directories of the stages."""

_WORKLOAD, _LOG = "If SOURCE is a workload", "If SOURCE is a log"


@options.command("""\b
Examples:
  wheelwork pipeline lognormal-low --operations 1e7 --shards 8 \\
      --timers hashed-wheel/tick=1ms,hierarchical-wheel --out low
  wheelwork pipeline dns.log.gz --time ts --duration rtt --timeout 5s \\
      --timers delay-queue,hashed-wheel --out dns""")
@click.argument("source", nargs=-1, required=True, type=options.PLACE)
@options.option(
    "--timers",
    options.TIMERS,
    "Timers to replay, e.g. hashed-wheel/tick=5ms or module:Class.",
    required=True,
)
@options.option("--out", options.Place("dir"), "Directory of all results.", required=True)
@options.shards
@options.master
@options.option(
    "--page", options.Place("dir"), "Directory of the page (default: page in that of the results)."
)
@options.section(_WORKLOAD, options.operations, options.seed, options.settings)
@options.section(
    _LOG,
    options.option("--time", "COL", "Column with the time."),
    options.not_required(ingest.REQUEST_ROWS, ingest.TOUCH_ROWS),
    ingest.READING,
)
def pipeline(
    source: tuple[str, ...], timers: tuple[str, ...], out: str, page: str | None, **given: Any
) -> int:
    """Run all stages, from SOURCE to a page, as one Spark application.

    SOURCE is a workload (see `generate`), or a log of requests, with --timeout, or
    of touches, with --idle (see `ingest`). It becomes a trace, which is replayed
    through the timers. Each expiry is checked against the oracle, and the results
    are summarised as a table and a page. The exit code is 1 if an expiry is wrong
    or missing.

    Spark runs on all cores of this machine, with a Java that comes with the package
    if there is none, or on a cluster with --master or SPARK_REMOTE. There --out is
    a URI that Spark can write, such as s3a://bucket/runs, and --page a directory of
    this machine. If the command is interrupted, rerun it: stages that are complete
    are skipped.
    """
    leave_out_pandas()
    from compare.spark.failures import PipelineError
    from compare.spark.places import TABLE, is_far
    from compare.spark.session import missing_packages
    from compare.trial.replay.contestant import contestant

    if missing := missing_packages():
        raise PipelineError(missing)
    if out.startswith(TABLE):
        raise click.UsageError("--out is a directory or a URI: a pipeline has several datasets")
    if page is None and is_far(out):
        raise click.UsageError("--page DIR is needed, since only Spark writes to --out")
    asked = _asked(source, given)
    contestants = [contestant(text) for text in timers]
    labels = [timer.label for timer in contestants]
    manifest = {"source": asked, "timers": labels}
    with ExitStack() as stack:
        allow = [timer.name for timer in contestants]
        stages = _Stages(out, page, given["master"], allow, stack)
        stack.enter_context(stages.described(manifest))
        trace = stages.trace(source[0], asked, given)
        results = stages.results(trace, timers)
        # There is a page only if all expiries are right.
        verified = None if stages.page.exists() else stages.verified(results)
        if verified and not verified.passed:
            click.echo(verification.text_of(verified))
            return verification.MISMATCHES
        stages.show(results, verified)
    return 0


def _asked(source: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The source with the options that describe it, for the manifest. Raises UsageError."""
    from compare.traffic.logs.blocks import STDIN, expand
    from compare.traffic.workloads.catalogue import WORKLOADS, Plan
    from timers.errors import unknown_name

    context, name = click.get_current_context(), source[0]
    is_workload = len(source) == 1 and name in WORKLOADS
    if not (is_workload or given["timeout"] or given["idle"]):
        raise click.UsageError(
            f"a log needs --timeout or --idle; {unknown_name('workload', name, WORKLOADS)}"
        )
    described: dict[str, Any] = {}
    for param in context.command.params:
        section, field = getattr(param, "section", None), str(param.name)
        is_given = context.get_parameter_source(field) is ParameterSource.COMMANDLINE
        if is_given and section == (_LOG if is_workload else _WORKLOAD):
            raise click.UsageError(
                f"{param.opts[0]} cannot be used with a {'workload' if is_workload else 'log'}"
            )
        if section == _LOG:
            described[field] = given[field]
    if is_workload:
        if given["operations"] is None:
            raise click.UsageError("specify --operations N")
        return Plan.of(name, **_generated(given)).source
    options.refuse_both({"--timeout": given["timeout"], "--idle": given["idle"]})
    kind = "requests" if given["timeout"] else "touches"
    for field in ("time",) if given["timeout"] else ("time", "key"):
        if not given[field]:
            raise click.UsageError(f"a log of {kind} needs --{field}")
    # A log that has changed is another source.
    files = [Path(file) for file in expand(list(source)) if Path(file).is_file()]
    changes = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    # A worker may have another working directory.
    logs = [log if log == STDIN or "://" in log else str(Path(log).absolute()) for log in source]
    return {"kind": kind, "log": logs, "shards": given["shards"], **described} | {"files": changes}


def _generated(given: Mapping[str, Any]) -> dict[str, Any]:
    names = ("operations", "seed", "shards")
    return {name: given[name] for name in names} | {"parameters": dict(given["settings"])}


def _checked(stored: Mapping[str, Any], manifest: Mapping[str, Any], place: str) -> None:
    """Raise ParameterError if a place has another pipeline."""
    for name in _ENTRIES:
        if stored[name] != manifest[name]:
            raise ParameterError(
                f"{place} has another pipeline ({name} differs); choose another --out"
            )


_ENTRIES: dict[str, type] = {"source": dict, "timers": list}
_KIND = "the directory of a pipeline"


@contextmanager
def _directory(path: Path, manifest: Mapping[str, Any]) -> Iterator[None]:
    """Create the directory of a pipeline, or resume the same pipeline in it.

    A new directory is removed if no stage is complete when the block ends. Raises ParameterError.
    """
    if problem := obstacle(path.parent):
        raise ParameterError(f"{CANNOT_WRITE} {path}: {problem}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        stored = read_manifest(path, _KIND, FORMAT, VERSION, _ENTRIES, ParameterError)
        _checked(stored, manifest, str(path))
    else:
        with new_directory(path, replace=True) as directory:
            write_json(directory / MANIFEST, manifest)
    try:
        yield
    finally:
        if not any((path / stage).exists() for stage in (TRACE, RESULTS)):
            shutil.rmtree(path, ignore_errors=True)


class _Stages:
    """The stages of a pipeline. Spark is started for the first one that is not complete."""

    def __init__(
        self,
        out: str,
        page: str | None,
        master: str | None,
        allow: Sequence[str],
        stack: ExitStack,
    ) -> None:
        self._out, self._master, self._allow, self._stack = out, master, allow, stack
        self._is_far = page is not None and "://" in out
        self.page = Path(page or Path(out, PAGE), "index.html").absolute()

    def _place(self, stage: str) -> str:
        return f"{self._out.rstrip('/')}/{stage}"

    @cached_property
    def _spark(self) -> "SparkSession":
        from compare.spark.facts import about_text
        from compare.spark.session import spark_session

        session = self._stack.enter_context(spark_session(self._master))
        click.echo(labelled("runs on", about_text(session)))
        return session

    @cached_property
    def _engine(self) -> Any:
        """The engine that opens what only Spark reads; None for a directory."""
        from compare.spark.engine import OnSpark

        return OnSpark(self._spark) if self._is_far else None

    @contextmanager
    def described(self, entries: Mapping[str, Any]) -> Iterator[None]:
        """Record what the pipeline is, or resume the same one. Raises ParameterError."""
        from compare.spark.places import NewRun, read_description

        # As JSON returns it: lists for tuples.
        manifest = json.loads(json.dumps({"format": FORMAT, "version": VERSION, **entries}))
        if not self._is_far:
            with _directory(Path(self._out), manifest):
                yield
            return
        text = read_description(self._spark, self._out)
        if text is None:
            NewRun(self._spark, self._out, replace=False).describe(json_text(manifest))
        else:
            stored = parse_manifest(
                text, self._out, _KIND, FORMAT, VERSION, _ENTRIES, ParameterError
            )
            _checked(stored, manifest, self._out)
        yield

    def _has(self, stage: str) -> bool:
        from compare.spark.places import read_description

        if self._is_far:
            return read_description(self._spark, self._place(stage)) is not None
        return Path(self._place(stage)).exists()

    def trace(self, name: str, asked: Mapping[str, Any], given: Mapping[str, Any]) -> "Trace":
        """Generate or ingest the trace."""
        from compare.traffic.tapes.places import open_trace_at
        from compare.trial.pipeline.generate import generate

        place = self._place(TRACE)
        is_complete = self._has(TRACE)
        if not is_complete and "workload" not in asked:
            return self._ingested(place, asked, given)
        if is_complete:
            trace = open_trace_at(self._engine, place)
        else:
            trace = generate(name, place, **_generated(given), session=self._spark)
        click.echo(labelled("operations", operations_text(trace.totals)))
        click.echo(labelled("trace", f"{place} in {plural(trace.totals['shards'], 'shard')}"))
        return trace

    def _ingested(self, place: str, asked: Mapping[str, Any], given: Mapping[str, Any]) -> "Trace":
        from compare.traffic.logs.ingest import LogOptions, ingest_requests, ingest_touches

        kinds: dict[str, Callable[..., Ingested]]
        kinds = {"requests": ingest_requests, "touches": ingest_touches}
        ingest_rows = kinds[asked["kind"]]
        keywords = inspect.signature(ingest_rows).parameters.keys() & given.keys()
        rows = {name: given[name] for name in keywords}
        read = {field.name for field in fields(LogOptions)} & given.keys() - {"master"}
        settings = LogOptions(**{name: given[name] for name in read})
        ingested = ingest_rows(asked["log"], place, settings, session=self._spark, **rows)
        click.echo(ingest.summary(ingested))
        return ingested.trace

    def results(self, trace: "Trace", timers: Sequence[str]) -> "Results":
        """Replay the trace; the check of each expiry is part of the replay."""
        from compare.trial.pipeline.replay import replay_trace
        from compare.trial.pipeline.results import open_results

        place = self._place(RESULTS)
        if self._has(RESULTS):
            results = open_results(place, allow=self._allow, engine=self._engine)
        else:
            # A page of earlier results would be out of date. Those of another version of the timers
            # are replaced.
            if not self._is_far:
                shutil.rmtree(self.page.parent, ignore_errors=True)
            results = replay_trace(
                trace, timers, place, check=True, force=True, session=self._spark
            )
        rows, shards = trace.totals["rows"], trace.totals["shards"]
        click.echo(labelled("replays", replays_text(place, len(timers), shards, rows)))
        return results

    def verified(self, results: "Results") -> "Verification":
        """The comparison with the oracle."""
        from compare.trial.pipeline.verify import checked

        return checked(results, self._outcomes(results))

    def _outcomes(self, results: "Results") -> "list[Added]":
        from compare.trial.pipeline.summarise import outcomes_of

        return outcomes_of(results, self._engine)

    def show(self, results: "Results", verified: "Verification | None") -> None:
        """Print the summary and the path of the page; if they are not written yet, write both."""
        from compare.cli.commands.summarise import sheet_of
        from compare.trial.pipeline.summarise import write_summary
        from compare.trial.results.store import SUMMARY, read_run
        from reports.page import write_page
        from reports.summary import figures_of

        path = results.path / SUMMARY
        if verified is None and not self._is_far and path.exists():
            run = read_run(path)
        else:
            outcomes = self._outcomes(results)
            with TemporaryDirectory(prefix="wheelwork-") as temporary:
                path = Path(temporary, SUMMARY) if self._is_far else path
                run = write_summary(path, results.manifest, results.trace, outcomes)
                write_page(figures_of(run), results.place, self.page.parent)
        fired = sum(row.value or 0 for row in run.rows if row.metric == "fired")
        click.echo(labelled("expiries", f"{fired:,.0f}, all as the oracle expects"))
        click.echo(f"\n{sheet_of(run).text()}\n\n{self.page}")
