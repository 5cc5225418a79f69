"""The explorable wheels: peers written in JavaScript, as they are, with a page to drive them."""

import re
from collections.abc import Mapping
from pathlib import Path

from compare.trial.peers.catalogue import HERE as PEERS

SCHEMES: Mapping[str, str] = {
    "hierarchical-wheel": "Hierarchical wheel, queue of buckets (Kafka)",
    "hashed-wheel": "Hashed wheel with rounds (Netty)",
    "cascading-wheel": "Cascading wheel (Linux before 4.8)",
    "ring": "Ring of sets (idle connections)",
    "heap": "Binary heap",
}
"""The part of a peer's name after "javascript-", and its title; in the order of the page."""

TEMPLATES = Path(__file__).parent / "templates"


def sources() -> dict[str, str]:
    """The source of each scheme's peer, by its name in SCHEMES."""
    return {
        name: (PEERS / f"javascript-{name}" / "main.mjs").read_text(encoding="utf-8")
        for name in SCHEMES
    }


def script() -> str:
    """A script with SCHEMES and `Driver`, for a page or for Node.

    Each peer's file becomes a function of what it imports: `main` and `parameter`.
    """
    parts = ["const SCHEMES = {};"]
    for name, source in sources().items():
        body = re.sub(r'^import .* from "./peer.mjs";\n', "", source, flags=re.MULTILINE)
        parts.append(f'SCHEMES["{name}"] = (main, parameter) => {{\n{body}}};')
    return "\n".join([*parts, (TEMPLATES / "driver.js").read_text(encoding="utf-8")])
