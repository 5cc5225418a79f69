"""A pytest plugin that adds timers as CONTRIBUTING says: `pytest -p tests.timers.added_timers`.

Each is a kernel file, a class file and a line of the registry: a heap with arity 4 and a wheel,
made from copies of kernels, and the list of the template in the documentation.
"""

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import timers
import timers.kernels
import timers.schemes
from timers.registry import TIMERS

ROOT = Path(__file__).parents[2]
FOLDER = "WHEELWORK_ADDED_TIMERS"
"""The environment variable with the folder where the files are made."""

Edits = Mapping[str, str]

SINK = """def sink_hole(nodes, cells, counters, k, size):
    while child_of(k) < size:
        child = child_of(k)
        for other in range(child + 1, min(child + 4, size)):
            count(counters, COMPARISONS, 1)
            first = cells[entry_of(child, DEADLINE)], cells[entry_of(child, ORDER)]
            if precedes(cells, other, first[0], first[1]):
                child = other
        move(nodes, cells, child, k)
        k = child
    return k


@jit
def remove_entry("""

COPIES: dict[str, tuple[str, Edits, Edits]] = {
    "quaternary-heap": (
        "delay_queue",
        {
            "(k - 1) >> 1": "(k - 1) >> 2",
            "2 * k + 1": "4 * k + 1",
            r"def sink_hole[\s\S]*def remove_entry\(": SINK,
            r"heap=tuple\(heap\)": "heap=tuple(heap), arity=4",
        },
        {},
    ),
    "copied-wheel": ("hashed_wheel", {}, {}),
}
"""Name -> the kernel that is copied, and what is replaced in the kernel and in the class."""


def write(folder: Path) -> None:
    """Write the files of all added timers."""
    for kind in ("kernels", "schemes"):
        (folder / kind).mkdir(exist_ok=True)
    for name, (copied, in_kernel, in_class) in COPIES.items():
        renamed = {class_of(copied): class_of(name), copied: stem(name), kebab(copied): name}
        for kind, edits in (("kernels", in_kernel), ("schemes", in_class)):
            text = (ROOT / "timers" / kind / f"{copied}.py").read_text()
            for old, new in edits.items():
                # A text, or a pattern.
                found = old if old in text else re.search(old, text)
                assert found, f"{copied} has no {old!r}"
                text = text.replace(found if isinstance(found, str) else found[0], new)
            write_renamed(folder / kind / f"{stem(name)}.py", text, renamed)
    examples = ROOT / "docs" / "examples"
    for kind, example in (("kernels", "template_kernel"), ("schemes", "template_scheme")):
        text = (examples / f"{example}.py").read_text()
        own = {"TemplateState": "TemplateKernelState", "import template_kernel  #": IMPORTED}
        write_renamed(folder / kind / "template_kernel.py", text, own)


IMPORTED = "from timers.kernels import template_kernel  #"


def write_renamed(path: Path, text: str, names: Edits) -> None:
    for old, new in names.items():
        text = text.replace(old, new)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def stem(name: str) -> str:
    return name.replace("-", "_")


def kebab(name: str) -> str:
    return name.replace("_", "-")


def class_of(name: str) -> str:
    return "".join(part.title() for part in kebab(name).split("-"))


def pytest_configure(config: Any) -> None:
    """List them behind the first timer, so that nothing can rely on the order or the number."""
    folder = Path(os.environ[FOLDER])
    write(folder)
    timers.kernels.__path__.append(str(folder / "kernels"))
    timers.schemes.__path__.append(str(folder / "schemes"))
    (first, *others), names = TIMERS.items(), (*COPIES, "template-kernel")
    TIMERS.clear()
    added = [(name, f"timers.schemes.{stem(name)}:{class_of(name)}") for name in names]
    TIMERS.update([first, *added, *others])
    importlib.reload(timers)  # its names follow from the registry
