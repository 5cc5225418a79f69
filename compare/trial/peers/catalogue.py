"""The peers of this project: a folder each beside this file, built with the language's own tools.

A folder's name is the peer's name. It has one source file, whose name says the language, and the
usual dependency file of the language if there is a library.
"""

import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compare.base.files import cache_folder, new_directory, reason
from compare.trial.peers.protocol import Description, PeerError, parse_description
from compare.trial.peers.run import DEFAULT_TIMEOUT, Peer, group
from timers.errors import unknown_name

HERE = Path(__file__).parent
BUILD_SECONDS = 600.0
_DESCRIPTION = "description.json"
_LIBRARIES = "lib"

Commands = Sequence[Sequence[str]]


class FetchError(PeerError):
    """The libraries of a peer cannot be fetched, perhaps because the registry cannot be reached."""


@dataclass(frozen=True)
class Language:
    """A programming language: its files, its tools, and how to build and run a peer."""

    name: str
    source: str  # the file that every peer has
    shared: str  # the file beside the folders that all peers of the language use
    tools: Mapping[str, str]  # program -> how to install it
    build: Commands  # in a folder with all files
    dependencies: str = ""  # the dependency file; without it, `fetch` is left out
    fetch: Commands = ()
    fetch_tools: Mapping[str, str] = field(default_factory=dict)
    run: Sequence[str] = ("{folder}/peer",)
    warm_up: int = 1  # operations in the rounds that do not count; there is one round at least


_HEADERS = f"{_LIBRARIES}/usr/include"
_ARCHIVES = f"$(find . -path './{_LIBRARIES}/*' -name '*.a')"
_DEBIAN: dict[str, Any] = {
    "dependencies": "packages.txt",
    # Downloaded and unpacked, not installed, so that no root is needed.
    "fetch": [
        ["sh", "-c", "apt-get -q download $(cat packages.txt)"],
        ["sh", "-c", f"for each in *.deb; do dpkg -x $each {_LIBRARIES} || exit; done"],
    ],
    "fetch_tools": dict.fromkeys(("apt-get", "dpkg"), "a Debian system"),
}
"""C and C++ have no registry of their own: packages of Debian, which are named in a file."""

PYTHON, C, CPP, JAVA, JAVASCRIPT, RUST, GO = LANGUAGES = (
    Language(
        "Python",
        "peer.py",
        "",
        {},
        (),
        dependencies="requirements.txt",
        fetch=[
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-input"),
                *("--target", _LIBRARIES, "-r", "requirements.txt"),
            ]
        ],
        run=(sys.executable, "{folder}/peer.py"),
    ),
    Language(
        "C",
        "main.c",
        "peer.h",
        {"gcc": "apt-get install gcc"},
        [["sh", "-c", f"gcc -std=c17 -O3 -march=native -I{_HEADERS} -o peer main.c {_ARCHIVES}"]],
        **_DEBIAN,
    ),
    Language(
        "C++",
        "main.cpp",
        "peer.hpp",
        {"g++": "apt-get install g++"},
        [
            [
                *("g++", "-std=c++20", "-O3", "-march=native", "-pthread", f"-I{_HEADERS}"),
                *("-o", "peer", "main.cpp"),
            ]
        ],
        **_DEBIAN,
    ),
    Language(
        "Java",
        "Main.java",
        "Peer.java",
        {"java": "apt-get install default-jdk", "javac": "apt-get install default-jdk"},
        [["javac", "-nowarn", "-cp", f"{_LIBRARIES}/*", "-d", "classes", "Peer.java", "Main.java"]],
        dependencies="pom.xml",
        fetch=[
            ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={_LIBRARIES}"]
        ],
        fetch_tools={"mvn": "apt-get install maven"},
        # The heap has its full size from the start, so that it does not grow while it is timed.
        run=(
            *("java", "-XX:+UseSerialGC", "-Xms256m", "-Xmx3g", "-Xshare:auto"),
            *("-cp", f"{{folder}}/classes{os.pathsep}{{folder}}/{_LIBRARIES}/*", "{main}"),
        ),
        warm_up=1_000_000,  # what runs often is compiled meanwhile
    ),
    Language(
        "JavaScript",
        "main.mjs",
        "peer.mjs",
        {"node": "apt-get install nodejs"},
        [["node", "--check", "main.mjs"]],
        dependencies="package.json",
        fetch=[["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]],
        fetch_tools={"npm": "apt-get install npm"},
        run=("node", "--max-old-space-size=3072", "{folder}/main.mjs"),
        warm_up=1_000_000,  # as in Java
    ),
    Language(
        "Rust",
        "main.rs",
        "peer.rs",
        {"cargo": "https://rustup.rs"},
        [
            ["cargo", "build", "--quiet", "--release", "--offline"],
            ["cp", "{target}/release/{name}", "peer"],
        ],
        dependencies="Cargo.toml",
        fetch=[["cargo", "fetch", "--quiet"]],
    ),
    Language(
        "Go",
        "main.go",
        "peer.go",
        {"go": "https://go.dev/dl"},
        [["go", "build", "-o", "peer", "."]],
        dependencies="go.mod",
    ),
)


@dataclass(frozen=True)
class Entry:
    """A peer of the catalogue."""

    name: str
    language: Language

    @property
    def sources(self) -> list[Path]:
        """Its files, and the file that its language shares."""
        shared = [HERE / self.language.shared] if self.language.shared else []
        own = (path for path in (HERE / self.name).iterdir() if path.is_file())
        return [*sorted(own), *shared]

    @property
    def has_dependencies(self) -> bool:
        """Whether it uses a library that must be fetched."""
        return (HERE / self.name / self.language.dependencies).is_file()

    @property
    def folder(self) -> Path:
        """Where it is built, which depends on its files and on this machine."""
        if not self._needs_build:
            return HERE / self.name
        digest = hashlib.sha256(_machine().encode())
        for path in self.sources:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        digest.update(repr((self.language.build, self.language.fetch)).encode())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:12]}"

    @property
    def _needs_build(self) -> bool:
        return bool(self.language.build) or self.has_dependencies

    @property
    def is_ready(self) -> bool:
        """Whether it can be run."""
        return not self._needs_build or (self.folder / _DESCRIPTION).is_file()

    @property
    def missing(self) -> str:
        """The tools that are missing to build it, and how to install them; "" if none is."""
        language = self.language
        tools = dict(language.tools)
        if self.has_dependencies:
            tools |= language.fetch_tools
        lacks = {tool: how for tool, how in tools.items() if shutil.which(tool) is None}
        ways = " and ".join(dict.fromkeys(lacks.values()))
        return f"needs {' and '.join(lacks)} ({ways})" if lacks else ""

    @property
    def status(self) -> str:
        """ "ready", or what is missing."""
        if self.is_ready:
            return "ready"
        return self.missing or f"not built: wheelwork peers build {self.name}"

    def peer(self, timeout: float = DEFAULT_TIMEOUT, **parameters: int) -> Peer:
        """The program, with parameters for a peer that takes them in the environment.

        Raises PeerError if it is not ready.
        """
        if not self.is_ready:
            raise PeerError(f"{self.name}: {self.status}")
        peer = self._peer_in(self.folder, timeout)
        given = {f"WHEELWORK_{name.upper()}": str(value) for name, value in parameters.items()}
        return replace(peer, environment={**peer.environment, **given})

    def description(self) -> Description:
        """Its description; for a peer that was built, the one it had then."""
        if not self._needs_build:
            return self.peer().describe()
        return parse_description((self.folder / _DESCRIPTION).read_text(encoding="utf-8"))

    def build(self) -> Path:
        """Build it unless it is ready, and return the folder, which appears complete or not at all.

        Raises PeerError, which names the log.
        """
        folder = self.folder
        if self.is_ready:
            return folder
        if missing := self.missing:
            raise PeerError(f"{self.name}: {missing}")
        cache = cache_folder()
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with new_directory(folder, replace=True) as directory:
                for path in self.sources:
                    shutil.copy(path, directory / path.name)
                self._run_commands(directory, cache / f"{self.name}.log")
                described = self._peer_in(directory, DEFAULT_TIMEOUT).describe()
                text = json.dumps(described.as_json(), indent=1) + "\n"
                (directory / _DESCRIPTION).write_text(text, encoding="utf-8")
        except OSError as error:
            raise PeerError(f"{self.name}: cannot build in {cache}: {reason(error)}") from None
        return folder

    def _run_commands(self, directory: Path, log: Path) -> None:
        """Run the commands of a build in a folder, with their output in the log."""
        fetch = self.language.fetch if self.has_dependencies else ()
        target = cache_folder() / "cargo"
        places = {"target": str(target), "name": self.name}
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        with log.open("wb") as output:
            for number, command in enumerate((*fetch, *self.language.build)):
                words = _filled(command, places)
                settings = {"cwd": directory, "env": environment, "stdout": output}
                try:
                    with group(words, stderr=subprocess.STDOUT, **settings) as process:
                        code = process.wait(BUILD_SECONDS)
                except subprocess.TimeoutExpired:
                    problem = f"did not end in {BUILD_SECONDS:g} s"
                else:
                    if not code:
                        continue
                    problem = f"failed with code {code}"
                name = Path(words[0]).name
                error = FetchError if number < len(fetch) else PeerError
                raise error(f"{self.name}: {name} {problem}; the log is {log}")

    def _peer_in(self, folder: Path, timeout: float) -> Peer:
        places = {"folder": str(folder), "main": self._main_class()}
        command = tuple(_filled(self.language.run, places))
        environment = {}
        if self.language is PYTHON:
            paths = [HERE.parents[2], folder / _LIBRARIES, os.environ.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths if str(path))
        return Peer(command, self.name, timeout, environment)

    def _main_class(self) -> str:
        """The main class of a Java program, with its package."""
        if self.language is not JAVA:
            return ""
        first = (HERE / self.name / self.language.source).read_text(encoding="utf-8").split("\n")
        packages = [line.split()[1].rstrip(";") for line in first if line.startswith("package ")]
        return ".".join([*packages, "Main"])


def _filled(words: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Replace `{name}` in each word. Other braces stay."""
    filled = []
    for word in words:
        for name, value in places.items():
            word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    return filled


class Program(Entry):
    """A peer that is not of this project. Its name is its command."""

    is_ready = True

    def peer(self, timeout: float = DEFAULT_TIMEOUT, **parameters: int) -> Peer:
        """The program. Raises PeerError if its quotation marks do not match."""
        try:
            return Peer(tuple(shlex.split(self.name)), self.name, timeout)
        except ValueError as error:
            raise PeerError(f"{self.name}: {reason(error)}") from None

    def description(self) -> Description:
        """Its description. Raises PeerError."""
        return self.peer().describe()


UNKNOWN = Language("unknown", "", "", {}, (), warm_up=JAVA.warm_up)
"""The language of a program until it describes itself. Its code may be compiled while it runs."""


def entries() -> list[Entry]:
    """All peers, by language and name."""
    return [
        Entry(path.parent.name, language)
        for language in LANGUAGES
        for path in sorted(HERE.glob(f"*/{language.source}"))
    ]


def entry_named(name: str) -> Entry:
    """The peer with this name. Raises PeerError if there is none."""
    known = {entry.name: entry for entry in entries()}
    if name not in known:
        raise PeerError(unknown_name("peer", name, known))
    return known[name]


def entries_named(names: Sequence[str]) -> list[Entry]:
    """The peers with these names, or in these GROUPS, each once.

    A name with a space or a slash is the command of a program. Raises PeerError.
    """
    found: dict[str, Entry] = {}
    for name in names:
        if group := GROUPS.get(name):
            chosen = [entry for entry in entries() if entry.language in group]
        elif " " in name or os.sep in name:
            chosen = [Program(name, UNKNOWN)]
        else:
            chosen = [entry_named(name)]
        found |= {entry.name: entry for entry in chosen}
    return [*found.values()]


def _machine() -> str:
    """This machine's kind of processor, for which compilers may optimise."""
    with suppress(OSError):  # not Linux
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line
    return platform.machine()


GROUPS = {
    "python": (PYTHON,),
    "jvm": (JAVA,),
    "native": (C, CPP, RUST, GO),
    "all": LANGUAGES,
}
"""The languages of the groups that can be named."""

NAMES = tuple(entry.name for entry in entries())

CHOICES = (*GROUPS, *NAMES)
"""All that `entries_named` knows."""
