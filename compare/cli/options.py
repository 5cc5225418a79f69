"""Parameter types and options that several commands share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from compare.arguments import count, counts, integer, names, seconds
from compare.bench.comparison import DEFAULT_WORKLOADS, Comparison
from compare.tapes.units import EXPONENTS, TAPE_UNITS

LOG_FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet", "zeek", "access")
TIME_FORMATS = ("auto", "epoch-s", "epoch-ms", "epoch-us", "epoch-ns", "iso", "access")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# ---- parameter types


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A text that a function parses; the names that complete it, if there are any."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        known: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.name, self._parse, self._known = name, parse, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; a default value is passed through."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a name; in a list of names, the last one."""
        before, comma, start = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + name)
            for name in self._known()
            if name.startswith(start)
        ]


def _timers() -> Iterable[str]:
    from timers.registry import TIMERS

    return TIMERS


def _workloads() -> Iterable[str]:
    from compare.workloads.catalogue import WORKLOADS

    return WORKLOADS


INTEGER = Parsed("n", integer)
COUNT = Parsed("n", count)
COUNTS = Parsed("n,m", counts)
SECONDS = Parsed("seconds", seconds)
TIMER = Parsed("name", str, _timers)
TIMERS = Parsed("name,...", names, _timers)
WORKLOAD = Parsed("workload", str, _workloads)


class Place(click.Path):
    """A file, a directory or a URI: anything but an empty text."""

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


class SectionOption(click.Option):
    """An option of a section of the help."""

    def __init__(self, *args: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def option(*declarations: str, **settings: Any) -> Callable[[F], F]:
    """An option whose help shows its default, if it has one."""
    settings = {"cls": SectionOption, "show_default": True, **settings}
    return click.option(*declarations, **settings)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one; their options appear in this order."""

    def decorate(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def flag(name: str, help: str, **settings: Any) -> Callable[[F], F]:
    """An option without a value."""
    return option(name, is_flag=True, show_default=False, help=help, **settings)


def refuse_both(given: Mapping[str, object]) -> None:
    """Raise UsageError if more than one of these options is given."""
    found = [name for name, value in given.items() if value]
    if len(found) > 1:
        raise click.UsageError(f"{found[0]} and {found[1]} cannot be used together")


def select(cls: type[T], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are fields of a dataclass."""
    own = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # a dataclass
    return {name: values[name] for name in own if name in values}


# ---- options of several commands

json_option = option(
    "--json", "as_json", is_flag=True, show_default=False, help="Print JSON instead of text."
)
traces_argument = click.argument("traces", nargs=-1, type=PLACE, metavar="[TRACE]...")
results_argument = click.argument("results", type=PLACE)


def master_option(section: str = "Options") -> Callable[[F], F]:
    """The Spark master."""
    return option(
        "--master",
        metavar="URL",
        section=section,
        help="Spark master (default: local[*], all cores of this machine).",
    )


def force_option(what: str, section: str = "Options") -> Callable[[F], F]:
    """Whether an existing output is replaced."""
    return flag("--force", f"Replace {what} that exists.", section=section)


def time_option(*, required: bool, section: str) -> Callable[[F], F]:
    """The column of the time."""
    return option(
        "--time", required=required, metavar="COL", section=section, help="Column of the time."
    )


def request_options(*, required: bool, section: str) -> Callable[[F], F]:
    """What the rows of a log of requests mean, besides --time."""
    return together(
        option(
            "--duration",
            required=required,
            metavar="COL",
            section=section,
            help="Column of the time until the answer.",
        ),
        option(
            "--timeout",
            required=required,
            metavar="TIME",
            section=section,
            help="When a request times out, such as 200ms or 5s.",
        ),
        option(
            "--duration-unit",
            type=click.Choice(tuple(EXPONENTS)),
            default="s",
            section=section,
            help="Unit of plain numbers in the column of the duration.",
        ),
        option(
            "--time-is",
            type=click.Choice(("start", "end")),
            default="start",
            section=section,
            help="Whether the column of the time holds the start or the end of a request.",
        ),
    )


def touch_options(*, required: bool, section: str) -> Callable[[F], F]:
    """What the rows of a log of touches mean, besides --time."""
    return together(
        option(
            "--key",
            required=required,
            metavar="COL",
            section=section,
            help="Key column: each key has a timer of its own.",
        ),
        option(
            "--idle",
            required=required,
            metavar="TIME",
            section=section,
            help="When a key without touches is idle, such as 30s.",
        ),
    )


def log_format_options(formats: Sequence[str], section: str) -> Callable[[F], F]:
    """The formats of the rows and of their times."""
    return together(
        option(
            "--log-format",
            "format",
            type=click.Choice(tuple(formats)),
            default="auto",
            section=section,
            help="Format of the rows.",
        ),
        option(
            "--time-format",
            type=click.Choice(TIME_FORMATS),
            default="auto",
            section=section,
            help="Format of the times.",
        ),
    )


def reading_options(section: str) -> Callable[[F], F]:
    """How a log is read; the names are those of `compare.pipeline.ingest.Options`."""
    return together(
        log_format_options(LOG_FORMATS, section),
        option(
            "--unit",
            type=click.Choice(TAPE_UNITS),
            default="ms",
            section=section,
            help="Unit of the times in the trace.",
        ),
        flag("--strict", "Fail instead of leaving out a row.", section=section),
        option(
            "--unique",
            metavar="COL",
            section=section,
            help="Leave out a row whose text in this column was in an earlier row.",
        ),
        option(
            "--in-order-within",
            metavar="TIME",
            section=section,
            help="Leave out a row that is further behind the rows before it, such as 10s.",
        ),
        master_option(section),
    )


def comparison_options(store: str, section: str = "Options") -> Callable[[F], F]:
    """What is compared; the names are those of Comparison. `store` is the option for the runs."""
    default = Comparison()

    def number(name: str, kind: Parsed, **settings: Any) -> Callable[[F], F]:
        field = name.removeprefix("--")
        value = getattr(default, field)
        return option(name, type=kind, default=value, section=section, **settings)

    return together(
        option(
            "--workload",
            "workloads",
            type=WORKLOAD,
            multiple=True,
            metavar="NAME",
            section=section,
            help="Workload to replay; may be repeated. "
            f"Default: {', '.join(DEFAULT_WORKLOADS)}, unless a trace is given.",
        ),
        option(
            "--timers",
            type=TIMERS,
            section=section,
            help="Timers to compare, as in hashed-wheel/tick=5 or module:Class. "
            "Default: all that are registered.",
        ),
        number("--sizes", COUNTS, help="Numbers of pending timers."),
        number("--operations", COUNT, help="Operations of each workload."),
        number("--repeats", COUNT, help="Samples of each time, at most; fewer where one is long."),
        number("--budget", SECONDS, help="What takes longer is predicted instead of run."),
        number("--seed", INTEGER, help="Seed of the workloads."),
        option(
            store,
            "runs",
            type=PLACE,
            default=default.runs,
            metavar="RUNS",
            section=section,
            help="Directory in which the run is stored.",
        ),
    )


def comparison_from(values: Mapping[str, Any], traces: Iterable[object]) -> Comparison:
    """The comparison that the options ask for, with these traces."""
    given = select(Comparison, values) | {"traces": tuple(map(str, traces))}
    given["workloads"] = given["workloads"] or None
    given["timers"] = given["timers"] or ()
    return Comparison(**given, command=click.get_current_context().obj)
