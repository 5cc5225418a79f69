"""What the tests of `compare` share: short measurements, command lines, one Spark session, logs.

Measurements are far shorter than real ones: the tests check what is measured, not the speed.
"""

import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from compare.cli.main import BAD_INPUT, main
from compare.trial.bench import callers, costs, work
from compare.trial.bench.constants import Constants, Everyone, Fit
from tests.compare.clocks import FakeClock
from tests.compare.daemons import Daemons
from tests.compare.lake import Driver, Lake, mounts_can_be_separated
from tests.compare.own_timers import Timed
from timers.kernels.jit import COMPILING

NO_SPARK = "PySpark is not installed; its pandas has no wheels for Python 3.15 and later"

SMALL = {"LONGEST_DELAY": 6000, "HOLD_PAIRS": 2000, "MIN_TIMED": 2000, "MIN_FIRED": 500}
SMALL_CALLERS = {"PAIRS": dict.fromkeys(callers.CALLERS, 60), "STEPS": {}, "BATCH": 10}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of Spark where it cannot be installed."""
    if find_spec("pyspark") is None:
        for item in items:
            if item.get_closest_marker("spark"):
                item.add_marker(pytest.mark.skip(reason=NO_SPARK))


@pytest.fixture(scope="package", autouse=True)
def short_measurements() -> Iterator[dict[str, int]]:
    """Shorten all measurements; gives the real constants."""
    real = {name: getattr(work, name) for name in SMALL}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(work, name, value)
        for name, value in SMALL_CALLERS.items():
            patch.setattr(callers, name, value)
        patch.setattr(costs, "fits", made_up_fits)
        yield real


def made_up_fits(
    everyone: Everyone, pending: int, kind: str, repeats: int, more: int
) -> dict[tuple[str, str], Fit]:
    """Constants that nobody measured."""
    constants = Constants(*(10.0 * k for k in range(1, 8)))
    return {
        (caller, label): Fit(constants, 0.1, (constants,) * repeats)
        for caller, contestants in everyone.items()
        for label in contestants
    }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of Timed and, with `spend_in_compiled_code`, of compiled loops."""
    clock = FakeClock()
    for name, value in {"clock": clock, "factor": 1, "instances": []}.items():
        monkeypatch.setattr(Timed, name, value)
    return clock


NOTICE = COMPILING + "\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(here: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line; returns its exit code and what it and its programs printed."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        code = main([str(argument) for argument in arguments])
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        out, err = capfd.readouterr()
        return code, out, err.replace(NOTICE, "")

    return run


@pytest.fixture
def fails(said: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs a command line that must fail; returns its one line."""

    def run(*arguments: object) -> str:
        code, out, err = said(*arguments)
        assert (code, out) == (BAD_INPUT, "")
        assert err.startswith("wheelwork: error: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err

    return run


_LOGS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from compare.spark import session as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            module._LOCAL_SETTINGS, "spark.python.daemon.module", "tests.compare.worker_daemon"
        )
        with module.spark_session("local[2]") as session:
            yield session


@pytest.fixture
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the pipeline runs, "threads" or "spark", as keywords of its functions."""
    return {"session": request.getfixturevalue("spark")} if request.param == "spark" else {}


on_both = pytest.mark.parametrize(
    "where", ["threads", pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    """What a test starts of Spark's own processes; stopped with it."""
    (tmp_path / "daemons").mkdir()
    running = Daemons(tmp_path / "daemons")
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A cluster without a shared disk, and its object store, for all tests of this process."""
    pytest.importorskip("moto", reason="the object store is moto's: pip install '.[cluster]'")
    if not mounts_can_be_separated():
        pytest.skip("this system cannot separate mounts: unshare --mount")
    running = Lake(tmp_path_factory.mktemp("lake"))
    try:
        yield running.start_cluster()
    finally:
        running.stop()


@pytest.fixture(scope="session")
def classic(lake: Lake) -> Driver:
    """A driver of the lake's cluster."""
    return lake.driver()


@pytest.fixture(scope="session")
def connect(lake: Lake) -> Driver:
    """A client of a Spark Connect server, which is the driver of the lake's cluster."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    return lake.driver(lake.connect_server(lake.master))


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    """The driver that a test is parametrised with: "classic" or "connect"."""
    found: Driver = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def recorded_log() -> Any:
    """The path of a log that was recorded elsewhere; skips the test where there is none."""

    def find(name: str) -> Path:
        path = _LOGS / name
        if not path.exists():
            pytest.skip(f"the recorded log {name} is not on this machine")
        return path

    return find
