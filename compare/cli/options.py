"""Parameter types and options that several commands share."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem

from compare.base.arguments import count, counts, integer, names, seconds, setting, size
from compare.traffic.logs.formats import FORMATS
from compare.trial.bench.comparison import DEFAULT_WORKLOADS

LOG_FORMATS = ("auto", *FORMATS)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# ---- parameter types


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Text that `parse` converts; `known` is the import path of the names that complete it."""

    def __init__(self, name: str, parse: Callable[[str], Any], known: str = "") -> None:
        self.name, self._parse, self._known = name, parse, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text; pass a default value through."""
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
        matches = [name for name in known if name.startswith(start)]
        return [CompletionItem(before + comma + name) for name in matches]


INTEGER = Parsed("n", integer)
COUNT = Parsed("n", count)
COUNTS = Parsed("n,m", counts)
SECONDS = Parsed("seconds", seconds)
SIZE = Parsed("size", size)
SETTING = Parsed("name=value", setting)
# The tables of names are imported only to complete a name.
TIMER = Parsed("name", str, "timers.registry:TIMERS")
NAMES = Parsed("name,...", names)
TIMERS = Parsed("name,...", names, "timers.registry:TIMERS")
PEERS = Parsed("name,...", names, "compare.trial.peers.catalogue:CHOICES")
PEER = Parsed("name", str, "compare.trial.peers.catalogue:NAMES")
WORKLOAD = Parsed("name", str, "compare.traffic.workloads.catalogue:WORKLOADS")
WORKLOADS = Parsed("name,...", names, "compare.traffic.workloads.catalogue:WORKLOADS")


class Place(click.Path):
    """A file, a directory or a URI; `name` is what the help calls it."""

    def __init__(self, name: str = "path") -> None:
        super().__init__()
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty path, and one that Arrow cannot open."""
        if value == "":
            self.fail("'' does not name a file or directory", param, ctx)
        try:
            str(value).encode()
        except UnicodeEncodeError:
            self.fail(f"{value!r} is not UTF-8 in this locale; set PYTHONUTF8=1", param, ctx)
        return super().convert(value, param, ctx)


PLACE = Place()


class TracePlace(Place):
    """The directory of a trace. The recording of a program that was killed is completed first."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Complete a recording; anything else is left to the command."""
        path = super().convert(value, param, ctx)
        from compare.traffic.recording.events import finish

        finish(path)
        return path


TRACE = TracePlace("trace")

# ---- commands and options in sections


class Command(click.Command):
    """A command that shows its options in sections."""

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
    """Turn a function into a command with sections, and `epilog` below them."""
    return click.command(cls=Command, epilog=epilog)


def option(
    name: str,
    kind: str | tuple[str, ...] | Parsed | Place,
    help: str,
    *,
    field: str | None = None,
    **settings: Any,
) -> Decorator:
    """Declare an option; `kind` is a type, the choices, or the metavar of plain text."""
    if isinstance(kind, str):
        settings["metavar"] = kind
    else:
        settings["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
    settings = {"show_default": True} | settings
    return click.option(*filter(None, (name, field)), help=help, **settings)


def flag(name: str, help: str, *, field: str | None = None) -> Decorator:
    """Declare an option without a value."""
    return click.option(*filter(None, (name, field)), is_flag=True, help=help)


def together(*options: Decorator) -> Decorator:
    """Combine decorators; the options appear in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for declare in reversed(options):
            function = declare(function)
        return function

    return decorate


def section(title: str, *options: Decorator) -> Decorator:
    """Put options in a section of the help."""
    return _with(options, "section", title)  # read by Command


def not_required(*options: Decorator) -> Decorator:
    """Make options that another command requires optional."""
    return _with(options, "required", value=False)


def _with(options: Sequence[Decorator], attribute: str, value: object) -> Decorator:
    """Set an attribute of options."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = vars(function).setdefault("__click_params__", [])  # where click collects them
        before = len(parameters)
        function = together(*options)(function)
        for parameter in parameters[before:]:
            setattr(parameter, attribute, value)
        return function

    return decorate


def refuse_both(given: Mapping[str, object]) -> None:
    """Raise UsageError if more than one of these options is given."""
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise click.UsageError(f"{names[0]} and {names[1]} cannot be used together")


# ---- options of several commands

json = flag("--json", "Print JSON instead of text.", field="as_json")
formats = together(
    json, flag("--markdown", "Print Markdown, e.g. for a pull request.", field="as_markdown")
)
traces_argument = click.argument("traces", nargs=-1, type=TRACE, metavar="[TRACE]...")
results_argument = click.argument("results", type=PLACE)
allow = option(
    "--allow",
    "MODULE:CLASS",
    "Import this timer, which the results name; may be repeated.",
    multiple=True,
)
master = option("--master", "URL", "Spark master (default: this machine).")

operations = option("--operations", COUNT, "Number of operations to generate.")
seed = option("--seed", INTEGER, "Random seed, 0 or more.", default=0)
settings = option(
    "--set",
    SETTING,
    "Parameter of the workload; may be repeated.",
    field="settings",
    multiple=True,
)
shards = option("--shards", COUNT, "Number of shards (files) of the trace.", default=1)


def new_trace(*, required: bool = True) -> Decorator:
    """The options for the directory of a new trace."""
    return together(
        option("--out", Place("trace"), "Directory of the new trace.", required=required),
        flag("--force", "Replace an existing trace."),
    )


layout = together(
    option(
        "--log-format",
        LOG_FORMATS,
        f"Format of the rows: {', '.join(LOG_FORMATS)}.",
        field="format",
        default="auto",
        metavar="FORMAT",
    ),
    option("--delimiter", "CHAR", "Separator of the fields of a CSV log (default: detected)."),
    option(
        "--columns",
        NAMES,
        "Names of the columns of a CSV log without a header.",
        default=(),
        show_default=False,
    ),
    option(
        "--pattern",
        "REGEX",
        "Pattern of a line; its named groups are the columns (RE2).",
    ),
)
"""Options for the format of a log; the names are those of `Layout`."""

workload = option(
    "--workload",
    WORKLOADS,
    "Workloads to replay; may be repeated. Default, if there is no trace: "
    f"{', '.join(DEFAULT_WORKLOADS)}.",
    field="workloads",
    multiple=True,
    callback=lambda ctx, param, given: tuple(chain.from_iterable(given)),
)


def peers() -> Decorator:
    """The option --peers."""
    text = (
        "Timers of other languages: names, or python, jvm, native or all, or the command of a "
        "peer of your own, such as ./my-peer. Default: none."
    )
    return option("--peers", PEERS, text, default=())


all_delays = flag(
    "--all-delays",
    "Also measure what callers pay for other delays: one for all, a few, kept alive, periodic.",
)


def runs(default: str) -> Decorator:
    """The directory of stored runs."""
    help = "Store the run in this directory."
    return option("--out", Place("runs"), help, field="runs", default=default)
