"""How a run was measured, what was too long to run, and what its figures cannot say."""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from reports import style
from reports.summary import Summary
from reports.words import list_of


def too_long(summary: Summary) -> list[str]:
    """What was not run, in words, with its prediction."""
    return [
        f"{who.label}, {where}: too long, predicted {style.span(seconds)}"
        for where, who, seconds in summary.too_long()
    ]


def method(summary: Summary) -> list[tuple[str, list[str]]]:
    """How it was measured: terms and what is to be said of them."""
    manifest = summary.manifest
    machine = manifest["machine"]
    memory_bytes = machine.get("memory_bytes")
    commit = manifest["commit"]
    agreement = manifest["agreement"]
    rows = [
        ("When", [manifest["created"]]),
        ("Command", [shlex.join(map(str, manifest["command"]))]),
        (
            "Code",
            [
                f"commit {commit}{' with uncommitted changes' if manifest['dirty'] else ''}"
                if commit
                else "not run from a checkout, so no commit is known"
            ],
        ),
        (
            "Versions",
            [f"{name} {version or 'unknown'}" for name, version in manifest["versions"].items()],
        ),
        (
            "Machine",
            [
                str(machine.get("cpu") or "processor unknown"),
                f"{machine.get('cores') or 'unknown number of'} cores usable"
                + (
                    "; a shard is replayed by one"
                    if summary.of_shards
                    else "; the comparison uses one"
                ),
                style.data_size(memory_bytes) + " of memory" if memory_bytes else "memory unknown",
                str(machine.get("platform") or "platform unknown"),
            ],
        ),
        (
            "Chosen",
            [
                f"{name.replace('_', ' ')}: {_plain(value)}"
                for name, value in manifest["parameters"].items()
            ],
        ),
        (
            "Workloads",
            [
                f"{source.name}: {_plain(source.details.get('details', {}))}"
                for source in summary.sources
            ],
        ),
        ("Drivers", [f"{task.title}: {task.meaning}" for task in summary.tasks]),
        (
            "Agreement",
            [f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in agreement.items()],
        ),
        ("Not run", too_long(summary) or ["nothing was too long"]),
        ("Engines", _engines(summary)),
    ]
    return [(term, texts) for term, texts in rows if texts]


def limits(summary: Summary) -> list[str]:
    """What the figures cannot say."""
    if summary.of_shards:
        return [
            "Every shard is replayed once by every timer, so the spread is that of the shards, and of whatever else the "
            "machines did: on a cluster, of different machines. Compare ratios, and the counted work (`--count`).",
            *_of_any_run(summary),
        ]
    return [
        "One machine, one run. Times on a shared machine are noise to some degree: compare the ratios within this "
        "run, and the counted work, which is the same everywhere. Samples follow one another within minutes, so their "
        "spread does not show how the machine differs from day to day.",
        *_of_any_run(summary),
        "Insert, cancel, hold and expiry are measured with random delays from one distribution. Others cost otherwise: "
        "one delay for all makes wheels re-file, falling deadlines are a heap's worst case. The workloads, and a log "
        "of your own, show some of it.",
        "Expiry includes finding nothing due: driven by the clock, every unit of time is a call, however few timers "
        "there are, which is why few timers look dear there.",
    ]


def _of_any_run(summary: Summary) -> list[str]:
    cores = summary.manifest["machine"].get("cores")
    return [
        "One thread: no contention, no locks"
        + (f", one of {cores} cores" if cores else "")
        + ". What a concurrent service pays on top is not measured.",
        "Compiled Python (Numba, LLVM) against compiled Python. These are not the times of Kafka, Netty or Linux in "
        "Java or C: the algorithms are theirs, the runtime is not. No garbage collector, no objects, no thread to "
        "wake. A single call from Python costs some hundred nanoseconds more; the batch forms share that among many.",
        "Not among the rivals: calendar queues, pairing and Fibonacci heaps, skip lists, sorted arrays and trees, the "
        "Linux wheel since 4.8 (which does not cascade and rounds instead), and the real timers of other runtimes.",
    ]


def _engines(summary: Summary) -> list[str]:
    loops = [who.label for who in summary.contestants if not who.compiled]
    texts = [
        "compiled: the whole tape runs inside one compiled loop, so that no call from Python is timed"
    ]
    if loops:
        texts.append(
            f"Python loop: {list_of(loops)}; the interpreter's time is included, so this is what a Python program "
            "gets, not what the algorithm costs"
        )
    return texts


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return style.count(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(_plain, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)
