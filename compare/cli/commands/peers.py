"""`wheelwork peers`: list timers of other languages, and build them."""

import json
from typing import Any

import click

from compare.cli import options
from compare.cli.text import labelled

FAILED = 1
LANGUAGES = ("c", "cpp", "go", "java", "js", "python", "rust")


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  wheelwork peers
  wheelwork peers build
  wheelwork peers build cpp-wheel java-kafka
  wheelwork peers new js my-adapter""",
)
@options.formats
@click.pass_context
def peers(ctx: click.Context, as_json: bool, as_markdown: bool) -> None:
    """List the timers of other languages, and whether they can be run.

    docs/peers.md says how they are checked and timed.
    """
    if ctx.invoked_subcommand is not None:
        return
    from compare.trial.peers.catalogue import entries

    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    objects: list[dict[str, Any]] = []
    for entry in entries():
        described = entry.description() if entry.is_ready else None
        objects.append(
            {
                "name": entry.name,
                "language": entry.language.name,
                "library": described.library_text if described else None,
                "scheme": described.scheme if described else None,
                "rounding": described.fires if described else None,
                "notes": dict(described.notes) if described else {},
                "status": entry.status,
            }
        )
    if as_json:
        click.echo(json.dumps(objects, indent=1))
        return
    if as_markdown:
        click.echo("| peer | structure | library | fires | what to know |\n|---|---|---|---|---|")
        for row in objects:
            notes = "; ".join(
                f"{key.replace('_', ' ')}: {note}" for key, note in row["notes"].items()
            )
            last = notes if row["scheme"] else row["status"]
            cells = (row["scheme"], row["library"], row["rounding"], last)
            text = " | ".join((cell or "-").replace("|", "/") for cell in cells)
            click.echo(f"| `{row['name']}` | {text} |")
        return
    for row in objects:
        facts = [row["language"], row["library"], row["scheme"], row["rounding"]]
        click.echo(labelled(str(row["name"]), str(row["status"]), width=32))
        click.echo(labelled("", ", ".join(filter(None, facts)), width=4))


@peers.command(cls=options.Command, epilog="\b\nExample:\n  wheelwork peers build cpp-wheel")
@click.argument("names", nargs=-1, type=options.PEER, metavar="[NAME]...")
def build(names: tuple[str, ...]) -> int:
    """Build the peers with these NAMEs; by default, all whose tools are there.

    They are kept in the folder $WHEELWORK_PEERS, or in the user's cache. The exit
    code is 1 if one cannot be built; the others are built all the same.
    """
    from compare.trial.peers.catalogue import entries, entry_named
    from compare.trial.peers.protocol import PeerError

    failed = False
    for entry in [entry_named(name) for name in names] or entries():
        if not names and entry.missing and not entry.is_ready:
            click.echo(f"{entry.name}: skipped; it {entry.missing}")
            continue
        try:
            click.echo(f"{entry.name}: {entry.build()}")
        except PeerError as error:
            failed = True
            click.echo(str(error), err=True)
    return FAILED if failed else 0


@peers.command(cls=options.Command, epilog="\b\nExample:\n  wheelwork peers new c my-adapter")
@click.argument("language", type=click.Choice(LANGUAGES), metavar="|".join(LANGUAGES))
@click.argument("directory", type=options.Place("dir"), metavar="DIR")
def new(language: str, directory: str) -> None:
    """Write an adapter in a LANGUAGE into DIR, which is new or empty.

    It has a naive timer, passes the check as it is, and needs nothing else: put
    your timer in its place. The commands that build and check it are printed.
    """
    from compare.trial.peers.adapters import new_adapter

    click.echo("\n".join(new_adapter(language, directory)))


@peers.command(
    cls=options.Command, epilog="\b\nExample:\n  wheelwork peers check --quick rust-tokio"
)
@click.argument("names", nargs=-1, type=options.PEER, metavar="[NAME]...")
@options.flag("--quick", "Try as much as 7 seconds allow, for each peer.")
def check(names: tuple[str, ...], quick: bool) -> int:
    """Check the peers with these NAMEs, and print who passes as a table in Markdown.

    By default, all that are built. A row has the library with its version, the
    result, and the smallest tape of a peer that fails. The exit code is 1 if
    one does.
    """
    from compare.trial.peers.catalogue import entries, entry_named
    from compare.trial.peers.check import check_peer
    from compare.trial.peers.protocol import PeerError
    from compare.trial.peers.verdicts import result_text, tape_text

    chosen = [entry_named(name) for name in names] or [e for e in entries() if e.is_ready]
    click.echo("| peer | library | result | the smallest tape that fails |\n|---|---|---|---|")
    failed = False
    for entry in chosen:
        library, tape = "", ""
        try:
            peer = entry.peer()
            library = entry.description().library_text
            verdict = check_peer(peer, quick=quick)
            result, tape = result_text(verdict), tape_text(verdict)
            failed |= verdict.failure is not None
        except PeerError as error:
            result = f"not checked: {error}"
        cells = (entry.name, library, result, tape)
        click.echo(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return FAILED if failed else 0
