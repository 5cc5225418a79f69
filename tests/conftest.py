"""What all tests share: Hypothesis profiles, and that slow tests are left out unless asked for.

`pytest` is the normal run: the quick profile, without slow tests. `pytest -m "slow or not slow"
--hypothesis-profile deep` runs everything, with far more and longer examples.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).parents[1]

_COMMON = {
    "deadline": None,  # the first call of a compiled function may compile it
    "suppress_health_check": [
        HealthCheck.too_slow
    ],  # machines are shared; a slow minute is no failure
    "print_blob": True,
}
# The same verdict on every run: new examples are looked for by the deep profile, not by whoever
# runs the tests.
settings.register_profile(
    "quick", max_examples=120, stateful_step_count=40, derandomize=True, **_COMMON
)
settings.register_profile("deep", max_examples=1000, stateful_step_count=100, **_COMMON)
# For code that only asks "does it fail?": it stops at the first failure, and does not look for a
# smaller one.
settings.register_profile(
    "verdict",
    max_examples=120,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    **_COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.markexpr:
        config.option.markexpr = "not slow and not cluster"
    if os.environ.get("COVERAGE_FOLDER"):
        from tests.covered import Covered, Table

        deals_out = hasattr(config.option, "dist") and config.option.dist != "no"
        is_worker = hasattr(config, "workerinput")
        if not deals_out:
            config.pluginmanager.register(Covered())
        if not is_worker:
            config.pluginmanager.register(Table())


# -- how `pytest -n 2` deals the tests out

ALONE = (
    "tests/timers/test_state_machine.py",
    "tests/mutation/test_mutation.py",
)
"""Files of long tests that share nothing: dealt out last, one by one, so that no worker waits."""


@cache
def uses_spark(file: str) -> bool:
    return "mark.spark" in Path(ROOT, file).read_text()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses Spark comes first, as it is the longest; single tests come last."""

    def turn(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return 0 if uses_spark(file) else 2 if file in ALONE else 1

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker, and so one JVM, for all that uses Spark; one for each other file, whose fixtures
    are then made once.

    pytest-xdist's own `--dist loadgroup` forgets its groups with pytest 9.2. The tests of `nox -s
    cluster` are few and long: they are dealt out one by one.
    """
    if config.option.markexpr == "cluster":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "spark" if uses_spark(file) else nodeid if file in ALONE else file

    config.option.loadscopereorder = False  # the order of the collection
    return Scheduling(config, log)
