"""What all tests share: Hypothesis profiles, short reports, and that slow tests are left out.

`pytest` is the normal run: the quick profile, without slow tests. `pytest -m "slow or not slow"
--hypothesis-profile deep` runs everything, with far more and longer examples.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

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

# A job that a shell starts in the background ignores Ctrl-C, and so do the programs it starts.
# Tests that interrupt themselves or other programs would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.markexpr:
        config.option.markexpr = "not slow and not cluster and not browser and not peers"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with one chart, to be quick where the charts do not matter."""
    from reports import catalogue

    sections = {
        name: item if name == "memory" else item._replace(plots=())
        for name, item in catalogue.SECTIONS.items()
    }
    monkeypatch.setattr(catalogue, "SECTIONS", sections)
