"""`pytest --timer module:factory` and `virtual_time`, as in a project of somebody's own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TIMERS = """
from timers import HashedWheel, HeapqDelayQueue

class Right(HeapqDelayQueue):
    pass

class Late(HeapqDelayQueue):
    def schedule(self, deadline):
        return super().schedule(min(deadline + 1, 2**63 - 1))

def wheel(start=0):
    return HashedWheel(tick=3, wheel_size=4, start=start)
"""

PROFILE = """
from hypothesis import Phase, settings

settings.register_profile(
    "short",
    max_examples=20,
    stateful_step_count=20,
    derandomize=True,
    phases=[Phase.generate],  # making a failure smaller takes ten times as long
)
settings.load_profile("short")
"""


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "compare.trial.peers.plugin", "-q"]
    paths = [str(ROOT), str(ROOT / "docs" / "examples"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # it is named above
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "some_timers.py").write_text(TIMERS)
    (tmp_path / "conftest.py").write_text(PROFILE)
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    return tmp_path


@pytest.mark.parametrize("factory", ["some_timers:wheel", "own_timer:CoarseBuckets"])
def test_a_right_timer_passes(folder, factory):
    code, out = run(folder, "--timer", factory, "-k", "timer")
    assert (code, "1 passed, 1 deselected" in out) == (0, True), out


def test_a_wrong_timer_fails_with_the_steps_that_lead_to_it(folder):
    code, out = run(folder, "--timer", "some_timers:Late")
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert "FAILED" in out
    assert "timer some_timers:Late" in out
    assert "state = Machine()" in out
    assert "state.teardown()" in out


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("some_timers:Nothing", "cannot import 'some_timers:Nothing': module 'some_timers' has no"),
        ("nowhere:Nothing", "cannot import 'nowhere:Nothing': No module named 'nowhere'"),
        ("some_timers", "'some_timers' is not module:factory, such as my_timers:Wheel"),
    ],
)
def test_a_factory_that_does_not_exist_is_one_line(folder, target, says):
    code, out = run(folder, "--timer", target, "-k", "timer")
    assert code == 1
    assert f"\n{says}" in out
    assert "Traceback" not in out


def test_without_the_option_nothing_changes(folder):
    assert run(folder)[0] == 0


def test_the_plugin_imports_nothing_before_the_option_is_given():
    code = "import sys, compare.trial.peers.plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "hypothesis", "timers"} & set(done.stdout.split())


PLAIN = """
import asyncio, time, unittest
import pytest

HOUR = 3600 * 10**9

def test_run(virtual_time):
    asyncio.run(asyncio.sleep(3600))
    assert virtual_time.now() == HOUR

def test_loops_share_the_clock_and_a_test_has_its_own(virtual_time):
    assert virtual_time.now() == 0
    with asyncio.Runner() as runner:
        runner.run(asyncio.sleep(1800))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.sleep(1800))
    assert (loop.time(), virtual_time.now()) == (3600.0, HOUR)
    loop.close()

def test_a_part_of_a_unit(virtual_time):
    asyncio.run(asyncio.sleep(0.000_05))
    assert 50_000 <= virtual_time.now() <= 100_000

def test_other_tests_have_real_time():
    began = time.monotonic()
    asyncio.run(asyncio.sleep(0.02))
    assert time.monotonic() - began > 0.01

@pytest.mark.usefixtures("virtual_time")
class Case(unittest.IsolatedAsyncioTestCase):
    async def test_unittest(self):
        with self.assertRaises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(7200), 3600)
        self.assertEqual(asyncio.get_running_loop().time(), 3600.0)
"""

ASYNC = """
import asyncio
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.MARK
async def test_async(virtual_time):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1800):
            await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == 1800.0 == virtual_time.now() / 1e9
"""


def test_loops_of_a_test_in_virtual_time(folder):
    (folder / "test_own.py").write_text(PLAIN)
    code, out = run(folder)
    assert (code, "5 passed" in out) == (0, True), out


@pytest.mark.parametrize(
    ("package", "plugin", "mark"),
    [
        ("anyio", "anyio.pytest_plugin", "anyio"),
        ("pytest_asyncio", "pytest_asyncio.plugin", "asyncio"),
    ],
)
def test_async_tests_in_virtual_time(folder, package, plugin, mark):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (folder / "test_own.py").write_text(ASYNC.replace("MARK", mark))
    code, out = run(folder, "-p", plugin)
    assert (code, "1 passed" in out) == (0, True), out
