"""`wheelwork pipeline`: all stages from a workload or a log to a page, as one Spark application."""

import inspect
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    new_directory,
    obstacle,
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
    from compare.trial.pipeline.verify import Verification

FORMAT = "wheelwork-pipeline"
VERSION = 1
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
    "--method",
    ("compiled", "sql"),
    "Oracle that checks each expiry: in the replay itself, or by joins in Spark SQL.",
    default="compiled",
)
@options.section(_WORKLOAD, options.operations, options.seed, options.settings)
@options.section(
    _LOG,
    options.option("--time", "COL", "Column with the time."),
    options.not_required(ingest.REQUEST_ROWS, ingest.TOUCH_ROWS),
    ingest.READING,
)
def pipeline(
    source: tuple[str, ...], timers: tuple[str, ...], out: str, method: str, **given: Any
) -> int:
    """Run all stages, from SOURCE to a page, as one Spark application.

    SOURCE is a workload (see `generate`), or a log of requests, with --timeout, or
    of touches, with --idle (see `ingest`). It becomes a trace, which is replayed
    through the timers. Each expiry is checked against the oracle, and the results
    are summarised as a table and a page. The exit code is 1 if an expiry is wrong
    or missing.

    If the command is interrupted, rerun it to resume: stages that are done are
    skipped. Spark runs on all cores of this machine, with a Java that comes with
    the package if there is none, or on a cluster with --master or SPARK_REMOTE.
    """
    from compare.spark.failures import PipelineError
    from compare.spark.session import missing_packages
    from compare.trial.replay.contestant import contestant

    if missing := missing_packages():
        raise PipelineError(missing)
    asked = _asked(source, given)
    contestants = [contestant(text) for text in timers]
    labels = [timer.label for timer in contestants]
    manifest = {"source": asked, "timers": labels, "method": method}
    with _directory(Path(out), manifest), ExitStack() as stack:
        stages = _Stages(Path(out), given["master"], [timer.name for timer in contestants], stack)
        trace = stages.trace(source[0], asked, given)
        results = stages.results(trace, timers, method)
        # There is a page only if all expiries are right.
        verified = None if stages.page.exists() else stages.verified(results, method)
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


@contextmanager
def _directory(path: Path, entries: Mapping[str, Any]) -> Iterator[None]:
    """Create the directory of a pipeline, or resume the same pipeline in it.

    A new directory is removed if no stage is complete when the block ends. Raises ParameterError.
    """
    # As JSON returns it: lists for tuples.
    manifest = json.loads(json.dumps({"format": FORMAT, "version": VERSION, **entries}))
    if problem := obstacle(path.parent):
        raise ParameterError(f"{CANNOT_WRITE} {path}: {problem}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        types = {"source": dict, "timers": list, "method": str}
        kind = "the directory of a pipeline"
        stored = read_manifest(path, kind, FORMAT, VERSION, types, ParameterError)
        for name in types:
            if stored[name] != manifest[name]:
                raise ParameterError(
                    f"{path} has another pipeline ({name} differs); choose another --out"
                )
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
        self, out: Path, master: str | None, allow: Sequence[str], stack: ExitStack
    ) -> None:
        self._out, self._master, self._allow, self._stack = out, master, allow, stack
        self.page = (out / PAGE / "index.html").absolute()

    @cached_property
    def _spark(self) -> "SparkSession":
        from compare.spark.engine import engine_text
        from compare.spark.session import spark_session

        session = self._stack.enter_context(spark_session(self._master))
        click.echo(labelled("runs on", engine_text(session)))
        return session

    def trace(self, name: str, asked: Mapping[str, Any], given: Mapping[str, Any]) -> "Trace":
        """Generate or ingest the trace."""
        from compare.traffic.tapes.trace import open_trace
        from compare.trial.pipeline.generate import generate

        path = self._out / TRACE
        if not path.exists() and "workload" not in asked:
            return self._ingested(path, asked, given)
        if path.exists():
            trace = open_trace(path)
        else:
            trace = generate(name, path, **_generated(given), session=self._spark)
        click.echo(labelled("operations", operations_text(trace.totals)))
        click.echo(labelled("trace", f"{path} in {plural(len(trace.shards), 'shard')}"))
        return trace

    def _ingested(self, path: Path, asked: Mapping[str, Any], given: Mapping[str, Any]) -> "Trace":
        from compare.traffic.logs.ingest import LogOptions, ingest_requests, ingest_touches

        kinds: dict[str, Callable[..., Ingested]]
        kinds = {"requests": ingest_requests, "touches": ingest_touches}
        ingest_rows = kinds[asked["kind"]]
        keywords = inspect.signature(ingest_rows).parameters.keys() & given.keys()
        rows = {name: given[name] for name in keywords}
        read = {field.name for field in fields(LogOptions)} & given.keys() - {"master"}
        settings = LogOptions(**{name: given[name] for name in read})
        ingested = ingest_rows(asked["log"], path, settings, session=self._spark, **rows)
        click.echo(ingest.summary(ingested))
        return ingested.trace

    def results(self, trace: "Trace", timers: Sequence[str], method: str) -> "Results":
        """Replay the trace; with the compiled method, the check is part of a replay."""
        from compare.trial.pipeline.replay import replay_trace
        from compare.trial.pipeline.results import open_results

        path, check = self._out / RESULTS, method == "compiled"
        if self._is_replayed(path):
            results = open_results(path, allow=self._allow)
        else:
            # A page of earlier results would be out of date. Those of another version of the timers
            # are replaced.
            shutil.rmtree(self.page.parent, ignore_errors=True)
            results = replay_trace(
                trace, timers, path, check=check, force=True, session=self._spark
            )
        replayed = replays_text(path, len(timers), len(trace.shards), trace.totals["rows"])
        click.echo(labelled("replays", replayed))
        return results

    def _is_replayed(self, path: Path) -> bool:
        from compare.trial.pipeline.results import results_manifest

        return path.exists() and bool(results_manifest(path)["complete"])

    def verified(self, results: "Results", method: str) -> "Verification":
        """The comparison with the oracle."""
        from compare.trial.pipeline.verify import checked, verify

        if method == "compiled":
            return checked(results)
        return verify(results.path, method=method, allow=self._allow, session=self._spark)

    def show(self, results: "Results", verified: "Verification | None") -> None:
        """Print the summary and the path of the page; if they are not written yet, write both."""
        from compare.cli.commands.summarise import sheet_of
        from compare.trial.pipeline.summarise import summarise, summary_of
        from reports.page import write_page
        from reports.summary import figures_of

        if verified is None:
            run = summary_of(results.path, allow=self._allow)
        else:
            run = summarise(results.path, verification=verified, allow=self._allow)
            write_page(figures_of(run), str(results.path), self.page.parent)
        fired = sum(row.value or 0 for row in run.rows if row.metric == "fired")
        click.echo(labelled("expiries", f"{fired:,.0f}, all as the oracle expects"))
        click.echo(f"\n{sheet_of(run).text()}\n\n{self.page}")
