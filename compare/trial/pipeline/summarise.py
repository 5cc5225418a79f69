"""Summarise replayed results as a stored run: the figures of each timer, over all shards.

Outcomes and their distributions of lateness are added (`compare.trial.replay.outcome`), so
quantiles are those of all timers that fired, not averages of quantiles. The samples of the time of
an operation are the shards, each replayed once.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.base.files import CANNOT_WRITE, MANIFEST, errors_as, has_format, new_directory
from compare.base.quantiles import QUANTILES
from compare.trial.pipeline.results import OPTIONS, Results, ResultsError, open_results
from compare.trial.replay.outcome import Outcome
from compare.trial.results.schema import Row, rows_of
from compare.trial.results.store import (
    FORMAT,
    REPLAY,
    SUMMARY,
    Run,
    Writer,
    contestant_entry,
    read_run,
)

if TYPE_CHECKING:
    from compare.trial.pipeline.verify import Verification

_CHECKED = {
    "compiled": "every expiry, by the compiled oracle, as part of the replay",
    "sql": "every expiry, by joins in Spark SQL",
}
"""By method of the check."""
_NOT_CHECKED = (
    "not by this report; `wheelwork verify RESULTS` checks every expiry of replayed results against"
    " the oracle"
)


def summarise(
    results: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    verification: "Verification | None" = None,
    allow: Collection[str] = (),
) -> Run:
    """Summarise complete results as a run, which is also written to the directory `out`.

    The default of `out` is summary in the directory of the results. An older summary is replaced.
    The mismatches are those of the `verification`, or else those that the replay has found.
    `allow` has the classes of the user's own timers that may be imported; see `open_results`.
    O(shard replays). Raises ResultsError if the results are incomplete or damaged, or `out` cannot
    be written or is something else.
    """
    opened = open_results(results, allow=allow)
    path = Path(out) if out is not None else opened.path / SUMMARY
    method, mismatches = "compiled", _mismatches(opened)
    if verification is not None:
        method, mismatches = verification.method, [each.mismatches for each in verification.timers]
    checked = _NOT_CHECKED if mismatches is None or any(mismatches) else _CHECKED[method]
    manifest, rows = _manifest(opened, checked), [*rows_of_results(opened, mismatches)]
    if path.exists() and not has_format(path / MANIFEST, FORMAT):
        raise ResultsError(f"{CANNOT_WRITE} {path}: it exists and is not a summary")
    problem = f"{CANNOT_WRITE} {path}"
    with errors_as(ResultsError, problem), new_directory(path, replace=True) as directory:
        writer = Writer(directory, REPLAY, manifest, ["replay"], problem)
        writer.write("replay", rows)
        writer.finish()
    return read_run(path)


def summary_of(path: str | os.PathLike[str], *, allow: Collection[str] = ()) -> Run:
    """Read the summary of results, or a summary; results without one are summarised first.

    Raises ResultsError or RunError.
    """
    path = Path(path)
    if path.exists() and not has_format(path / MANIFEST, FORMAT):
        own = path / SUMMARY
        return read_run(own) if own.exists() else summarise(path, allow=allow)
    run = read_run(path)
    if run.manifest["kind"] != REPLAY:
        raise ResultsError(f"{path} is not a summary of replayed results; show it with --run")
    return run


def _manifest(results: Results, checked: str) -> dict[str, Any]:
    made_by = dict(results.manifest["made_by"])
    origin = {
        name: value
        for name, value in results.trace.source.items()
        if isinstance(value, str | int | float | dict)
    }
    outcomes = results.outcomes()
    operations = sum(outcome.operations for outcome in outcomes[0])
    unit = results.trace.unit
    return {
        **made_by,
        "parameters": {name: results.manifest[name] for name in OPTIONS},
        "contestants": [contestant_entry(timer, [unit]) for timer in results.contestants],
        "sources": [
            {
                "name": _name(results),
                "unit": unit,
                "timers": sum(outcome.scheduled for outcome in outcomes[0]),
                "shards": len(results.trace.shards),
                "operations": operations,
                "span": results.trace.span,
                "details": origin,
                "description": None,
            }
        ],
        "agreement": {"checked": checked},
    }


def _name(results: Results) -> str:
    source = results.trace.source
    return str(source.get("workload") or source.get("kind") or "trace")


def _mismatches(results: Results) -> list[int] | None:
    """The mismatches of each timer that the replay has found; None if it has not checked."""
    if not results.manifest["checked"]:
        return None
    return [sum(verified.counts.values()) for verified in results.verified()]


def rows_of_results(results: Results, mismatches: Sequence[int] | None = None) -> Iterator[Row]:
    """Yield the rows of the table of results.

    The mismatches of each timer are those given, or else those that the replay has found.
    """
    found = _mismatches(results) if mismatches is None else mismatches
    for number, (timer, shards) in enumerate(
        zip(results.contestants, results.outcomes(), strict=True)
    ):
        wrong = None if found is None else found[number]
        yield from _rows(timer.label, _name(results), shards, wrong)


def _rows(
    label: str, name: str, shards: Sequence[Outcome], mismatches: int | None
) -> Iterator[Row]:
    total = sum(shards, Outcome())
    quantiles = total.lateness.quantiles(QUANTILES.values())
    # The quantiles of coarse values; the greatest is exact in the figures.
    late = {f"lateness_{name}": value for name, value in zip(QUANTILES, quantiles, strict=True)}
    yield from rows_of(label, name, {"replay_time": total.ns_per_operation})
    for repeat, shard in enumerate(shards):
        yield from rows_of(label, name, {"replay_time": shard.ns_per_operation}, repeat=repeat)
    yield from rows_of(label, name, late | total.figures() | {"mismatches": mismatches})
