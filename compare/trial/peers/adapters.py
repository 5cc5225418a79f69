"""New adapters: the helper of a language, and a naive timer that passes the check."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from compare.base.files import new_directory, obstacle, reason
from compare.trial.peers.catalogue import HERE
from compare.trial.peers.protocol import PeerError


@dataclass(frozen=True)
class Template:
    """How an adapter in a language is built and run, in its folder."""

    helper: str  # the file beside the folders of the peers
    build: str  # a command; "" if there is nothing to build
    run: str


TEMPLATES = {
    "c": Template("peer.h", "gcc -std=c17 -O3 -o adapter main.c", "./adapter"),
    "cpp": Template("peer.hpp", "g++ -std=c++20 -O3 -pthread -o adapter main.cpp", "./adapter"),
    "go": Template("peer.go", "go build -o adapter .", "./adapter"),
    "java": Template("Peer.java", "javac -d classes Peer.java Main.java", "java -cp classes Main"),
    "js": Template("peer.mjs", "", "node main.mjs"),
    "python": Template("peer.py", "", "python main.py"),
    "rust": Template("peer.rs", "cargo build --quiet --release", "./target/release/my-timer"),
}
"""By the name of the language on the command line; each has a folder of this name."""


def new_adapter(language: str, directory: str) -> list[str]:
    """Write an adapter into a new or empty directory; return the commands that build and check it.

    Raises PeerError if the directory is not empty or cannot be written.
    """
    template, folder = TEMPLATES[language], Path(directory)
    if why := obstacle(folder.parent):
        raise PeerError(f"cannot write {directory}: {why}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PeerError(f"{directory} exists; name a new or an empty directory")
    try:
        with new_directory(folder) as temporary:
            sources = [path for path in (HERE / "templates" / language).iterdir() if path.is_file()]
            for path in [*sources, HERE / template.helper]:
                shutil.copyfile(path, temporary / path.name)
    except OSError as error:
        raise PeerError(f"cannot write {directory}: {reason(error)}") from None
    return [
        f"cd {directory}",
        *filter(None, [template.build]),
        f"wheelwork check -- {template.run}",
    ]
