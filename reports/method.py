"""The method of measurement, the tasks that were over budget, and facts about the traffic."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compare.base import formats
from compare.traffic.tapes.description import Description
from compare.traffic.tapes.profile import Profile
from reports.summary import StoredSource, Summary
from reports.unfinished import unfinished


def terms(summary: Summary) -> dict[str, Sequence[str]]:
    """Return everything known about the measurement, by title."""
    manifest = summary.manifest
    known: dict[str, Sequence[str]] = {
        "When": [manifest["created"]],
        "Command": [shlex.join(map(str, manifest["command"]))],
        "Code": [_commit(manifest)],
        "Versions": [
            f"{name} {version or 'unknown'}" for name, version in manifest["versions"].items()
        ],
        "Machine": _machine(summary),
        "Parameters": _items(manifest["parameters"]),
        "Workloads": [
            f"{source.name}: {described(source)}; {_course(source)}"
            f"{_plain(source.details.get('details', {}))}"
            for source in summary.sources
        ],
        "Checks": _items(manifest["agreement"]),
        "Over budget": [*summary.stopped()] or ["nothing"],
        "Not finished": unfinished(summary),
    }
    return {term: texts for term, texts in known.items() if texts}


def _commit(manifest: Mapping[str, Any]) -> str:
    if not manifest["commit"]:
        return "not run from a checkout, so the commit is unknown"
    changed = " with uncommitted changes" if manifest["dirty"] else ""
    return f"commit {manifest['commit']}{changed}"


def _machine(summary: Summary) -> list[str]:
    machine = summary.manifest["machine"]
    cores, memory = machine.get("cores"), machine.get("memory_bytes")
    usable = f"{formats.counted(cores, 'core') if cores else 'unknown number of cores'} usable"
    if summary.contestants:
        what = "a shard is replayed on" if summary.of_shards else "the comparison uses"
        usable += f"; {what} one"
    return [
        str(machine.get("cpu") or "processor unknown"),
        usable,
        f"{formats.data_size(memory)} of memory" if memory else "memory unknown",
        str(machine.get("platform") or "platform unknown"),
    ]


def _items(values: Mapping[str, Any]) -> list[str]:
    return [f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in values.items()]


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return formats.count(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)


def _course(source: StoredSource) -> str:
    course = source.details.get("course")
    return "".join(f"{text}; " for text in Profile(**course).lines().values()) if course else ""


# ---- traffic


def facts(summary: Summary, source: StoredSource) -> dict[str, str]:
    """Facts about a source, from its replays and from `ingest`, by title."""
    terms = {"operations": described(source)}
    description = source.details.get("description")
    if timer := next(iter(summary.column("scheduled", source.name)), None):

        def number(metric: str) -> int:
            return int(summary.value(timer, source, metric) or 0)

        scheduled, fired = number("scheduled"), number("fired")
        several = " in one shard" * (source.details.get("shards", 1) > 1)
        terms["pending"] = f"at most {formats.count(number('most_pending'))} at once{several}"
        if not description:  # a replay goes on after the end of a log, until all have fired
            terms["fired"] = f"{formats.count(fired)} of {formats.counted(scheduled, 'timer')}"
            if scheduled:
                terms["fired"] += f" ({formats.share(fired / scheduled)})"
    if description:
        span, shards = source.details["span"], source.details["shards"]
        lines = Description(**description).lines(source.unit, span, shards)
        # In a terminal, groups of digits have commas.
        grouped = {
            term: re.sub(r"(?<=\d),(?=\d{3})", formats.NO_BREAK, text)
            for term, text in lines.items()
        }
        terms = grouped | terms
    return terms


def described(source: StoredSource) -> str:
    """The amount of traffic that was replayed, and its rate."""
    counts = {"operation": "operations", "timer": "timers", "id": "id_space", "shard": "shards"}
    parts = [
        formats.counted(source.details[name], noun)
        for noun, name in counts.items()
        if name in source.details
    ]
    if source.rate:
        parts.append(
            f"{formats.amount(source.rate)} operations per second for "
            f"{formats.nanoseconds(1e9 * source.seconds)}"
        )
    return ", ".join(parts) or "replayed"
