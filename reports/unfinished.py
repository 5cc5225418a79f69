"""The tasks of a run in words, for one that was not finished."""

import re
from collections.abc import Mapping

from compare.base import formats
from compare.trial.bench.steady import KINDS
from reports.summary import Summary
from reports.titles import TITLES

_WHOLE: Mapping[str, str] = {
    "callers": "the costs of services and event loops in real time",
    "threads": "timers that several threads use at once",
    "wakeups": "wake-ups of drivers",
    "process": "the memory of whole processes",
    "overload": "lateness under overload",
}
_OF_SIZE: Mapping[str, str] = {
    "pending": "operations",
    "peers": "timers of other languages",
    "tails": "the slowest operations",
}
_OF_SOURCE: Mapping[str, str] = {
    "replay": "the replay of",
    "tails-replay": "the slowest operations in the replay of",
}


def unfinished(summary: Summary) -> list[str]:
    """What the run did not come to."""
    return [_words(summary, task) for task in summary.missing]


def _words(summary: Summary, task: str) -> str:
    kind, _, number = task.rpartition("-")
    sources = summary.manifest["sources"]
    if task in _WHOLE:
        return _WHOLE[task]
    if kind in _OF_SIZE and number.isdigit():
        return f"{_OF_SIZE[kind]} with {formats.counted(int(number), 'timer')} pending"
    if kind in _OF_SOURCE and number.isdigit() and int(number) < len(sources):
        return f"{_OF_SOURCE[kind]} {sources[int(number)]['name']}"
    if costs := re.fullmatch(rf"costs-(.+)-({'|'.join(KINDS)})", task):
        caller = TITLES.get(costs[1], (costs[1],))[0]
        return f"what {caller} pays with {KINDS[costs[2]].partition(':')[0]}"
    return task.replace("-", " ")
