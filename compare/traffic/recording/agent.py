"""The agent that records the timers of a JVM; Maven builds it from the sources in `jvm`."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from compare.base.files import cache_folder, new_directory, reason
from compare.traffic.recording.run import RecordingError
from compare.traffic.tapes.trace import TraceError, new_target

SOURCES = Path(__file__).parent / "jvm"
JAR = "wheelwork-agent.jar"
TOOLS = {"mvn": "apt-get install maven", "javac": "apt-get install default-jdk"}


def jvm_option(path: str | os.PathLike[str]) -> str:
    """The option of `java` with which a JVM records its timers in a directory.

    The JVM creates the directory. Raises TraceError if it exists or cannot be created,
    RecordingError if the agent cannot be built.
    """
    target = new_target(path, force=True)
    if target.exists():
        raise TraceError(f"{path} exists; a JVM records in a new directory: choose another path")
    return f"-javaagent:{agent()}={target}"


def agent() -> Path:
    """The agent's jar, built at the first call and kept in `cache_folder()`.

    One file, which can be copied to other machines. Raises RecordingError.
    """
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    cache = cache_folder()
    folder, log = cache / f"jvm-agent-{digest[:12]}", cache / "jvm-agent.log"
    if (folder / JAR).is_file():
        return folder / JAR
    if lacks := {tool: how for tool, how in TOOLS.items() if shutil.which(tool) is None}:
        tools, ways = " and ".join(lacks), " and ".join(lacks.values())
        raise RecordingError(f"building the agent needs {tools} ({ways})")
    try:
        with new_directory(folder, replace=True) as directory:
            build = directory / "build"
            shutil.copytree(SOURCES, build)
            with log.open("wb") as output:
                command = ["mvn", "-q", "-B", "package"]
                done = subprocess.run(
                    command, cwd=build, stdout=output, stderr=subprocess.STDOUT, check=False
                )
            if done.returncode:
                raise RecordingError(
                    f"the agent cannot be built: mvn failed with code {done.returncode}; the log is"
                    f" {log}"
                )
            shutil.move(build / "target" / JAR, directory / JAR)
            shutil.rmtree(build)
    except OSError as error:
        raise RecordingError(f"cannot build the agent in {cache}: {reason(error)}") from None
    return folder / JAR
