"""`wheelwork contribute`: make a stored run ready to be sent, for the site's page of machines."""

import shlex

import click

from compare.cli import options
from compare.cli.text import labelled


@options.command("""\b
Examples:
  wheelwork contribute
  wheelwork contribute runs/20260131T120000.000000Z-1f2e3d4c --out results""")
@click.argument("run", type=options.Place("run"), default="runs", metavar="[RUN]")
@options.option(
    "--out", options.Place("dir"), "Directory of the stored results.", default="results"
)
def contribute(run: str, out: str) -> None:
    """Copy RUN into the results of several machines, and say what to send.

    RUN is a stored run of `compare` or `report`, or a directory of runs, whose
    newest is taken. It must be one that others can repeat: finished, of a
    commit, on named workloads, with the timers and peers of wheelwork. Nothing
    is sent: you look at the files, and send them yourself.
    """
    from compare.base.formats import data_size
    from compare.trial.results.contributed import contribute as copy
    from compare.trial.results.contributed import machine_title
    from compare.trial.results.store import COMPARISON, find_run, read_run
    from reports.diff import noise_in

    chosen = read_run(find_run(run, COMPARISON))
    path, manifest = copy(chosen, out), chosen.manifest
    size = sum(file.stat().st_size for file in path.iterdir())
    facts = {
        "machine": machine_title(manifest),
        "platform": manifest["machine"]["platform"],
        "measured": str(manifest["created"])[:10],
        "commit": manifest["commit"],
        "command": shlex.join(map(str, manifest["command"])),
        "files": f"{len([*path.iterdir()])}, {data_size(size)}",
    }
    click.echo("\n".join(labelled(name, str(fact), width=10) for name, fact in facts.items()))
    if noise_in(chosen).reasons:
        click.echo("\nThe machine was busy. A run without other programs would say more.")
    click.echo(
        "\nSend this folder. It has what is listed above and the figures, and no name of a\n"
        f"host or user. Add it to a branch, and open a pull request:\n\n"
        f"  git add {shlex.quote(str(path))}\n"
        f"  git commit -m {shlex.quote('Add results of ' + machine_title(manifest))}"
    )
