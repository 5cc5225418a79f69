"""One Spark session for all tests of the pipeline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.daemons import Daemons

_LOGS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from compare.pipeline.spark import spark_session

    with spark_session("local[2]", brief=True) as session:
        yield session


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    """What a test starts of Spark's own processes; stopped with it."""
    (tmp_path / "daemons").mkdir()
    running = Daemons(tmp_path / "daemons")
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def recorded_log() -> Any:
    """The path of a log that was recorded elsewhere; skips the test where there is none."""

    def find(name: str) -> Path:
        path = _LOGS / name
        if not path.exists():
            pytest.skip(f"the recorded log {name} is not on this machine")
        return path

    return find
