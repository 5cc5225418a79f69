"""The surroundings of a run: versions, machine and commit. Unknown facts are None."""

import os
import platform
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from compare.base.versions import versions

_ROOT = Path(__file__).resolve().parents[3]
_TIMEOUT = 10.0  # seconds; a run must not hang on a slow network drive


def machine() -> dict[str, Any]:
    """The processor's model, usable cores, memory in bytes, and platform."""
    cores, memory = os.cpu_count(), None
    with suppress(AttributeError):  # not every system can limit a process to some cores
        cores = len(os.sched_getaffinity(0))
    with suppress(AttributeError, OSError, ValueError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": _cpu(), "cores": cores, "memory_bytes": memory, "platform": platform.platform()}


def surroundings() -> dict[str, Any]:
    """The manifest's entries for the commit, uncommitted changes, versions and the machine.

    The commit and the changes are None outside a checkout.
    """
    head = changes = None
    top = _git("rev-parse", "--show-toplevel")
    # An installed copy may be inside another project's repository.
    if top is not None and Path(top).resolve() == _ROOT:
        head, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    return {
        "commit": head,
        "dirty": None if changes is None else bool(changes),
        "versions": versions(),
        "machine": machine(),
    }


def _git(*arguments: str) -> str | None:
    return _output("git", "-C", str(_ROOT), *arguments)


def _output(*command: str) -> str | None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _cpu() -> str | None:
    with suppress(OSError):  # not Linux
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    return platform.processor() or None
