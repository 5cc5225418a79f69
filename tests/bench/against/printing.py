"""What the gate prints: a line for each row and size, within 80 columns."""

from collections import Counter
from collections.abc import Mapping, Sequence

from .ratios import ABSENT, NO_TIME, Result

WIDTH = 80
_NAME, _SIZE, _TIME, _RATIO = 36, 7, 9, 6


def time_text(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, factor in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{_digits(seconds * factor)} {unit}"
    return f"{_digits(seconds)} s"


def _digits(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def size_text(size: int) -> str:
    """A number of others, such as 300k."""
    return f"{size // 1000}k" if size and not size % 1000 else str(size)


def heading(commit: str) -> str:
    """The names of the columns."""
    return (
        f"{'CPU time of one':<{_NAME}}{'size':>{_SIZE}}{commit[:8]:>{_TIME}}{'here':>{_TIME}}"
        f"{'ratio':>{_RATIO}}  of 95 %"
    )


def group_line(result: Result) -> str:
    """What stands above the lines of a group: its name, and what its sizes count."""
    group = result.name.partition(":")[0]
    return f"{group} ({result.unit})" if result.unit else group


def line(result: Result, limit: float, final: bool = True) -> str:
    """One result, with a mark: "?" for a ratio that is measured again, "!" and "+" for one beyond
    the limit, "~" for one of too few turns.
    """
    operation = result.name.partition(": ")[2]
    size = size_text(result.size) if result.unit else ""
    start = f"  {operation:<{_NAME - 2}.{_NAME - 2}}{size:>{_SIZE}}"
    if not result.measured:
        return f"{start}  {reason(result)}"[:WIDTH]
    there, here = map(time_text, result.seconds)
    low, middle, high = result.ratio
    mark = " "
    if not final:
        mark = "?"
    elif result.is_slower(limit):
        mark = "!"
    elif result.is_faster(limit):
        mark = "+"
    elif result.has_few_turns:
        mark = "~"
    times = f"{there:>{_TIME}}{here:>{_TIME}}{_digits(middle):>{_RATIO}}"
    return f"{start}{times}{mark} {_digits(low)}-{_digits(high)}"


def reason(result: Result) -> str:
    """Why there is no ratio."""
    if result.here == NO_TIME:
        return NO_TIME
    sides = (("there", result.there), ("here", result.here))
    whys = [
        f"absent {place}" if why == ABSENT else f"{place}: {why}" for place, why in sides if why
    ]
    return "; ".join(whys)


def kind(result: Result, limit: float) -> str:
    """The verdict of a result."""
    if result.is_slower(limit):
        return f"slower than {limit:g} (!)"
    if result.is_faster(limit):
        return f"faster than 1/{limit:g} (+)"
    if result.has_few_turns:
        return "with too few turns (~)"
    if result.measured:
        return "within"
    if result.here == NO_TIME:
        return "not measured"
    if result.here:
        return "failed here"
    return "absent there" if result.there == ABSENT else "failed there"


def summary(results: Sequence[Result], limit: float) -> str:
    """How many results have each verdict."""
    counts = Counter(kind(result, limit) for result in results)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def markdown(results: Mapping[str, Sequence[Result]], limit: float) -> str:
    """A table with a column for each commit: the ratios at the sizes of a row.

    Ratios beyond the limit are in bold; "~" stands behind those of too few turns.
    """
    rows: dict[str, dict[str, list[Result]]] = {}
    for commit, measured in results.items():
        for result in measured:
            rows.setdefault(result.name, {}).setdefault(commit, []).append(result)
    lines = [f"| operation | sizes | {' | '.join(results)} |", "|---" * (2 + len(results)) + "|"]
    for name, cells in rows.items():
        longest = max(cells.values(), key=len)
        unit = longest[0].unit
        sizes = f"{', '.join(size_text(result.size) for result in longest)} {unit}" if unit else ""
        texts = [_cell(cells.get(commit, ()), limit) for commit in results]
        lines.append(f"| {name} | {sizes} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _cell(results: Sequence[Result], limit: float) -> str:
    texts = []
    for result in results:
        if not result.measured:
            texts.append(kind(result, limit))
        else:
            text = _digits(result.ratio.middle)
            text += "~" * result.has_few_turns
            texts.append(f"**{text}**" if result.is_slower(limit) else text)
    return " ".join(texts)
