"""The method of measurement, and the tasks that were over budget."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports import formats
from reports.sections.parts import Section
from reports.sections.workloads import described
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """Make the section: everything known about the measurement."""
    manifest = summary.manifest
    terms: dict[str, Sequence[str]] = {
        "When": [manifest["created"]],
        "Command": [shlex.join(map(str, manifest["command"]))],
        "Code": [_commit(manifest)],
        "Versions": [
            f"{name} {version or 'unknown'}" for name, version in manifest["versions"].items()
        ],
        "Machine": _machine(summary),
        "Parameters": _items(manifest["parameters"]),
        "Workloads": [
            f"{source.name}: {described(source)}; {_plain(source.details.get('details', {}))}"
            for source in summary.replays
        ],
        "Checks": _items(manifest["agreement"]),
        "Over budget": [*summary.stopped()] or ["nothing"],
    }
    shown = {term: texts for term, texts in terms.items() if texts}
    prose, title = "method.html" if summary.contestants else "", "How it was measured"
    return Section("method", title, terms=shown, template=prose, folded=True)


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
