"""How a run was measured, and what was over budget."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports import formats
from reports.sections.parts import Section
from reports.summary import Summary

ALIKE = (
    "All timers take the same operations, in the same order, taking turns, so that interference "
    "affects all of them equally.",
    "The loop fetches its own entry of each timer's handle ahead of time, for all compiled timers.",
    "The clock of the timers moves while they are held and in replays, so that wheels do their "
    "work in their slots. Expiry is never one jump over all deadlines: that would favour a scan.",
    "Room for more timers is made outside what is timed; see “Memory” for the cost of growing.",
    "The median time of an empty call is subtracted from each sample of a compiled timer.",
)
"""What holds for each contestant, so that it favours none."""

NOT_ALIKE = (
    "Timers of unequal precision do unequal work: a tick of 100 has fewer moments than a tick of "
    "1. Compare them at one precision, or read the time together with the lateness.",
    "The work that a wheel puts off, such as hashing what has arrived, is in the cost of a later "
    "operation or of expiry; for the timers inserted at the start this work is not measured at "
    "all, because the clock is advanced outside the timed section. Compare whole workloads before "
    "single operations.",
    "Arrays of this size are often on huge pages, where those of other programs are not. That "
    "makes a difference beside figures from elsewhere, and none within this page.",
)
"""What favours some contestants, or this page over other measurements."""


def section(summary: Summary) -> Section:
    """All that is known about the measurement."""
    manifest = summary.manifest
    terms: dict[str, Sequence[str]] = {
        "When": [manifest["created"]],
        "Command": [shlex.join(map(str, manifest["command"]))],
        "Code": [_commit(manifest)],
        "Versions": [f"{name} {of or 'unknown'}" for name, of in manifest["versions"].items()],
        "Machine": _machine(summary),
        "Parameters": _items(manifest["parameters"]),
        "Workloads": [
            f"{of.name}: {_plain(of.details.get('details', {}))}" for of in summary.replays
        ],
        "Checks": _items(manifest["agreement"]),
        "Over budget": [*summary.stopped()] or ["nothing"],
    }
    if summary.contestants:
        terms |= {"Engines": _engines(summary), "Alike for all": ALIKE, "Not alike": NOT_ALIKE}
    told = {term: texts for term, texts in terms.items() if texts}
    return Section("method", "Method", "How it was measured", terms=told)


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


def _engines(summary: Summary) -> list[str]:
    loops = [who.full for who in summary.contestants if not who.compiled]
    found = ["compiled: the whole tape runs in one compiled loop, so no call from Python is timed"]
    if loops:
        found.append(
            f"Python loop: {formats.listed(loops)}. The interpreter's time is included: this is "
            "what a Python program gets, not what the algorithm costs"
        )
    return found


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
    return value if isinstance(value, str) else json.dumps(value)
