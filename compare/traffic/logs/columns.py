"""What the columns of a log mean: every column is scored for each role, with the reason.

A documented format counts most, then the whole name of a column, then a part of it, and last its
values. Values can always speak against a column: one without a time is not the time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from compare.traffic.logs.formats.base import Log
from compare.traffic.logs.formats.lines import extra_names
from compare.traffic.logs.formats.patterns import EXTRAS, REST
from compare.traffic.logs.known import UNIT_OF, Known, split_unit
from compare.traffic.logs.numbers import ABSENT, VALID, read_durations
from compare.traffic.logs.time_formats import NUMBER, guess_form, looks_like_time
from compare.traffic.tapes.units import EXPONENTS

Sample = Mapping[str, Sequence[str | None]]
"""The values of each column in the first rows; None where there is none."""

VALUE = "value"
"""A column that holds what another one names, or nothing does."""
METRICS = ("metric", "__name__")
"""Columns with that name."""
NAMES = {
    "time": (
        *("ts", "time", "timestamp", "@timestamp", "datetime", "start", "start_time", "date"),
        *("time_stamp", "started_at", "begin", "start_time_unix", "time_iso8601", "time_local"),
        *("created_at", "event.start", "zeit", "datum"),
    ),
    "duration": (
        *("rtt", "duration", "", "elapsed", "latency", "took", "total_time", "request_time", "rt"),
        *("target_processing_time", "time_taken", "response_time", "grpc.time"),
        *("elapsed_time", "duration_time", "dur", "reqtime", "dauer", VALUE),
    ),
    "end": (
        *("end", "stop", "end_time", "finish", "end_time_unix", "ended_at", "finished_at"),
        *("completed_at", "finish_time", "stop_time", "event.end"),
    ),
    "key": (
        *("client", "id.orig_h", "key", "user", "session", "ip", "client.ip", "c_ip"),
        *("client_ip", "remote_addr", "remote_ip", "client_host", "client_addr", "remote"),
        *("request.remote_ip", "peer.address.ip", "peer.address", "source.ip", "user_id"),
        *("session_id", "host", "hostname", "thread", "logger"),
    ),
}
"""Names of columns in common logs, without their units, the most likely one first."""
WORDS = {
    "time": frozenset({"time", "timestamp", "date", "datetime", "start", "started", "zeit"}),
    "duration": frozenset({"duration", "elapsed", "latency", "took", "rtt", "dauer", "taken"}),
}
"""Words in the names of other columns."""
PAIRS = (
    *(("start", "end"), ("begin", "end"), ("start", "stop"), ("start", "finish")),
    *(("started", "finished"), ("started", "completed"), ("started", "ended"), ("begin", "finish")),
    *(("request", "response"), ("req", "res"), ("send", "receive"), ("sent", "received")),
    *(("open", "close"), ("opened", "closed"), ("connect", "disconnect"), ("enter", "exit")),
    *(("connected", "disconnected"), ("acquire", "release"), ("call", "return")),
)
"""Words that tell the start of a request from its end: values of a column, or parts of names."""
_STARTS = {"start", "started", "starting", "begin", "began", "received", "created"}
_ENDS = {"end", "ended", "ending", "finish", "finished", "completed", "complete", "stop", "stopped"}
_LEVELS = {"level", "severity", "levelname", "lvl", "loglevel", "log.level"}
"""Columns of a program's log."""
_DOCUMENTED, _NAMED, _INSIDE, _WORD, _VALUES = 4.0, 3.0, 2.0, 1.0, 0.0
"""Scores; a less likely name has up to 1 less."""
NGINX, APACHE = "as $request_time of nginx", "as %D or %T of Apache"
BOTH = "as %T/%D of Apache"
TRAEFIK, WITH_UNIT = "as in Traefik's log", "each value has its unit"
"""Reasons of fields without a name."""
_REQUEST_TIME = r"[0-9]+\.[0-9]{3,9}"
_TRAEFIK_PLACE = 3  # behind a count, a router and a server
_LENGTH = rf"[0-9]+(?:\.[0-9]+)? ?(?:{'|'.join(UNIT_OF)})"
_REASONS = {
    _DOCUMENTED: "documented",
    _NAMED: "by its name",
    _INSIDE: "by its name",
    _WORD: "by a word of its name",
    _VALUES: "by its values",
}


class Candidate(NamedTuple):
    """A column that may have a role."""

    column: str
    score: float
    reason: str
    unit: str = ""  # of durations, if the values or the fields beside them tell it


class Roles(NamedTuple):
    """The columns of roles, what else is known about them, and why."""

    columns: dict[str, str]
    reasons: dict[str, str]
    unit: str = ""  # of the durations, if it is known


def choose(log: Log, sample: Sample, known: Known | None) -> Roles:
    """The most likely column for each role."""
    # Not those that cannot be read, or occur twice.
    columns = [name for name in log.columns if name in sample] if sample else list(log.columns)
    roles: dict[str, str] = {}
    reasons: dict[str, str] = {}
    units: dict[str, str] = {}

    def take(role: str, candidates: Sequence[Candidate]) -> None:
        free = (one for one in candidates if one.column not in roles.values())
        if best := next(free, None):
            roles[role], reasons[role], units[role] = best.column, best.reason, best.unit

    times = _times(log, sample, known, columns)
    if known is not None:
        where = known.where if known.where.partition(" ")[0] in columns else ""
        given = {"duration": known.duration, "end": known.end, "where": where}
        given["time_format"] = known.time_format
        roles |= {role: value for role, value in given.items() if value}
    take("time", times)
    if not roles.keys() & {"duration", "end"}:
        roles |= _pair_of_rows(sample, roles.get("time", ""))
    if not roles.keys() & {"duration", "end", "id"}:
        take("duration", _durations(log, sample, columns) + _extras(sample, columns))
    if not roles.keys() & {"duration", "end", "id"}:
        names = [one.column for one in times if any(sample.get(one.column, ()))]
        if pair := _pair_of_names(log, sample, names):
            roles |= pair
            reasons |= dict.fromkeys(pair, _REASONS[_WORD])
        else:
            take("end", _ends(log, sample, columns, roles.get("time", "")))
    if split_unit(roles.get("duration", ""))[0] == VALUE:
        roles |= _metric(sample, roles)
    take("key", _keys(sample, known, columns))
    return Roles(roles, reasons, units.get("duration", ""))


def form_of(log: Log, sample: Sample, column: str) -> str | None:
    """The format of the first value of a column that is a time in a known format."""
    implied = log.implied_form(column) if column in log.columns else None
    texts = (text for text in sample.get(column, ()) if text is not None)
    guesses = (guess_form(text) or guess_form(text.replace(log.point, ".")) for text in texts)
    return implied or next(filter(None, guesses), None)


def start_or_end(log: Log, known: Known | None, time: str, reason: str) -> str:
    """Whether a time is a start or an end, as the documentation or its name says; else empty.

    A line of a program's log is written when what it tells is done. In an access log, Apache writes
    the start and others the end.
    """
    if log.format == "access":
        return "start" if reason in (APACHE, BOTH, TRAEFIK) else "end"
    if known is not None and time in known.times:
        return known.times[time]
    words = _words(time)
    if words & _ENDS:
        return "end"
    if words & _STARTS:
        return "start"
    return log.time_is or ("end" if _LEVELS & set(map(str.lower, log.columns)) else "")


def _words(column: str) -> set[str]:
    return set(re.split(r"[_.@]", split_unit(column)[0]))


def _by_name(role: str, columns: Sequence[str]) -> list[Candidate]:
    """The columns whose names speak for a role, the most likely one first."""
    ranks = {name: rank / len(NAMES[role]) for rank, name in enumerate(NAMES[role])}
    found = []
    for column in columns:
        base = split_unit(column)[0]
        inner = base.rpartition(".")[2]
        if base in ranks:
            found.append((column, _NAMED, ranks[base]))
        elif "." in base and inner in ranks:
            found.append((column, _INSIDE, ranks[inner]))
        elif _words(inner) & WORDS.get(role, frozenset()):
            found.append((column, _WORD, 0.0))
    # Of names for the same, the one with the finest unit: values without one may be rounded.
    units = {one[0]: EXPONENTS.get(split_unit(one[0])[1] or "", -1) for one in found}
    found.sort(key=lambda one: (one[2] - one[1], -units[one[0]]))
    return [Candidate(column, level - rank, _REASONS[level]) for column, level, rank in found]


def _times(
    log: Log, sample: Sample, known: Known | None, columns: Sequence[str]
) -> list[Candidate]:
    found = []
    for name in known.times if known is not None else ():
        if log.has(name) and (known.time_format or _may_be_time(log, sample, name)):  # type: ignore[union-attr]  # it has times
            found.append(Candidate(name, _DOCUMENTED, _REASONS[_DOCUMENTED]))
    for one in _by_name("time", columns):
        # A part of a name says less than a value that is just any number.
        looks = _looks_like_time(log, sample.get(one.column, ()))
        if looks if one.score <= _WORD else _may_be_time(log, sample, one.column):
            found.append(one)
    found += [
        Candidate(name, _VALUES, _REASONS[_VALUES])
        for name in sample
        if name != REST and _looks_like_time(log, sample[name])
    ]
    first: dict[str, Candidate] = {}
    for one in found:
        first.setdefault(one.column, one)
    return list(first.values())


def _durations(log: Log, sample: Sample, columns: Sequence[str]) -> list[Candidate]:
    """Columns with durations; a column without a value in the first rows would be of no use."""
    return [
        one
        for one in _by_name("duration", columns)
        if _is_filled(sample, one.column)
        and _may_be_duration(log, sample, one.column)
        and not (one.score <= _WORD and _looks_like_time(log, sample.get(one.column, ())))
    ]


def _extras(sample: Sample, columns: Sequence[str]) -> list[Candidate]:
    """Fields behind an access line: named as durations are, else nginx's or Apache's."""
    found = []
    if REST in sample:
        names = extra_names(present(sample[REST]))
        for column in (column for column in EXTRAS if column in columns):
            texts = list(present(sample[column]))
            numbers = [text for text in texts if re.fullmatch(NUMBER, text)]
            lengths = [text for text in texts if re.fullmatch(_LENGTH, text)]
            pairs = [text for text in texts if "/" in text]
            if pairs and 10 * len(pairs) >= 9 * len(texts) and _are_durations(pairs):
                found.append(Candidate(column, _WORD, BOTH))
            if len(lengths) > len(numbers):
                reason = TRAEFIK if EXTRAS.index(column) == _TRAEFIK_PLACE else WITH_UNIT
                found.append(Candidate(column, _WORD, reason))
            if not numbers or 10 * len(numbers) < 9 * len(texts):
                continue
            if unit := _unit_behind(sample, column):
                found.append(Candidate(column, _WORD, f"in {unit}, as the next field says", unit))
                continue
            base = split_unit(names[column])[0]
            if base and base in NAMES["duration"]:
                found.append(Candidate(column, _NAMED, f"named {names[column]}"))
            elif not names[column] and all(re.fullmatch(_REQUEST_TIME, text) for text in numbers):
                # The time of a request is at least that of what is behind nginx.
                total = sum(map(float, numbers))
                found.append(Candidate(column, _WORD - 1 / (1 + total), NGINX, "s"))
            elif names[column] in ("", "D", "T") and not any("." in text for text in numbers):
                score = _NAMED if names[column] else _VALUES
                found.append(Candidate(column, score, APACHE))
    # Nobody knows which of several whole numbers, such as bytes, is the duration, but for %D.
    whole = [one for one in found if one.score == _VALUES]
    if len(whole) > 1:
        micros = [one for one in whole if any(_has_micros(sample, one, other) for other in whole)]
        found = [one for one in found if one.score > _VALUES] + micros[:1]
    return sorted(found, key=lambda one: -one.score)


def _unit_behind(sample: Sample, column: str) -> str:
    """The unit that each field behind a number is, if it is one."""
    behind = EXTRAS[EXTRAS.index(column) + 1 :][:1]
    words = set(present(sample.get(behind[0], ()))) if behind else set()
    return UNIT_OF.get(words.pop(), "") if len(words) == 1 else ""


def _has_micros(sample: Sample, one: Candidate, other: Candidate) -> bool:
    """Whether a field has the seconds of another, which are not all 0, in microseconds."""
    values = [present(sample[field.column]) for field in (one, other)]
    pairs = [pair for pair in zip(*values, strict=False) if all(map(str.isdecimal, pair))]
    seconds = [int(second) for _, second in pairs]
    return any(seconds) and seconds == [int(micros) // 10**6 for micros, _ in pairs]


def metrics_of_time(sample: Sample) -> tuple[str, list[str]]:
    """The column with names of metrics, and those names in it that are of durations."""
    column = next((name for name in METRICS if name in sample), "")
    names = dict.fromkeys(present(sample.get(column, ())))
    return column, [name for name in names if _words(name) & WORDS["duration"] and _is_gauge(name)]


def _is_gauge(metric: str) -> bool:
    """Whether each sample is a value of its own, and no count or sum."""
    return not re.search("_(?:bucket|count|sum|total)$", metric)


def _metric(sample: Sample, roles: dict[str, str]) -> dict[str, str]:
    """The rows whose value is a duration; no duration if there are none."""
    column, metrics = metrics_of_time(sample)
    if column and not metrics:
        del roles["duration"]
    names = set(present(sample.get(column, ())))
    return {"where": f"{column} = {metrics[0]}"} if metrics and names != {*metrics[:1]} else {}


def _ends(log: Log, sample: Sample, columns: Sequence[str], time: str) -> list[Candidate]:
    """Columns with ends, which are read in the format of the time."""
    form = form_of(log, sample, time)
    return [
        one
        for one in _by_name("end", columns)
        if _is_filled(sample, one.column)
        and (form_of(log, sample, one.column) == form or not any(sample.get(one.column, ())))
    ]


def _keys(sample: Sample, known: Known | None, columns: Sequence[str]) -> list[Candidate]:
    documented = [
        Candidate(name, _DOCUMENTED, _REASONS[_DOCUMENTED])
        for name in (known.keys if known is not None else ())
        if name in columns
    ]
    return [
        one
        for one in documented + _by_name("key", columns)
        if _is_filled(sample, one.column) and not _is_constant(sample.get(one.column, ()))
    ]


def _is_filled(sample: Sample, column: str) -> bool:
    return any(sample.get(column) or [True])


def _is_constant(texts: Sequence[str | None]) -> bool:
    """Whether many values are one, which is the key of a single timer."""
    values = [text for text in texts if text]
    return len(values) > 1 and len(set(values)) == 1


def _pair_of_names(log: Log, sample: Sample, times: Sequence[str]) -> dict[str, str]:
    """Two columns whose names differ in a word for the start and one for the end."""
    words = {name: re.split(r"[_.]", split_unit(name)[0]) for name in times}
    for start, end in PAIRS:
        for name, parts in words.items():
            wanted = [end if part == start else part for part in parts]
            for other in words if wanted != parts else ():
                same = form_of(log, sample, other) == form_of(log, sample, name)
                if words[other] == wanted and same:
                    return {"time": name, "end": other}
    return {}


def _pair_of_rows(sample: Sample, time: str) -> dict[str, str]:
    """Find requests in two rows: a column that tells a start from an end, and one with the id."""
    for event, texts in sample.items():
        spelled = {text.strip().lower(): text.strip() for text in texts if text}
        for start, end in PAIRS:
            if {start, end} <= spelled.keys():
                starts, ends = spelled[start], spelled[end]
                ids = {
                    name: _common(values, texts, starts, ends)
                    for name, values in sample.items()
                    if name not in (event, time)
                }
                name = max(ids, key=lambda name: ids[name], default="")
                if name and ids[name]:
                    return {"id": name, "event": event, "starts": starts, "ends": ends}
    return {}


def _common(
    values: Sequence[str | None], events: Sequence[str | None], starts: str, ends: str
) -> int:
    """The number of ids with a start and an end; 0 if an id has several starts as a rule."""
    pairs = [pair for pair in zip(values, events, strict=True) if pair[0]]
    started = [value for value, event in pairs if (event or "").strip() == starts]
    ended = {value for value, event in pairs if (event or "").strip() == ends}
    distinct = set(started)
    return len(distinct & ended) if 2 * len(distinct) > len(started) else 0


def _may_be_time(log: Log, sample: Sample, column: str) -> bool:
    """Return whether a column has a time, or no values."""
    return not any(sample.get(column, ())) or form_of(log, sample, column) is not None


def _may_be_duration(log: Log, sample: Sample, column: str) -> bool:
    """Return whether a column has a duration, or no values."""
    read = read_durations(as_bytes(sample.get(column, ())), "s", "s", log.point, compiled=False)
    return bool((read.flags & ABSENT > 0).all() or (read.flags & VALID > 0).any())


def _are_durations(texts: Sequence[str]) -> bool:
    read = read_durations(as_bytes(texts), "s", "s", compiled=False)
    return bool((read.flags & VALID > 0).all())


def _looks_like_time(log: Log, texts: Sequence[str | None]) -> bool:
    first = next(filter(None, texts), "")
    return looks_like_time(first) or looks_like_time(first.replace(log.point, "."))


def as_bytes(texts: Sequence[str | None]) -> pa.Array:
    """The texts as the bytes of a log."""
    return pa.array(texts, pa.string()).cast(pa.binary())


def present(texts: Sequence[str | None]) -> Iterator[str]:
    """The texts that are there."""
    return (text for text in texts if text is not None)
