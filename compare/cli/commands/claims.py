"""`wheelwork claims`: settle claims of the literature by experiment."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import WIDTH, Sheet, labelled, shown

if TYPE_CHECKING:
    from compare.trial.claims.run import Settled
    from reports.noise import Noise


@options.command("""\b
Examples:
  wheelwork claims --quick
  wheelwork claims 8 16
  wheelwork claims --run runs --markdown""")
@click.argument("named", nargs=-1, type=str, metavar="[NUMBER]...")
@options.flag("--quick", "Measure less: less than two minutes of CPU time for all claims.")
@options.option(
    "--run",
    options.Place("run"),
    "Judge a stored run, or the newest one in a directory of runs; measure nothing.",
    field="stored",
)
@options.runs("runs")
@options.formats
def claims(
    named: tuple[str, ...],
    quick: bool,
    stored: str | None,
    runs: str,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Settle claims about timers by experiment: holds, wrong, or holds only when.

    Without a NUMBER, all claims are measured, which takes about five minutes.
    Claims about Kafka, Netty and the JDK are measured on their own code:
    build it with `wheelwork peers build`. A claim whose peer is missing is not
    decided. docs/claims.md has the verdicts of a complete run.
    """
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    options.refuse_both({"--run": stored, "--quick": quick})
    from compare.cli import printing
    from compare.trial.claims.catalogue import ClaimError, claims_numbered, number_of
    from compare.trial.claims.run import run_claims, settled
    from compare.trial.results.store import CLAIMS, find_run, read_run

    numbers = tuple(map(number_of, named))
    wanted = {claim.number for claim in claims_numbered(numbers)}
    if stored:
        path = find_run(stored, CLAIMS)
    else:
        command = click.get_current_context().obj
        path = run_claims(numbers, quick=quick, runs=runs, command=command)
    run = read_run(path)
    if run.manifest["kind"] != CLAIMS:
        raise ClaimError(f"{path} is a run of kind {run.manifest['kind']!r}, not of claims")
    measured = settled(run.rows)
    if numbers and (absent := wanted - {each.claim.number for each in measured}):
        raise ClaimError(f"{path} has no figures on claim {min(absent)}")
    found = [each for each in measured if each.claim.number in wanted]
    noise = _noise(found)
    if as_json:
        facts = {name: run.manifest[name] for name in ("created", "machine", "versions", "command")}
        objects = [each.as_json() for each in found]
        plain = {"run": str(path), **facts, "noise": noise.plain(), "claims": objects}
        click.echo(json.dumps(plain, indent=1))
    elif as_markdown:
        click.echo(markdown(run.manifest, found), nl=False)
    else:
        if sheets := printing.noise_sheets(noise):
            click.echo(f"{shown(sheets)}\n")
        click.echo(text(found, whole=bool(numbers)))
        click.echo(f"\nstored in {path}")


def _noise(found: "Sequence[Settled]") -> "Noise":
    """The noise of the times that decide these claims."""
    from compare.trial.results.metrics import REPEATED
    from reports.noise import noise_of
    from reports.select import estimates

    rows = dict.fromkeys(row for each in found for row in each.rows if row.metric in REPEATED)
    return noise_of(estimates(rows).values(), {})


def overview(manifest: Mapping[str, Any], found: "Sequence[Settled]") -> str:
    """A page with the verdicts."""
    text = (
        "`wheelwork claims 13` measures a claim, and shows its source, the criterion and the"
        " figures. The site that `nox -s site` writes has those of all claims."
    )
    numbers = [str(each.claim.number) for each in found]
    return _page([*_introduction(manifest, found), text, _verdicts(numbers, found)])


def markdown(manifest: Mapping[str, Any], found: "Sequence[Settled]") -> str:
    """A page with all verdicts, and then each claim with the figures that decide it."""
    numbers = [f"[{each.claim.number}](#claim-{each.claim.number})" for each in found]
    parts = [*_introduction(manifest, found), _verdicts(numbers, found)]
    for each in found:
        claim, verdict = each.claim, each.verdict
        parts += [
            f"## Claim {claim.number}",
            f"> {claim.text}",
            f"**{verdict.sentence}** {verdict.text}",
            *(part for sheet in _sheets(each) for part in _below(sheet)),
            f"Measured: {claim.experiment.measured}",
            f"Criterion: {claim.rule}",
            f"Source: {claim.source}",
        ]
    return _page(parts)


def _introduction(manifest: Mapping[str, Any], found: "Sequence[Settled]") -> Iterator[str]:
    from compare.cli import printing
    from reports.claims import lead

    machine, created = manifest["machine"], str(manifest["created"])[:10]
    command = " ".join(map(str, manifest["command"]))
    yield "# Claims about timers"
    yield lead(found)
    yield (
        f"Measured on {created} by `{command}`, on {machine['cores']} cores of "
        f"{machine['cpu'] or machine['platform']}. {printing.plain(_noise(found).text)}"
    )


def _verdicts(numbers: "Sequence[str]", found: "Sequence[Settled]") -> str:
    rows = [
        f"| {number} | {each.claim.text} | {each.verdict.words} |"
        for number, each in zip(numbers, found, strict=True)
    ]
    return "\n".join(["| | claim | verdict |", _RULE, *rows])


def _page(parts: "Sequence[str]") -> str:
    return "\n\n".join(map(_wrapped, parts)) + "\n"


def _sheets(each: "Settled") -> Iterator[Sheet]:
    """The figures of a claim: one table, or one for each figure that depends on a number."""
    from compare.cli import printing
    from reports.claims import table

    title = each.claim.experiment.name
    whole = replace(table(each), caption=title[0].upper() + title[1:])
    if len({at for _, at in whole.headings}) < 2:
        yield from printing.sheets(whole)
        return
    for figure in dict.fromkeys(heading[0] for heading in whole.headings):
        entries = {
            who: {heading: entry for heading, entry in row.items() if heading[0] == figure}
            for who, row in whole.entries.items()
        }
        yield from printing.sheets(replace(whole, entries=entries))


def _below(sheet: Sheet) -> list[str]:
    """A table below its title, which is no heading of the page."""
    return [f"*{sheet.title}*", replace(sheet, title="").markdown()]


_RULE = "|--:|:--|:--|"


def _wrapped(part: str) -> str:
    """Wrap a paragraph to 120 columns; a table and a heading stay as they are."""
    if part.startswith(("|", "#")):
        return part
    follows = "> " if part.startswith(">") else ""
    return fill(part, 120, subsequent_indent=follows, break_on_hyphens=False)


def text(found: "Sequence[Settled]", *, whole: bool) -> str:
    """The verdicts; with `whole`, also what decides each, and the figures."""
    if not whole:
        from reports.claims import timed

        lines = [labelled(f"{each.claim.number}", _line(each), width=4) for each in found]
        if numbers := timed(found):
            rest = f"Verdicts that rest on times, and may change from run to run: claims {numbers}."
            lines += ["", fill(rest, WIDTH)]
        return "\n".join(lines)
    parts = []
    for each in found:
        claim, verdict = each.claim, each.verdict
        entries = {
            "claim": f"{claim.number}. {claim.text}",
            "source": claim.source,
            "measured": claim.experiment.measured,
            "criterion": claim.rule,
            "verdict": f"{verdict.sentence} {verdict.text}",
        }
        head = "\n".join(labelled(label, said, width=10) for label, said in entries.items())
        sheets = _sheets(each)
        parts.append(f"{head}\n\n{shown(sheets)}")
    return "\n\n".join(parts)


def _line(each: "Settled") -> str:
    verdict = each.verdict
    reason = f" {verdict.text}" if verdict.kind == "not decided here" else ""
    return f"{each.claim.text} {verdict.sentence}{reason}"
