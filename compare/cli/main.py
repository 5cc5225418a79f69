"""The `wheelwork` command: finds its subcommands and turns errors into one line and exit code 2.

A subcommand is a module of the entry-point group "wheelwork.commands" with a function
`register(subparsers)`, which adds a parser and sets its default `run`, a function of the parsed
arguments that returns an exit code or None. What is heavy to import is imported inside `run`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

DISTRIBUTION = "wheelwork"
GROUP = "wheelwork.commands"
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

_ORDER = (
    "timers",
    "generate",
    "ingest",
    "replay",
    "verify",
    "summarise",
    "stream",
    "compare",
    "report",
)
"""Commands in the order in which one uses them; others follow in alphabetical order."""

_DESCRIPTION = """\
Choose, trust and use a timer data structure: the classic schemes for pending
timeouts behind one interface, compared on workloads or on your own traffic."""

_EXAMPLE = """\
example: what would each scheme cost for the timeouts in a log?
  wheelwork ingest requests access.csv --time start --duration seconds \\
      --timeout 5s --out requests.trace
  wheelwork replay requests.trace --timer hierarchical-wheel
  wheelwork compare requests.trace

`wheelwork COMMAND --help` explains a command."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with exit code 2."""
        self.exit(
            BAD_INPUT, f"{DISTRIBUTION}: error: {_one_line(message)} (see {self.prog} --help)\n"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 2 for bad input, 130 when interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has seen enough. What is still buffered must not fail once more at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(argv: list[str]) -> int:
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as leaving:  # --help and --version, or an error that has been printed
        return leaving.code if isinstance(leaving.code, int) else 0
    arguments.command_line = [DISTRIBUTION, *argv]

    from timers.errors import TimerError  # brings NumPy, which --help need not wait for

    try:
        return arguments.run(arguments) or 0
    except TimerError as error:
        return _fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _fail(f"not enough memory: {str(error) or 'ask for less'}")
    except KeyboardInterrupt:
        print(f"{DISTRIBUTION}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _fail(message: str) -> int:
    print(f"{DISTRIBUTION}: error: {_one_line(message)}", file=sys.stderr)
    return BAD_INPUT


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _parser() -> Parser:
    parser = Parser(
        prog=DISTRIBUTION,
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="print the version and leave")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _commands():
        _register(command, subparsers)
    return parser


def _commands() -> list[metadata.EntryPoint]:
    found = {command.name: command for command in metadata.entry_points(group=GROUP)}
    rank = {name: k for k, name in enumerate(_ORDER)}
    return [
        found[name] for name in sorted(found, key=lambda name: (rank.get(name, len(rank)), name))
    ]


def _register(command: metadata.EntryPoint, subparsers: Any) -> None:
    """Add a command; one whose module cannot be imported says so when it is called, and spoils no
    other.
    """
    try:
        register = command.load().register
    except (ImportError, AttributeError) as error:
        reason = f"the command {command.name} cannot be loaded: {error}"
        parser = subparsers.add_parser(command.name, help="(cannot be loaded)", add_help=False)
        parser.add_argument("arguments", nargs=argparse.REMAINDER)
        parser.set_defaults(run=lambda arguments: _fail(reason))
    else:
        register(subparsers)


class _Version(argparse.Action):
    """Like argparse's own, which would look the version up on every start."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(
            option_strings,
            argparse.SUPPRESS,
            nargs=0,
            default=argparse.SUPPRESS,
            help=settings["help"],
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            version = metadata.version(DISTRIBUTION)
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"{DISTRIBUTION} {version}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
