"""The `wheelwork` command: find a subcommand, run it, and report an error in one line.

COMMANDS lists the project's own commands. Other distributions add one with an entry point of the
group "wheelwork.commands" that names a `click.Command`. A command is imported when it is called.
It returns its exit code or None.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import click

from compare.base.versions import DISTRIBUTION

GROUP = "wheelwork.commands"
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells
TERMINATED = 143  # 128 + SIGTERM

COMMANDS = {
    "timers": ("compare.cli.commands.timers", "List the timers and their traits."),
    "generate": ("compare.cli.commands.generate", "Write a workload as a trace."),
    "inspect": ("compare.cli.commands.inspect", "Show how a log is read."),
    "ingest": ("compare.cli.commands.ingest", "Turn a log into a trace."),
    "record": ("compare.cli.commands.record", "Record the timers of a program."),
    "export": ("compare.cli.commands.export", "Write a trace for programs in any language."),
    "peers": ("compare.cli.commands.peers", "List and build timers of other languages."),
    "check": ("compare.cli.commands.check", "Check a timer in any language."),
    "replay": ("compare.cli.commands.replay", "Replay a trace through timers."),
    "verify": ("compare.cli.commands.verify", "Check replay results against the oracle."),
    "summarise": ("compare.cli.commands.summarise", "Summarise replay results."),
    "pipeline": ("compare.cli.commands.pipeline", "Run all stages on Spark, up to the page."),
    "compare": ("compare.cli.commands.compare", "Measure timers and store the results."),
    "diff": ("compare.cli.commands.diff", "Compare two stored runs; for CI."),
    "advise": ("compare.cli.commands.advise", "Find the best timer for a trace."),
    "purgatory": ("compare.cli.commands.purgatory", "Compare designs for delayed requests."),
    "claims": ("compare.cli.commands.claims", "Settle claims about timers by experiment."),
    "report": ("compare.cli.commands.report", "Write results as a page with charts."),
    "contribute": ("compare.cli.commands.contribute", "Make a run ready to be sent."),
    "anatomy": ("compare.cli.commands.anatomy", "Draw the contents of a timer's structure."),
    "compile": ("compare.cli.commands.compile", "Compile everything ahead of time."),
}
"""Name -> the module that defines the command, and its line of help; in the usual order of use."""


class Commands(click.Group):
    """Subcommands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the project's own commands, then those of others in alphabetical order."""
        others = {entry.name for entry in metadata.entry_points(group=GROUP)}
        return [*COMMANDS, *sorted(others - set(COMMANDS))]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; a broken one is replaced by a command that reports the reason."""
        if name in COMMANDS:
            command: click.Command = getattr(import_module(COMMANDS[name][0]), name)
            return command
        for entry in metadata.entry_points(group=GROUP, name=name):
            try:
                loaded = entry.load()
            except Exception as error:  # others' modules can fail in any way
                return _broken(name, str(error))
            if isinstance(loaded, click.Command):
                return loaded
            return _broken(name, f"{entry.value} is not a click command")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a similar name if the command does not exist."""
        known = self.list_commands(ctx)
        if not ctx.resilient_parsing and args[0] not in known:
            from timers.errors import unknown_name

            raise click.UsageError(unknown_name("command", args[0], known), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing the project's own."""
        rows = [(name, short_help) for name, (_, short_help) in COMMANDS.items()]
        for name in self.list_commands(ctx)[len(COMMANDS) :]:
            if command := self.get_command(ctx, name):
                rows.append((name, command.get_short_help_str(60)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _broken(name: str, reason: str) -> click.Command:
    def fail(**_: object) -> None:
        raise click.ClickException(f"the command {name} cannot be loaded: {reason}")

    return click.Command(
        name,
        callback=fail,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
        short_help="(cannot be loaded)",
    )


@click.group(
    cls=Commands,
    context_settings={"max_content_width": 80},
    epilog="""\b
Example: which timer suits the timeouts in a log?
  wheelwork ingest requests access.csv --time start --duration seconds \\
      --timeout 5s --out requests.trace
  wheelwork advise requests.trace
  wheelwork report requests.trace

Run `wheelwork COMMAND --help` for the options of a command.""",
)
@click.version_option(package_name=DISTRIBUTION, message=f"{DISTRIBUTION} %(version)s")
def cli() -> None:
    """Choose, trust and use a timer data structure.

    The classic schemes for pending timeouts behind one interface, compared on
    generated workloads or on your own traffic.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    The code is 0 for success, 2 for bad input, 130 if interrupted and 143 if terminated. Commands
    may return other codes.
    """
    _open_streams()
    code = 0
    try:
        with _terminable() as is_terminated:
            code = _run(list(sys.argv[1:] if argv is None else argv), is_terminated)
        sys.stdout.flush()
        if argv is None and code in (INTERRUPTED, TERMINATED) and "pyspark" in sys.modules:
            # A thread that is waiting for Spark may abort the interpreter at exit.
            sys.stderr.flush()
            os._exit(code)
        return code
    except BrokenPipeError:
        code = 0  # the reader closed the pipe
    except OSError as error:
        # An error that `_run` has reported may occur again in the flush.
        code = code or _fail(f"cannot write the output: {error.strerror or error}")
    # Discard what is buffered: writing it at exit would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


@contextmanager
def _terminable() -> Iterator[Callable[[], bool]]:
    """Raise KeyboardInterrupt on SIGTERM; yield a function that returns whether SIGTERM has come.

    As after Ctrl-C, nothing half-done is left behind. Python handles signals only in the main
    thread.
    """
    happened = threading.Event()

    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the cleanup
        happened.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield happened.is_set
        return
    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield happened.is_set
    finally:
        signal.signal(signal.SIGTERM, previous)


def _open_streams() -> None:
    """Reopen closed standard streams, and escape what stdout cannot encode."""
    for name in ("stdin", "stdout", "stderr"):  # in this order each gets its own descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115, PTH123  # stays open
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")


def _run(argv: list[str], is_terminated: Callable[[], bool]) -> int:
    if instruction := os.environ.get("_WHEELWORK_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, DISTRIBUTION, "_WHEELWORK_COMPLETE", instruction)
    try:
        with cli.make_context(DISTRIBUTION, argv or ["--help"], obj=(DISTRIBUTION, *argv)) as ctx:
            return cli.invoke(ctx) or 0
    except click.exceptions.Exit as leaving:  # --help and --version
        return leaving.exit_code
    except KeyboardInterrupt as error:
        return _stopped(is_terminated(), getattr(error, "__notes__", ()))
    except BrokenPipeError:
        raise
    except Exception as error:
        if is_terminated():  # a library has caught the interrupt, and then failed
            return _stopped(terminated=True)
        message = _explain(error)
        if message is None:
            raise
        return _fail(message)


def _stopped(terminated: bool, notes: Sequence[str] = ()) -> int:
    said = "; ".join(["terminated" if terminated else "interrupted", *notes])
    print(f"{DISTRIBUTION}: {said}", file=sys.stderr)
    return TERMINATED if terminated else INTERRUPTED


_OURS = {"timers": "TIMERS", "compare": "open_trace", "reports": "__doc__"}
"""Package -> a name in it. Other distributions on PyPI have packages of the same names."""


def _replaced(error: ImportError) -> str | None:
    """Describe an import that failed because another package has taken the place of ours."""
    package = (error.name or "").split(".")[0]
    module = sys.modules.get(package)
    if package not in _OURS or module is None:
        return None
    path = Path(__file__).parents[2] / package / "__init__.py"
    if Path(module.__file__ or "") == path and hasattr(module, _OURS[package]):
        return None
    return (
        f"the package {package} in {module.__file__ or 'a folder without __init__.py'} is not"
        f" {DISTRIBUTION}'s: run the command elsewhere, or install {DISTRIBUTION} in an environment"
        " of its own"
    )


def _explain(error: Exception) -> str | None:
    """Describe an error that the user can fix; None for a bug."""
    if isinstance(error, ImportError) and (message := _replaced(error)):
        return message
    from timers.errors import TimerError  # imports NumPy, which --help does not need

    if isinstance(error, click.UsageError):
        message = error.format_message().removesuffix(".")
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return message[:1].lower() + message[1:] + hint
    if isinstance(error, TimerError | click.ClickException):
        return str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory: {str(error) or 'ask for less'}"
    if isinstance(error, ModuleNotFoundError):
        from compare.spark.session import NEEDED, missing_packages

        return missing_packages() if (error.name or "").split(".")[0] in NEEDED else None
    if isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename is not None else ""
        return f"{path}{error.strerror or error}"
    return None


def _fail(message: str) -> int:
    print(f"{DISTRIBUTION}: error: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT
