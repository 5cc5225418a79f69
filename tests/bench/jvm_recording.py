"""What recording a JVM costs: the caller's CPU time with and without the agent, in turns.

    python -m tests.bench.jvm_recording [--turns 5] [--rounds 20]

Builds the agent and the peers java-netty and java-kafka, for their libraries. An event is a start
or a cancel. Prints nanoseconds for each, and of overhead: medians of all rounds, and quartiles of
the turns' differences.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median, quantiles

from compare.traffic.recording.agent import jvm_option
from compare.trial.peers.catalogue import entry_named

PROGRAM = Path(__file__).with_name("JvmRecording.java")


def main() -> None:
    """Compile the program and run it in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    libraries = [f"{entry_named(name).build()}/lib/*" for name in ("java-netty", "java-kafka")]
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([folder, *libraries])
        subprocess.run(["javac", "-cp", path, "-d", folder, PROGRAM], check=True)
        command = ["-XX:+UseSerialGC", "-cp", path, "JvmRecording", str(asked.rounds)]
        for _ in range(asked.turns):
            plain.append(_run(command))
            recorded.append(_run([jvm_option(f"{folder}/trace"), *command]))
            shutil.rmtree(f"{folder}/trace")
    print(f"{'':10} plain  recorded  ns per event; overhead: median [quartiles]")
    for name in plain[0]:
        without, within = ([turn[name] for turn in turns] for turns in (plain, recorded))
        differences = [b - a for a, b in zip(without, within, strict=True)]
        low, middle, high = quantiles(differences, n=4)
        print(
            f"{name:10} {median(without):5.0f}  {median(within):8.0f}  "
            f"{middle:.0f} [{low:.0f} .. {high:.0f}]"
        )


def _run(arguments: list[str]) -> dict[str, float]:
    """The median of the rounds, for each kind of timer."""
    done = subprocess.run(["java", *arguments], capture_output=True, text=True, check=True)
    rounds: dict[str, list[float]] = {}
    for name, spent in map(str.split, done.stdout.splitlines()):
        rounds.setdefault(name, []).append(float(spent))
    return {name: median(spent) for name, spent in rounds.items()}


if __name__ == "__main__":
    main()
