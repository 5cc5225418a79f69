"""`wheelwork compile`, and that nothing is compiled after it."""

import os
import subprocess
import sys

import pytest

from timers.kernels.jit import COMPILING

SERVICE = """
from timers import names, timer_class
from timers.services import IdleDetector, SystemTimer
for name in names():
    SystemTimer(timer_class(name)()).close()
    IdleDetector(timer=timer_class(name)()).touch(1)
"""


@pytest.mark.slow  # everything is compiled, which takes more than a minute
def test_nothing_is_compiled_later(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def complaints(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr

    (tmp_path / "log.json").write_text('{"time": 1, "duration": 0.5, "key": "a"}\n' * 9999)
    command = ("-m", "compare")
    assert complaints(*command, "compile") == f"{COMPILING}\n"
    for arguments in (
        "compare --sizes 2000 --operations 2000 --repeats 1 --out runs",
        "report --run runs --out page",
        "generate uniform --operations 1e4 --shards 2 --out trace",
        "replay trace --timers hashed-wheel,cascading-wheel --count --out results",
        "verify results",
        "ingest requests log.json --time time --duration duration --timeout 5s --out requests",
        "ingest touches log.json --time time --key key --idle 5s --out touches",
        "purgatory --quick --rates 5000 --seconds 1 --out runs",
    ):
        assert complaints(*command, *arguments.split()) == "", arguments
    assert complaints("-c", SERVICE) == ""
