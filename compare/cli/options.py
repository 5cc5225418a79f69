"""Parameter types and options that several commands share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem

from compare.arguments import count, counts, integer, names, seconds
from compare.bench.comparison import DEFAULT_WORKLOADS, Comparison
from compare.tapes.units import EXPONENTS, TAPE_UNITS

LOG_FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet", "zeek", "access")
TIME_FORMATS = ("auto", "epoch-s", "epoch-ms", "epoch-us", "epoch-ns", "iso", "access")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# ---- parameter types


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A text that a function parses; where the names are that complete it, if there are any."""

    def __init__(self, name: str, parse: Callable[[str], Any], known: str = "") -> None:
        self.name, self._parse, self._known = name, parse, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; a default value is passed through."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a name; in a list of names, the last one."""
        before, comma, start = incomplete.rpartition(",")
        known = resolve_name(self._known) if self._known else ()
        found = [name for name in known if name.startswith(start)]
        return [CompletionItem(before + comma + name) for name in found]


INTEGER = Parsed("n", integer)
COUNT = Parsed("n", count)
COUNTS = Parsed("n,m", counts)
SECONDS = Parsed("seconds", seconds)
# The tables of names are imported only where a name is completed.
TIMER = Parsed("name", str, "timers.registry:TIMERS")
TIMERS = Parsed("name,...", names, "timers.registry:TIMERS")
WORKLOAD = Parsed("name", str, "compare.workloads.catalogue:WORKLOADS")


class Place(click.Path):
    """A file, a directory or a URI, which the help calls by a name."""

    def __init__(self, name: str = "path") -> None:
        super().__init__()
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty text, and one that Arrow cannot open."""
        if value == "":
            self.fail("'' does not name a file or directory", param, ctx)
        try:
            str(value).encode()
        except UnicodeEncodeError:
            self.fail(f"{value!r} is not UTF-8 in this locale; set PYTHONUTF8=1", param, ctx)
        return super().convert(value, param, ctx)


PLACE = Place()

# ---- commands and options in sections


class Command(click.Command):
    """A command whose help has its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section, in the order in which the options were declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def command(epilog: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command with sections, and a text below them."""
    return click.command(cls=Command, epilog=epilog)


def option(
    name: str,
    kind: str | tuple[str, ...] | Parsed | Place,
    help: str,
    *,
    field: str | None = None,
    **settings: Any,
) -> Decorator:
    """An option: `kind` is a type, the choices, or the metavar of a plain text."""
    if isinstance(kind, str):
        settings["metavar"] = kind
    else:
        settings["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
    declarations = (name, field) if field else (name,)
    return click.option(*declarations, help=help, **{"show_default": True, **settings})


def flag(name: str, help: str) -> Decorator:
    """An option without a value."""
    return click.option(name, is_flag=True, help=help)


def together(*options: Decorator) -> Decorator:
    """Several decorators as one; their options appear in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def section(title: str, *options: Decorator) -> Decorator:
    """Options in a section of the help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = vars(function).setdefault("__click_params__", [])  # where click collects them
        before = len(parameters)
        function = together(*options)(function)
        for parameter in parameters[before:]:
            parameter.section = title  # read by Command
        return function

    return decorate


def refuse_both(given: Mapping[str, object]) -> None:
    """Raise UsageError if more than one of these options is given."""
    found = [name for name, value in given.items() if value]
    if len(found) > 1:
        raise click.UsageError(f"{found[0]} and {found[1]} cannot be used together")


# ---- options of several commands

json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
traces_argument = click.argument("traces", nargs=-1, type=PLACE, metavar="[TRACE]...")
results_argument = click.argument("results", type=PLACE)
master = option("--master", "URL", "Run on this Spark master (default: on this machine).")


def trace(*, required: bool) -> Decorator:
    """Where a trace is written, and how."""
    return together(
        option("--out", Place("trace"), "Directory to write.", required=required),
        flag("--force", "Replace a trace that exists."),
        option("--shards", COUNT, "Number of shards, the files of the trace.", default=1),
    )


def time(*, required: bool) -> Decorator:
    """The time column."""
    return option("--time", "COL", "Time column.", required=required)


def requests(*, required: bool) -> Decorator:
    """What the rows of a log of requests mean, besides --time."""
    return together(
        option("--duration", "COL", "Duration column: time until the answer.", required=required),
        option("--timeout", "TIME", "Timeout of a request, such as 200ms.", required=required),
        option(
            "--duration-unit",
            tuple(EXPONENTS),
            "Unit of bare numbers in the duration column.",
            default="s",
        ),
        option(
            "--time-is",
            ("start", "end"),
            "Whether the time column holds the start or the end of a request.",
            default="start",
        ),
    )


def touches(*, required: bool) -> Decorator:
    """What the rows of a log of touches mean, besides --time."""
    return together(
        option("--key", "COL", "Key column: each key has its own timer.", required=required),
        option("--idle", "TIME", "Idle timeout of a key, such as 30s.", required=required),
    )


def formats(known: tuple[str, ...]) -> Decorator:
    """The formats of the rows and of their times."""
    return together(
        option("--log-format", known, "Format of the rows.", field="format", default="auto"),
        option("--time-format", TIME_FORMATS, "Format of the times.", default="auto"),
    )


reading = together(
    formats(LOG_FORMATS),
    option("--unit", TAPE_UNITS, "Unit of the times in the trace.", default="ms"),
    flag("--strict", "Fail instead of skipping a row."),
    option("--unique", "COL", "Skip rows whose value in this column has occurred before."),
    option(
        "--in-order-within",
        "TIME",
        "Skip rows that are older than a preceding row by more than this, e.g. 10s.",
    ),
    master,
)
"""How a log is read; the names are those of `compare.pipeline.ingest.Options`."""


def runs(name: str, default: str) -> Decorator:
    """The directory of stored runs."""
    help = "Directory in which the run is stored."
    return option(name, Place("runs"), help, field="runs", default=default)


def comparison(store: str) -> Decorator:
    """What is compared; the names are those of Comparison. `store` is the option for the runs."""
    default = Comparison()
    budget = (
        "Seconds for all samples of a task. A task that takes longer even once is over budget, "
        "and is not run with more timers."
    )
    return together(
        option(
            "--workload",
            WORKLOAD,
            "Workload to replay; may be repeated. "
            f"Default: {', '.join(DEFAULT_WORKLOADS)}, unless a trace is given.",
            field="workloads",
            multiple=True,
        ),
        option(
            "--timers",
            TIMERS,
            "Timers to compare, as in hashed-wheel/tick=5ms or module:Class. "
            "Default: all that are registered.",
            default=default.timers,
        ),
        option("--sizes", COUNTS, "Numbers of pending timers.", default=default.sizes),
        option("--operations", COUNT, "Operations per workload.", default=default.operations),
        option("--repeats", COUNT, "Maximum number of samples.", default=default.repeats),
        option("--budget", SECONDS, budget, default=default.budget),
        option("--seed", INTEGER, "Seed of the workloads.", default=default.seed),
        runs(store, default.runs),
    )


def comparison_from(values: Mapping[str, Any], traces: Iterable[object]) -> Comparison:
    """The comparison that the options ask for, with these traces."""
    known = {field.name for field in fields(Comparison)}
    given = {name: value for name, value in values.items() if name in known}
    given |= {"traces": tuple(map(str, traces)), "workloads": values["workloads"] or None}
    return Comparison(**given, command=click.get_current_context().obj)
