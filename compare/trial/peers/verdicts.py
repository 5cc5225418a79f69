"""What a check found, for the tools of CI: JUnit's XML, Markdown for a summary, and a badge."""

from xml.sax.saxutils import escape, quoteattr

from compare.trial.peers.check import Verdict, operations_table

LONGEST_TABLE = 20  # operations
_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{text}">
<title>{text}</title>
<rect width="{left}" height="20" fill="#444"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left_middle}" y="14">{label}</text>
<text x="{right_middle}" y="14">{says}</text>
</g>
</svg>
"""
_LETTER = 7  # pixels of an average letter at this size


def result_text(verdict: Verdict) -> str:
    """The result in a line: the fault, or which operations are slow."""
    if verdict.failure is not None:
        return verdict.failure.fault.text
    if not verdict.slow:
        return "no fault"
    powers = ", ".join(f"{name} as n^{power:.1f}" for name, power in verdict.slow.items())
    upto = f"up to {verdict.grown_to:,} pending"
    return f"no fault, but slow: the time of n operations grows too fast ({powers}; {upto})"


def tape_text(verdict: Verdict) -> str:
    """The smallest tape on which the peer fails in a line, up to LONGEST_TABLE operations."""
    if verdict.failure is None or not verdict.failure.is_small:
        return ""
    texts = []
    for row in operations_table(verdict.failure, verdict.description)[:LONGEST_TABLE]:
        due = "" if row["deadline"] is None else f" for {row['deadline']}"
        texts.append(f"at {row['time']} {row['operation']} {row['id']}{due}")
    more = verdict.failure.tape.time.size - len(texts)
    return "; ".join(texts) + (f"; {more:,} more" if more else "")


def junit(verdict: Verdict) -> str:
    """A test suite with a test case for each kind of tape."""
    failure, cases = verdict.failure, []
    failed = next(reversed(verdict.tried), None) if failure else None
    for kind, number in verdict.tried.items():
        seconds = verdict.seconds.get(kind, 0.0)
        case = f"  <testcase classname={_quoted(verdict.description.name)} name={_quoted(kind)}"
        case += f' time="{seconds:.3f}"'
        if failure is not None and kind == failed:
            head = f"{failure.fault.kind}: {failure.fault.text}"
            table = "\n".join(map(str, operations_table(failure, verdict.description)))
            inside = f"<failure message={_quoted(head)}>{escape(_printable(table))}</failure>"
            cases.append(f"{case}>\n    {inside}\n  </testcase>")
        elif not number:
            cases.append(f"{case}><skipped/></testcase>")
        else:
            cases.append(f"{case}/>")
    skipped = sum(case.endswith("<skipped/></testcase>") for case in cases)
    attributes = f'tests="{len(cases)}" failures="{int(failed is not None)}" skipped="{skipped}"'
    total = f'time="{sum(verdict.seconds.values()):.3f}"'
    name = _quoted(f"wheelwork check: {verdict.peer.label}")
    suite = f"<testsuite name={name} {attributes} {total}>"
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', suite, *cases, "</testsuite>", ""])


def markdown(verdict: Verdict) -> str:
    """A table of what was tried; if the peer fails, one of its smallest tape."""
    described, failure = verdict.description, verdict.failure
    state = "failed" if failure else "passed"
    lines = [
        f"### {_cell(described.name)}: wheelwork check {state}",
        "",
        "| | |",
        "|---|---|",
        f"| timer | {_cell(described.scheme)}, {_cell(described.language)} |",
        f"| fires | {described.fires}; order {described.order} |",
        *(f"| {kind}s | {number:,} |" for kind, number in verdict.tried.items()),
        f"| skipped | {len(verdict.skipped):,} |",
        *(
            f"| {name}, {verdict.grown_to:,} pending | {ns:g} ns |"
            for name, ns in verdict.costs.items()
        ),
        f"| seed | {verdict.seed} |",
        f"| result | {_cell(result_text(verdict))} |",
    ]
    if failure is not None and failure.is_small:
        table = operations_table(failure, described)
        lines += ["", f"The smallest tape has {len(table):,} operations; it was found in: "]
        lines[-1] += _cell(failure.origin)
        lines += ["", f"| {' | '.join(table[0])} |", "|---" * len(table[0]) + "|"] if table else []
        for row in table[:LONGEST_TABLE]:
            cells = ("" if value is None else _cell(str(value)) for value in row.values())
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def badge(verdict: Verdict) -> str:
    """An SVG that says whether the peer passed."""
    says = "failed" if verdict.failure else "slow" if verdict.slow else "passed"
    colour = {"failed": "#b3261e", "slow": "#8a6100", "passed": "#1a7f37"}[says]
    label = "timer check"
    left, right = (_LETTER * len(text) + 12 for text in (label, says))
    return _BADGE.format(
        width=left + right,
        left=left,
        right=right,
        left_middle=left // 2,
        right_middle=left + right // 2,
        text=f"{label}: {says}",
        label=label,
        says=says,
        colour=colour,
    )


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def _quoted(text: str) -> str:
    return quoteattr(_printable(text))


def _cell(text: str) -> str:
    return _printable(text).replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")
