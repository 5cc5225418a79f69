"""Measurements of a hundredth of the real length: what is tested is what is measured, not how fast
it is.
"""

from collections.abc import Iterator

import pytest

from compare import measure

SMALL = {"LONGEST_DELAY": 6000, "HOLD_PAIRS": 2000, "LEAST_TIMED": 2000, "LEAST_FIRED": 500}


@pytest.fixture(scope="package", autouse=True)
def short_measurements() -> Iterator[dict[str, int]]:
    """Shorten all measurements; gives the real constants."""
    real = {name: getattr(measure, name) for name in SMALL}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(measure, name, value)
        yield real
