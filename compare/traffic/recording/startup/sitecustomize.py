"""Starts the recorder in the program of `wheelwork record`, before anything of the program runs.

Python imports a module of this name when it starts. The environment is set back, so that none of
the processes that the program starts is recorded.
"""

import atexit
import importlib.util
import os
import sys

_here = os.path.dirname(__file__)  # noqa: PTH120  # pathlib is slow to import


def _record(directory: str) -> None:
    # Under its usual name, so that `compare.traffic.recording` finds it in use; without its
    # packages, of which the program may have others.
    name, file = "compare.traffic.recording.recorder", f"{_here}/../recorder.py"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        recorder = module.Recorder(directory)
    except FileExistsError:  # another process of this command is recorded
        return
    except OSError as error:
        print(f"wheelwork: events cannot be written: {error.strerror}", file=sys.stderr)
        return

    def end() -> None:
        if recorder.close() and recorder.error is not None:
            print(f"wheelwork: events were lost: {recorder.error}", file=sys.stderr)

    atexit.register(end)  # before all others, so it runs last


if directory := os.environ.pop("WHEELWORK_RECORD", None):
    others = os.environ.pop("PYTHONPATH", "").partition(os.pathsep)[2]
    if others:
        os.environ["PYTHONPATH"] = others
    sys.path.remove(_here)
    _record(directory)
    this = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")  # the one that this file hides, if any
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", this)
