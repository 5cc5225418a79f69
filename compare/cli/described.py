"""`wheelwork advise --rate`: the traffic in options, and the advice in words."""

import json
from typing import TYPE_CHECKING, Any

import click

from compare.base import formats
from compare.cli.text import Sheet, labelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compare.trial.advice.described import Cost, Described
    from compare.trial.bench.steady import Traffic
    from compare.trial.results.schema import Row

DEFAULT_LATE = "10ms"
_WIDTH = 14  # of the labels
MOST = 1e9
"""The highest rate, in timers per second."""


def traffic_of(given: dict[str, Any]) -> "Traffic":
    """The traffic that the options describe. Raises UsageError."""
    from compare.trial.bench.steady import KEEPALIVE, PERIODIC, Traffic

    rate, kind = _rate(given["rate"]), given["traffic"]
    if given["timeout"] is None:
        raise click.UsageError("--rate needs the --timeout of the timers, such as 10s")
    timeout, step = _ms("--timeout", given["timeout"]), _ms("--step", given["step"])
    cancelled = share_of("--cancelled", given["cancelled"])
    if kind == PERIODIC and cancelled:
        raise click.UsageError("--traffic periodic: periodic timers fire; leave out --cancelled")
    if kind == PERIODIC and timeout < step:
        raise click.UsageError(
            f"--traffic periodic: a timer cannot fire every {given['timeout']} if the clock moves"
            f" every {given['step']}; --timeout must be at least --step"
        )
    if kind == KEEPALIVE and not cancelled:
        raise click.UsageError(
            "--traffic keepalive needs --cancelled, the share that is kept alive"
        )
    after = 0.05 * timeout if given["after"] is None else _ms("--after", given["after"])
    if after >= timeout:
        raise click.UsageError(
            f"--after {given['after']} is not below --timeout {given['timeout']}"
        )
    return Traffic(rate, timeout, cancelled, after, kind, step)


def _rate(text: str) -> float:
    try:
        rate = float(text.replace("_", ""))
    except ValueError:
        rate = 0.0
    if not 0.0 < rate <= MOST:
        raise click.UsageError(
            f"--rate must be timers per second, above 0 and at most 1e9, not {text}"
        )
    return rate


def _ms(option: str, text: str) -> float:
    from compare.traffic.tapes.units import parse_duration

    try:
        return parse_duration(text, "ns") / 1_000_000
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def share_of(option: str, text: str) -> float:
    """A share such as 90%, 99.9% or 0.9. Raises UsageError."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0.0 <= share <= 1.0:
        raise click.UsageError(f"{option} must be a share from 0% to 100%, such as 90%, not {text}")
    return share


def sheets(advice: "Described") -> tuple[dict[str, str], Sheet]:
    """The answer by label, and a table of all timers."""
    from compare.trial.advice.choice import WORSE

    best, traffic = advice.best, advice.traffic
    ended = "kept alive" if traffic.kind == "keepalive" else "cancelled"
    answers = f" after {formats.nanoseconds(1e6 * traffic.answer)}" if traffic.cancelled else ""
    answer = {
        "use": _use(advice),
        "cost": f"{_percent(best.share)} of a core ({_between(best)} in 9 of 10 replays)",
        "per timer": formats.nanoseconds(best.share * 1e9 / traffic.rate),
        "pending": f"{_number(traffic.pending)} timers on average",
        "traffic": f"{traffic.kind}: {_number(traffic.rate)} timers per second,"
        f" timeout {formats.nanoseconds(1e6 * traffic.timeout)},"
        f" {_percent(traffic.cancelled)} {ended}{answers}; the clock moves every"
        f" {formats.nanoseconds(1e6 * traffic.step)}; called by {advice.caller}",
    }
    if not advice.decided:
        answer["noise"] = (
            f"samples of the same replay differ so much that {best.label} would cost more than"
            f" {WORSE:g} times as much as another in one and not in the next; repeat the command"
            " when the machine is idle"
        )
    elif advice.choice.text:
        cheapest = advice.costs[advice.choice.cheapest]
        answer["chosen"] = f"{advice.choice.text}; {cheapest.label} costs least"
    if traffic.pending > advice.largest:
        answer["beyond"] = (
            f"measured with up to {advice.largest:,} pending; above that the cost is extrapolated,"
            " and its interval wider"
        )
    rows = [["timer", "of a core", "9 of 10", "memory"]]
    rows += [
        [
            each.label,
            _percent(each.share),
            _between(each),
            formats.data_size(each.nbytes) if each.nbytes else "-",
        ]
        for each in advice.costs
    ]
    return answer, Sheet("", rows)


def _use(advice: "Described") -> str:
    """The timer to use, or those that may be it."""
    names = [
        each.label if each.nbytes else f"keep {each.label}"
        for each in ([advice.best] if advice.decided else advice.near)
    ]
    return names[0] if advice.decided else f"not decided on this machine now: {' or '.join(names)}"


def _between(cost: "Cost") -> str:
    return f"{_percent(cost.low)} to {_percent(cost.high)}"


def _number(value: float) -> str:
    return formats.count(round(value)) if value >= 10 else formats.significant(value)


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.3g}'):g}%"


FIRST = "python"
"""The caller that the first answer of a report is about."""


def first_answer(rows: "Iterable[Row]", trace: str | None) -> str:
    """A line with the timer for a trace, or for a usual case, from the costs for Python."""
    from compare.traffic.tapes.trace import open_trace
    from compare.trial.advice.described import advice_of, precise, traffic_in
    from compare.trial.bench.costs import fits_of, subject_of
    from compare.trial.bench.steady import RANDOM, Traffic

    usual = Traffic(1_000, 10_000, 0.9, 500)
    traffic = (traffic_in(open_trace(trace)) if trace else None) or usual
    known = fits_of(rows).get(subject_of(FIRST, RANDOM), {})
    largest = max((size for fits in known.values() for size in fits), default=0)
    advice = advice_of(
        FIRST, traffic, known, precise(FIRST, 0, int(_ms("", DEFAULT_LATE))), largest
    )
    if advice is None:
        return ""
    case = f"{formats.significant(traffic.rate)} timers/s, {_percent(traffic.cancelled)} cancelled"
    case += f", timeout {formats.nanoseconds(1e6 * traffic.timeout)}"
    cost = f"{_percent(advice.best.share)} of a core"
    return f"first answer, for Python: {case}: {_use(advice)}, {cost}"


def text_of(advice: "Described") -> str:
    """The advice in 80 columns."""
    answer, others = sheets(advice)
    lines = [labelled(name, text, width=_WIDTH) for name, text in answer.items()]
    return "\n".join(lines) + "\n\n" + others.text()


def markdown_of(advice: "Described") -> str:
    """The advice in Markdown."""
    answer, others = sheets(advice)
    return Sheet("", [["", "advice"], *map(list, answer.items())]).markdown() + (
        "\n\n" + others.markdown()
    )


def json_of(advice: "Described") -> str:
    """The advice as JSON: times in ms, costs in shares of a core."""
    traffic = advice.traffic
    return json.dumps(
        {
            "caller": advice.caller,
            "traffic": {**vars(traffic), "pending": traffic.pending},
            "use": advice.best.label if advice.decided else None,
            "near": [each.label for each in advice.near],
            "costs": [each._asdict() for each in advice.costs],
        },
        indent=1,
    )


def advise_described(
    given: dict[str, Any], *, max_early: str, max_late: str, as_json: bool, as_markdown: bool
) -> None:
    """Print the advice. Raises UsageError for options that do not describe traffic."""
    traffic = traffic_of(given)
    bounds = [
        0 if text.strip() == "0" else int(_ms(name, text))
        for name, text in (("--max-early", max_early), ("--max-late", max_late))
    ]
    from compare.trial.advice.described import described

    advice = described(
        given["caller"],
        traffic,
        max_early=bounds[0],
        max_late=bounds[1],
        progress=lambda step: click.echo(f"wheelwork: {step}", err=True),
    )
    if advice is None:
        raise click.ClickException(
            f"{traffic.pending:,.0f} timers would be pending, and none was measured with nearly as"
            " many; give a lower --rate or a shorter --timeout"
        )
    form = json_of if as_json else markdown_of if as_markdown else text_of
    click.echo(form(advice))
